// `syncline serve`: plans slots and works on tasks until it is told to stop.
import { Command, InvalidArgumentError } from "commander";
import type { PolicyChecks } from "../config/policy-checks.ts";
import type { PolicySet } from "../config/policy-set.ts";
import { withDeadline } from "../core/clock.ts";
import { OutOfReachError } from "../core/errors.ts";
import type { EventLog } from "../core/event-log.ts";
import { createLogger } from "../ops/logger.ts";
import { createMeteredLog } from "../ops/metered-log.ts";
import { Metrics } from "../ops/metrics.ts";
import type { RedisTarget } from "../store/redis.ts";
import type { CommandIo } from "./command-io.ts";
import { type HealthOptions, healthOptions, startServeHealth } from "./serve-health.ts";
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

/** What a started app needs and gives; program.ts passes app.ts's `startApp`. */
export type StartApp = (options: {
  readonly set: PolicySet;
  readonly redis: RedisTarget;
  readonly roles: readonly ("scheduler" | "worker")[];
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

/** What stopping may take beyond the drain: closing connections. */
const stopMarginMs = 4_000;

interface ServeOptions extends RedisOptions, HealthOptions {
  readonly config: string;
  readonly roles: readonly ("scheduler" | "worker")[];
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

/** Makes the command. */
export function serveCommand(io: CommandIo, startApp: StartApp): Command {
  const command = new Command("serve")
    .description("plan slots and work on tasks until told to stop")
    .addOption(configOption())
    .addOption(redisOption())
    .addOption(prefixOption())
    .option("--roles <list>", "scheduler, worker or both", rolesArgument, ["scheduler", "worker"])
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

function rolesArgument(text: string): ("scheduler" | "worker")[] {
  const roles = text.split(",").map((role) => role.trim());
  const known = roles.filter((role) => role === "scheduler" || role === "worker");
  if (known.length !== roles.length)
    throw new InvalidArgumentError("the roles are scheduler and worker, separated by a comma");
  return known;
}
