// The web server as a part of the process (role `web`). Its code is loaded when it starts, so that
// a process without the role pays nothing for it.
import type { LoadOptions } from "../config/load-policies.ts";
import type { PolicyChecks } from "../config/rules/policy-rules.ts";
import { systemClock } from "../core/clock.ts";
import type { Component } from "../core/component.ts";
import { UsageError } from "../core/errors.ts";
import type { HttpServer } from "../core/http-server.ts";
import { closedLabels } from "../ops/metric-labels.ts";
import type { Metrics } from "../ops/metrics.ts";
import type { QueryContext } from "../queries/query-context.ts";
import { createOAuthFetch } from "../service/oauth2-token.ts";
import { readBounded, readClientSecret } from "../service/token.ts";
import { Changes } from "../store/changes.ts";
import { FailedTasks } from "../store/failed-tasks.ts";
import { rememberStates } from "../store/policy-states.ts";
import { readLiveVersion, WebSessions } from "../store/web-sessions.ts";
import type { AuthFile, WatchedFile } from "../web/access.ts";
import type { Refusal } from "../web/admission.ts";
import type { WebParts } from "../web/web-app.ts";
import type { WebMeter } from "../web/web-meter.ts";
import type { RedisGuard } from "./redis-guard.ts";

/** Where the web server listens, and who may ask. */
export interface WebOptions {
  readonly host: string;
  readonly port: number;
  /** The file of tokens. Without it and `auth` only this machine may ask. */
  readonly tokens: string | undefined;
  /** The file of the identity provider. */
  readonly auth: string | undefined;
  /** Whether nothing can be changed here, whatever a token allows. */
  readonly isReadOnly: boolean;
  /** For policy files that a caller asks to check. */
  readonly checks: PolicyChecks;
}

/** What it shares with the other parts of the process. */
interface WebSurroundings extends Pick<WebParts, "log">, Pick<LoadOptions, "variables"> {
  /** What to read from now. */
  readonly context: () => Omit<QueryContext, "readStates" | "failedTasks">;
  readonly guard: Pick<RedisGuard, "changes">;
  readonly metrics?: Metrics | undefined;
}

const fileBytesMax = 256 * 1024;

/** Makes the part. @throws UsageError, at its start, for a taken port or a wrong file. */
export function createWeb(
  { host, port, tokens, auth, isReadOnly, checks }: WebOptions,
  { context: given, guard, variables, log, metrics }: WebSurroundings,
): Component {
  const { store } = given();
  const readStates = rememberStates(store, () => guard.changes);
  const failedTasks = new FailedTasks(store, readStates);
  const context = () => ({ ...given(), readStates, failedTasks });
  const load = { variables, checks };
  let server: HttpServer | undefined;
  let isStopped = false;
  const recordRefusal = async ({ actor, what, why, ...from }: Refusal) => {
    const change = { actor, what: "refused", subject: what, reason: why, before: null, after: { why }, from };
    await new Changes(store).add(change);
  };
  return {
    name: "web",
    start: async () => {
      const { startWebServer } = await import("../web/web-server.ts");
      const { Access } = await import("../web/access.ts");
      const { LiveHub } = await import("../web/live.ts");
      const clock = systemClock;
      const files = {
        tokens: tokens === undefined ? undefined : watched(tokens, "--web-tokens"),
        auth: auth === undefined ? undefined : authFile(auth, variables),
      };
      const isOpen = tokens === undefined && auth === undefined;
      const access = isOpen ? undefined : await Access.open(files, new WebSessions(store, clock), { clock, log });
      const readVersion = async () => `${context().set.contentHash} ${await readLiveVersion(store)}`;
      const live = new LiveHub(readVersion, clock, log, (streams) => metrics?.set("syncline_web_streams", {}, streams));
      server = await startWebServer(
        { host, port },
        { context, access, recordRefusal, isReadOnly, load, live, meter: metrics && meterOf(metrics), clock, log },
      );
      // A stop came during the start.
      if (isStopped) return server.stop();
      const shown = host.includes(":") ? `[${host}]` : host;
      log.info("web.listening", { url: `http://${shown}:${server.port}/`, tokens: !isOpen });
      // Not awaited: without the provider, tokens and what is shown go on.
      void access?.askProviders();
    },
    stop: async () => {
      isStopped = true;
      await server?.stop();
    },
  };
}

/** Counts what the server tells. Live pages have no end, and so no duration. */
function meterOf(metrics: Metrics): WebMeter {
  return {
    answered: ({ operation, status, durationMs, problem }) => {
      const statusClass = `${Math.floor(status / 100)}xx`;
      metrics.add("syncline_web_requests_total", { webOperation: operation, statusClass });
      if (operation !== "GET /events") metrics.observe("syncline_web_request_duration_seconds", {}, durationMs / 1_000);
      const webRefusal = closedLabels.webRefusal.find((name) => name === problem);
      if (webRefusal !== undefined) metrics.add("syncline_web_refused_total", { webRefusal });
      if (operation.includes(" /sign-in") && status === 403) metrics.add("syncline_web_sign_ins_failed_total", {});
    },
    read: () => metrics.add("syncline_web_reads_total", {}),
  };
}

/** A file that is followed. `option`: what names it. */
function watched(path: string, option: string): WatchedFile {
  return {
    path,
    read: async () => {
      const read = await readBounded(path, fileBytesMax + 1);
      if ("code" in read) throw new UsageError(`${path} cannot be read (${read.code}): see ${option}`);
      if (read.text.length > fileBytesMax) throw new UsageError(`${path} is over 256 KiB: see ${option}`);
      return read.text;
    },
  };
}

/** The file of the identity provider, followed. */
export function authFile(path: string, variables: LoadOptions["variables"]): AuthFile {
  return { ...watched(path, "--web-auth"), variables, readSecret: readClientSecret, createFetch: createOAuthFetch };
}
