// `syncline serve`: plans slots and works on tasks until it is stopped.
import { readdirSync } from "node:fs";
import { constants, setPriority } from "node:os";
import { resolve } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import { type AppOptions, type Role, startApp } from "../app/app.ts";
import { withTimeLimit } from "../core/clock.ts";
import { OutOfReachError, UsageError } from "../core/errors.ts";
import type { EventLog } from "../core/event-log.ts";
import { isLoopback } from "../core/loopback.ts";
import { type Readiness, startHealthServer } from "../ops/health.ts";
import { createLogger } from "../ops/logger.ts";
import { createMeteredLog } from "../ops/metered-log.ts";
import { Metrics } from "../ops/metrics.ts";
import { prettyIndent, toPrettyLine } from "../ops/pretty-log.ts";
import { type CommandIo, untilStopped } from "./command-io.ts";
import {
  durationOption,
  loadPoliciesOrThrow,
  type PolicyOptions,
  policyChecks,
  redisCommand,
  redisTarget,
  variableOption,
} from "./shared-options.ts";
import { wrapLines } from "./width.ts";

/** How long stopping may take beyond the drain, to close connections. */
const stopMarginMs = 4_000;

interface ServeOptions extends PolicyOptions {
  readonly roles: readonly Role[];
  readonly owner?: string;
  readonly takeOverAfter: number;
  readonly drain: number;
  readonly healthPort?: number;
  readonly webPort: number;
  readonly webHost: string;
  readonly webTokens?: string;
  readonly webAuth?: string;
  readonly webReadOnly?: true;
  readonly healthHost?: string;
  readonly log?: "pretty" | "json";
}

const help = `
Writes one line per event to standard output, readable on a terminal and as JSON elsewhere (--log); the outcome of every task is one line "task.finished".
Changed policies are followed without a restart ("config.reloaded"); wrong ones are not ("config.rejected"), the last good ones stay in force.
SIGTERM or Ctrl-C ends it within --drain and 4 s: no new starts, steps in work end, the rest stays in the queue. A second one ends it at once.

Examples:
  $ syncline serve --config policies/
  $ syncline serve --config policies/ --roles worker
  $ syncline serve --config policies/ --roles scheduler,worker,web
  $ REDIS_URL=redis://redis:6379 syncline serve --config policies/ --prefix '{team-a}'`;

const logForms = "form of the log: pretty or json; pretty on a terminal unless given";

/** The command `serve`. */
export function serveCommand(io: CommandIo): Command {
  return redisCommand("serve", "config")
    .option("--roles <list>", "scheduler, worker, web, or several of them", rolesArgument, ["scheduler", "worker"])
    .addOption(
      variableOption(
        "--owner <name>",
        "whose policies these are, such as namespace/release: a second owner under the same prefix is refused",
      ).argParser(ownerArgument),
    )
    .addOption(durationOption("--take-over-after <duration>", "a worker silent for so long has died", "60s"))
    .addOption(durationOption("--drain <duration>", "how long stopping may take", "25s"))
    .addOption(
      variableOption(
        "--health-port <port>",
        "answer /livez, /readyz and /metrics there; not at all unless set (0: any free port)",
      ).argParser(portArgument),
    )
    .addOption(variableOption("--health-host <address>", "where the health server listens; all addresses unless set"))
    .addOption(new Option("--log <form>", logForms).choices(["pretty", "json"]))
    .addOption(
      variableOption("--web-port <port>", "where the role web listens (0: any free port)")
        .default(4_780)
        .argParser(portArgument),
    )
    .addOption(
      variableOption(
        "--web-host <address>",
        "its address; another than this machine's needs --web-tokens or --web-auth",
      ).default("127.0.0.1"),
    )
    .addOption(variableOption("--web-tokens <file>", "who may look: the lines that `syncline token` prints"))
    .addOption(
      variableOption("--web-auth <file>", "who may look: people whom an identity provider knows (docs/dashboard.md)"),
    )
    .option("--web-read-only", "nothing can be changed there, whatever a token allows")
    .addHelpText("after", help)
    .action((options: ServeOptions) => serve(options, io));
}

