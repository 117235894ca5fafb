// The health server of `syncline serve`: its options, and what makes the process ready. Used by serve.ts only.
import { InvalidArgumentError, Option } from "commander";
import type { EventLog } from "../core/event-log.ts";
import { type Readiness, startHealthServer } from "../ops/health.ts";
import type { Metrics } from "../ops/metrics.ts";

/** What `healthOptions` give. */
export interface HealthOptions {
  readonly healthPort?: number;
  readonly healthHost?: string;
}

/** The health of one `serve`, from before its start until after its stop. */
export interface ServeHealth {
  /** From here on the process is ready unless the app says why not. */
  started(app: { unreadiness(): Readiness["reasons"] }): void;
  stop(): Promise<void>;
}

/** `--health-port` and `--health-host`. */
export function healthOptions(): Option[] {
  return [
    new Option(
      "--health-port <port>",
      "answer /livez, /readyz and /metrics there; not at all unless set (0: any free port)",
    )
      .env("SYNCLINE_HEALTH_PORT")
      .argParser(portArgument),
    new Option("--health-host <address>", "where the health server listens; all addresses unless set").env(
      "SYNCLINE_HEALTH_HOST",
    ),
  ];
}

/**
 * Starts the health server, if a port was given. Not ready until `started`, nor after `stopping` aborts.
 * @throws UsageError when the port cannot be had.
 */
export async function startServeHealth(
  { healthPort: port, healthHost: host }: HealthOptions,
  context: {
    readonly roles: readonly string[];
    readonly stopping: AbortSignal;
    readonly log: EventLog;
    readonly metrics?: Metrics | undefined;
  },
): Promise<ServeHealth> {
  let app: Parameters<ServeHealth["started"]>[0] | undefined;
  const { roles, stopping, log, metrics } = context;
  const readiness = (): Readiness => {
    const reasons = stopping.aborted
      ? [{ part: "process", reason: "stopping" }]
      : (app?.unreadiness() ?? [{ part: "process", reason: "starting" }]);
    return { ready: reasons.length === 0, reasons, facts: { roles } };
  };
  const server =
    port === undefined ? undefined : await startHealthServer({ port, host, readiness, routes: metricsRoute(metrics) });
  if (server !== undefined) log.info("health.listening", { port: server.port });
  return {
    started: (running) => {
      app = running;
    },
    stop: async () => server?.stop(),
  };
}

function metricsRoute(metrics: Metrics | undefined): NonNullable<Parameters<typeof startHealthServer>[0]["routes"]> {
  if (metrics === undefined) return {};
  return {
    "/metrics": async () => {
      const { text, contentType } = await metrics.scrape();
      // The server names the charset by itself.
      return { status: 200, contentType: contentType.replace(/; *charset=utf-8$/, ""), body: text };
    },
  };
}

function portArgument(text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65_535) throw new InvalidArgumentError("write a port from 1 to 65535");
  return port;
}
