// `syncline serve`: plans slots and works on tasks until it is stopped.
import { Command, InvalidArgumentError, Option } from "commander";
import type { PolicySet } from "../config/policy-set.ts";
import type { PolicyChecks } from "../config/rules/policy-rules.ts";
import { withDeadline } from "../core/clock.ts";
import { OutOfReachError } from "../core/errors.ts";
import type { EventLog } from "../core/event-log.ts";
import { type Readiness, startHealthServer } from "../ops/health.ts";
import { createLogger } from "../ops/logger.ts";
import { createMeteredLog } from "../ops/metered-log.ts";
import { Metrics } from "../ops/metrics.ts";
import type { RedisTarget } from "../store/redis.ts";
import type { CommandIo } from "./command-io.ts";
import {
  configOption,
  durationOption,
  loadPoliciesOrThrow,
  policyChecks,
  prefixOption,
  type RedisOptions,
  redisOption,
  redisTarget,
} from "./shared-options.ts";

/** What a started app needs and gives: app.ts's `startApp`. */
export type StartApp = (options: {
  readonly set: PolicySet;
  readonly redis: RedisTarget;
  readonly roles: readonly ("scheduler" | "worker")[];
  readonly owner?: string | undefined;
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly log: EventLog;
  readonly metrics?: Metrics | undefined;
  readonly takeOverAfterMs: number;
  readonly drainMs: number;
  readonly toldToStop: AbortSignal;
  readonly watch?: { readonly path: string; readonly checks: PolicyChecks };
}) => Promise<{
  stop(): Promise<void>;
  unreadiness(): readonly { readonly part: string; readonly reason: string }[];
}>;

/** How long stopping may take beyond the drain, to close connections. */
const stopMarginMs = 4_000;

interface ServeOptions extends RedisOptions, HealthOptions {
  readonly config: string;
  readonly roles: readonly ("scheduler" | "worker")[];
  readonly owner?: string;
  readonly takeOverAfter: number;
  readonly drain: number;
}

const help = `
Writes one JSON line per event to standard output; the outcome of every task is one line "task.finished".
Changed policies are followed without a restart ("config.reloaded"); wrong ones are not ("config.rejected"), the last good ones stay in force.
SIGTERM or Ctrl-C ends it within --drain: no new starts, steps in work end, the rest stays in the queue. A second one ends it at once.

Examples:
  $ syncline serve --config policies/
  $ syncline serve --config policies/ --roles worker
  $ REDIS_URL=redis://redis:6379 syncline serve --config policies/ --prefix '{team-a}'`;

/** The command `serve`. */
export function serveCommand(io: CommandIo, startApp: StartApp): Command {
  const command = new Command("serve")
    .description("plan slots and work on tasks until stopped")
    .addOption(configOption())
    .addOption(redisOption())
    .addOption(prefixOption())
    .option("--roles <list>", "scheduler, worker or both", rolesArgument, ["scheduler", "worker"])
    .addOption(ownerOption())
    .addOption(durationOption("--take-over-after <duration>", "a worker silent for so long has died", "60s"))
    .addOption(durationOption("--drain <duration>", "how long stopping may take", "25s"))
    .addHelpText("after", help)
    .action(async (options: ServeOptions) => {
      const redis = redisTarget(options, io);
      const set = await loadPoliciesOrThrow(options.config, io);
      const plainLog = createLogger(io.settings.logLevel, io.out);
      const metrics = options.healthPort === undefined ? undefined : new Metrics();
      metrics?.takeInSet(set);
      const log = metrics === undefined ? plainLog : createMeteredLog(plainLog, metrics);
      const health = await startServeHealth(options, { roles: options.roles, stopping: io.signal, log, metrics });
      try {
        const app = await startApp({
          set,
          redis,
          roles: options.roles,
          owner: options.owner,
          variables: io.settings.variables,
          log,
          metrics,
          takeOverAfterMs: options.takeOverAfter,
          drainMs: options.drain,
          toldToStop: io.signal,
          watch: { path: options.config, checks: policyChecks },
        });
        health.started(app);
        if (!io.signal.aborted)
          log.info("serve.ready", {
            roles: options.roles,
            policies: set.policies.length,
            services: set.services.size,
            config: set.contentHash,
          });
        await untilAborted(io.signal);
        log.info("serve.stopping");
        await withDeadline(
          app.stop(),
          options.drain + stopMarginMs,
          () => new OutOfReachError("stopping took too long; is Redis there?"),
        );
        log.info("serve.stopped");
      } finally {
        await health.stop();
      }
    });
  for (const option of healthOptions()) command.addOption(option);
  return command;
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

function ownerOption(): Option {
  return new Option(
    "--owner <name>",
    "whose policies these are, such as namespace/release: a second owner under the same prefix is refused",
  )
    .env("SYNCLINE_OWNER")
    .argParser((text) => {
      if (/^[\x21-\x7e]{1,128}$/.test(text)) return text;
      throw new InvalidArgumentError("a name has 1 to 128 visible ASCII characters without spaces");
    });
}

function rolesArgument(text: string): ("scheduler" | "worker")[] {
  const roles = text.split(",").map((role) => role.trim());
  const known = roles.filter((role) => role === "scheduler" || role === "worker");
  if (known.length !== roles.length)
    throw new InvalidArgumentError("the roles are scheduler and worker, separated by a comma");
  return known;
}

/** The values of `healthOptions`. */
interface HealthOptions {
  readonly healthPort?: number;
  readonly healthHost?: string;
}

/** The health of one `serve`, from before its start until after its stop. */
interface ServeHealth {
  /** Marks the process as ready, unless the app says why not. */
  started(app: { unreadiness(): Readiness["reasons"] }): void;
  stop(): Promise<void>;
}

/** `--health-port` and `--health-host`. */
function healthOptions(): Option[] {
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
 * Starts the health server, if a port is set. Not ready until `started`, nor after `stopping`
 * aborts.
 * @throws UsageError when the port is taken or not allowed.
 */
async function startServeHealth(
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
      // The server adds the charset itself.
      return { status: 200, contentType: contentType.replace(/; *charset=utf-8$/, ""), body: text };
    },
  };
}

function portArgument(text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65_535) throw new InvalidArgumentError("write a port from 1 to 65535");
  return port;
}