/** Serves until told to stop. @throws OutOfReachError without Redis; UsageError. */
export async function serve(options: ServeOptions, io: CommandIo): Promise<void> {
  const { roles, owner, takeOverAfter: takeOverAfterMs, drain: drainMs } = options;
  giveWay(roles);
  const redis = redisTarget(options, io);
  const set = await loadPoliciesOrThrow(options.config, io);
  const isPretty = (options.log ?? (io.columns === undefined ? "json" : "pretty")) === "pretty";
  const { logLevel } = io.settings;
  const writePretty = (line: string) => {
    const shown = toPrettyLine(line, io.colours, logLevel);
    if (shown !== "") io.out(wrapLines(shown, io.columns, prettyIndent));
  };
  const writeLine = isPretty ? writePretty : io.out;
  const plainLog = createLogger(logLevel, writeLine);
  const metrics = options.healthPort === undefined ? undefined : new Metrics();
  metrics?.takeInSet(set);
  for (const gauge of ["syncline_redis_up", "syncline_redis_safe"] as const) metrics?.set(gauge, {}, 0);
  const log = metrics === undefined ? plainLog : createMeteredLog(plainLog, metrics);
  const health = await startServeHealth(options, { stopping: io.signal, log, metrics });
  try {
    const app = await startApp({
      set,
      redis,
      roles,
      owner,
      variables: io.settings.variables,
      log,
      metrics,
      takeOverAfterMs,
      drainMs,
      waitsForRedis: options.healthPort !== undefined,
      web: webOptions(options),
      stopSignal: io.signal,
      watch: { path: options.config, checks: policyChecks },
    });
    health.started(app);
    const { policies, services, contentHash: config } = set;
    if (!io.signal.aborted)
      log.info("serve.ready", { roles, policies: policies.length, services: services.size, config });
    await untilStopped(io.signal);
    log.info("serve.stopping");
    const late = () => new OutOfReachError("stopping took too long; is Redis there?");
    await withTimeLimit(app.stop(), drainMs + stopMarginMs, late);
    log.info("serve.stopped");
  } finally {
    await health.stop();
  }
}

/**
 * A process with the role web alone leaves the processor to Redis and the others that start sync
 * jobs on its machine; in a container of its own, or where that is forbidden, nothing changes.
 */
export function giveWay(roles: readonly Role[]): void {
  if (roles.some((role) => role !== "web")) return;
  const level = constants.priority.PRIORITY_BELOW_NORMAL;
  try {
    setPriority(level);
    // Linux knows a priority of each thread: those that compile, collect and pack run already.
    for (const thread of readdirSync("/proc/self/task")) setPriority(Number(thread), level);
  } catch {
    // It serves as well as before.
  }
}

function ownerArgument(text: string): string {
  if (/^[\x21-\x7e]{1,128}$/.test(text)) return text;
  throw new InvalidArgumentError("a name has 1 to 128 visible ASCII characters without spaces");
}

function rolesArgument(text: string): Role[] {
  const roles = text.split(",").map((role) => role.trim());
  const known = roles.filter((role) => role === "scheduler" || role === "worker" || role === "web");
  if (known.length !== roles.length)
    throw new InvalidArgumentError("the roles are scheduler, worker and web, separated by commas");
  return known;
}

/** @throws UsageError when others could reach a server that knows no tokens. */
function webOptions({ roles, webPort: port, webHost: host, ...more }: ServeOptions): AppOptions["web"] {
  const { webTokens: tokens, webAuth: auth, webReadOnly = false } = more;
  if (!roles.includes("web")) return undefined;
  if (tokens === undefined && auth === undefined && !isLoopback(host))
    throw new UsageError(
      `--web-host ${host} can be reached from elsewhere: say with --web-tokens or --web-auth who may look, or leave --web-host out`,
    );
  const files = { tokens: tokens && resolve(tokens), auth: auth && resolve(auth) };
  return { host, port, ...files, isReadOnly: webReadOnly, checks: policyChecks };
}

/** The health of one `serve`, from before its start until after its stop. */
interface ServeHealth {
  /** Marks the process as ready, unless the app says why not. */
  started(app: { unreadiness(): Readiness["reasons"] }): void;
  stop(): Promise<void>;
}

function portArgument(text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65_535) throw new InvalidArgumentError("write a port from 0 to 65535");
  return port;
}

/** Starts the health server, if a port is set. @throws UsageError when it cannot listen there. */
async function startServeHealth(
  { healthPort: port, healthHost: host, roles }: ServeOptions,
  context: {
    readonly stopping: AbortSignal;
    readonly log: EventLog;
    readonly metrics?: Metrics | undefined;
  },
): Promise<ServeHealth> {
  let app: Parameters<ServeHealth["started"]>[0] | undefined;
  const { stopping, log, metrics } = context;
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
      // The server adds the charset itself.
      return { status: 200, contentType: contentType.replace(/; *charset=utf-8$/, ""), body: text };
    },
  };
}
