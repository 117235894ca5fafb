// `syncline status`: did everything run, did it end well, and if not, what needs a person?
import type { Command } from "commander";
import type { PolicySet } from "../config/policy-set.ts";
import { systemClock } from "../core/clock.ts";
import { errorText, UsageError } from "../core/errors.ts";
import { showInstant } from "../core/instant.ts";
import { isRedisOutage } from "../core/redis-outage.ts";
import { needsPerson, readPolicyLines, withSlots } from "../queries/policy-lines.ts";
import { isInstallationWell, readStatus } from "../queries/status.ts";
import type { RedisTarget, Store } from "../store/redis.ts";
import type { CommandIo } from "./command-io.ts";
import { withStore } from "./connections.ts";
import {
  choosePolicies,
  countArgument,
  labelOption,
  type PolicyChoice,
  policySetFor,
  redisCommand,
  redisTarget,
  refuseIdle,
  type SetOptions,
} from "./shared-options.ts";
import { showStatusAt } from "./status-at.ts";
import { type FullStatus, statusToJson, statusToText } from "./status-report.ts";
import { wideOption } from "./table.ts";

interface StatusOptions extends SetOptions, PolicyChoice {
  readonly limit: number;
  readonly watch?: true;
  readonly at?: string;
}

const watchEveryMs = 2_000;
const clearScreen = "\u001b[H\u001b[2J";

const help = `
One line a policy, the worst first: quarantined, failing, unknown (a start that may have happened), missed (a slot was), late (for its deadline), unplanned (due, and no scheduler has planned it), blocked, conflicts; then service-down (its breaker is open: nothing starts), paused, new (nothing ended yet), ok. "failed ×3": three in a row.
What \`syncline acknowledge\` names stands below the rest that needs a person.
Then services, processes and the policies that they run, lists that cost too much, sinks, the last digests.
Exit code 1 when something needs a person: a policy in one of the states up to conflicts, a role without a process, an open breaker, a service that asked for patience, newer files rejected, processes with different policies for 5 minutes, a second owner, a sink stuck for 15 minutes, a last digest that a sink did not take.
With --at (06:00, yesterday 06:00, 2026-12-01T06:00) exit code 1 when a policy that was due from the midnight before had not succeeded by then.

Examples:
  $ syncline status
  $ syncline status --at 06:00
  $ syncline status --label team=hr --watch
  $ syncline status --json | jq '.policies[] | select(.needsPerson)'`;

/** The command `status`. */
export function statusCommand(io: CommandIo): Command {
  return redisCommand("status", "set")
    .argument("[policies...]", "only these policies")
    .option("--service <name>", "only this service and its policies")
    .addOption(labelOption())
    .option("-n, --limit <count>", "how many policies to show", countArgument(10_000), 50)
    .option("--at <time>", "had everything succeeded by then that was due since midnight? In each policy's zone")
    .option("--watch", "show it again every 2 seconds, until Ctrl-C")
    .option("--json", "print JSON, with all policies")
    .addOption(wideOption())
    .addHelpText("after", help)
    .action(async (names: string[], options: StatusOptions, command: Command) => {
      if (options.json) refuseIdle(command, ["limit", "watch", "wide"], "with --json");
      if (options.watch && io.progress === undefined)
        throw new UsageError(
          "--watch draws on a terminal, and this is none: leave it out, or use `watch syncline status`",
        );
      if (options.at !== undefined) refuseIdle(command, ["watch"], "with --at");
      const target = redisTarget(options, io);
      await withStore(target, (store) => {
        const show = () => showStatus({ ...options, names }, { store, target, io });
        return options.watch ? repeat(show, io) : show();
      });
    });
}

interface Parts {
  readonly store: Store;
  readonly target: RedisTarget;
  readonly io: CommandIo;
}

async function showStatus(options: StatusOptions, { store, target, io }: Parts): Promise<void> {
  const set = chosenSet(await policySetFor(options, store, io), options);
  const { at } = options;
  if (at !== undefined) return showStatusAt(set.policies, { ...options, at }, { store, io });
  const status = await readStatus(set, store, target);
  const lines = await readPolicyLines(set.policies, store, status);
  const shown = await withSlots(options.json ? lines : lines.slice(0, options.limit), store, status.nowMs);
  const isWell = isInstallationWell(status) && !lines.some(({ health }) => needsPerson[health]);
  const full: FullStatus = { status, lines, shown, isWell };
  io.exitCode = isWell ? 0 : 1;
  if (options.json) return io.out(statusToJson(full));
  const now = options.watch ? [`${clearScreen}${showInstant(status.nowMs)}, every 2 s; Ctrl-C ends it\n`] : [];
  const isUnknown = status.config.kept === undefined && status.config.replicas.length === 0;
  const never = isUnknown
    ? [`No process has run under the prefix ${target.prefix}: this is what the files say.\n`]
    : [];
  io.out([...now, ...never, ...statusToText(full, io)].join("\n"));
}

/** The chosen policies, and of the services only those that they need. */
function chosenSet(set: PolicySet, choice: PolicyChoice): PolicySet {
  const policies = choosePolicies(set, choice);
  if (policies.length === set.policies.length) return set;
  const needed = new Set(policies.map(({ service }) => service));
  return { ...set, policies, services: new Map([...set.services].filter(([name]) => needed.has(name))) };
}

/** Until the user stops it; a Redis that does not answer for a while does not end it. */
async function repeat(show: () => Promise<void>, io: CommandIo): Promise<void> {
  while (!io.signal.aborted) {
    await show().catch((error: unknown) => {
      if (!isRedisOutage(error)) throw error;
      io.out(`${clearScreen}Redis does not answer (${errorText(error)}); trying again`);
    });
    await systemClock.sleep(watchEveryMs, io.signal);
  }
}
