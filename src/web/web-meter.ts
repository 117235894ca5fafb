// What the web server tells of its own work: app/create-web.ts counts it. A route names a request:
// so many series there are at most, whatever is asked for.
import type { MiddlewareHandler } from "hono";
import { matchedRoutes } from "hono/route";
import type { Clock } from "../core/clock.ts";
import type { WebEnv } from "./web-env.ts";

/** A request that was answered. */
interface WebAnswer {
  /** Such as `GET /api/v1/policies/:name`; `other` for what is nothing here. */
  readonly operation: string;
  readonly status: number;
  readonly durationMs: number;
  /** What the answer says is wrong (problem.ts). */
  readonly problem: string | undefined;
}

/** Hears of the work of a web server. */
export interface WebMeter {
  answered(answer: WebAnswer): void;
  /** Redis was read for a page or a list. */
  read(): void;
}

/** Tells the meter of each answer, as its headers go out. */
export function meterAnswers(meter: WebMeter, clock: Pick<Clock, "monotonicMs">): MiddlewareHandler<WebEnv> {
  return async (c, next) => {
    const askedMs = clock.monotonicMs();
    await next();
    const route = matchedRoutes(c).findLast(({ method }) => method !== "ALL");
    meter.answered({
      operation: route === undefined ? "other" : `${route.method} ${route.path}`,
      status: c.res.status,
      durationMs: clock.monotonicMs() - askedMs,
      problem: c.get("problem")?.name,
    });
  };
}
