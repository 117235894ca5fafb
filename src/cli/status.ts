// `syncline status`: did everything run, did it end well, and if not, what needs a person? With
// --at: had everything succeeded by then that was due since midnight?
import type { Command } from "commander";
import type { Policy, PolicySet } from "../config/policy-set.ts";
import { systemClock } from "../core/clock.ts";
import { errorText, UsageError } from "../core/errors.ts";
import { getOrMake } from "../core/get-or-make.ts";
import { type Interval, showInstant, toIso } from "../core/instant.ts";
import { counted } from "../core/plain-text.ts";
import { isRedisOutage } from "../core/redis-outage.ts";
import { listItems, mustBeActedOn } from "../queries/attention.ts";
import { needsPerson, readPolicyLines, withSlots } from "../queries/policy-lines.ts";
import { isInstallationWell, readStatus } from "../queries/status.ts";
import { type PolicyAt, readStatusAt } from "../queries/status-at.ts";
import { type RedisTarget, redisTimeMs, type Store } from "../store/redis.ts";
import type { CommandIo } from "./command-io.ts";
import {
  choosePolicies,
  countArgument,
  labelOption,
  type PolicyChoice,
  policySetFor,
  redisCommand,
  redisTarget,
  refuseIgnoredOptions,
  type SetOptions,
  withStore,
} from "./shared-options.ts";
import { type FullStatus, statusToJson, statusToText } from "./status-report.ts";
import { toTable, wideOption } from "./table.ts";
import { parseTime, readTime } from "./time-argument.ts";

interface StatusOptions extends SetOptions, PolicyChoice {
  readonly limit: number;
  readonly watch?: true;
  readonly at?: string;
}

const watchEveryMs = 2_000;
/** How many times of `--at` are named, one a zone; of more zones one a day. */
const zonesNamedMax = 3;
const clearScreen = "\u001b[H\u001b[2J";

const help = `
One line a policy, the worst first: quarantined, failing, unknown (whether it started, or how it ended), missed (a slot was), late (for its deadline), unplanned (due, and no scheduler has planned it), blocked, conflicts; then service-down (its breaker is open: nothing starts), paused, new (nothing ended yet), ok. "failed ×3": three in a row.
What \`syncline acknowledge\` names stands below the rest that needs a person.
Then services, processes and the policies that they run, lists that cost too much or cannot be read, sinks, the last digests.
Exit code 1 when something needs a person: a policy in one of the states up to conflicts, a role without a process, an open breaker, a service that throttles, newer files rejected, processes with different policies for 5 minutes, a second owner, a list that cannot be read, a sink stuck for 15 minutes, one that refused a notice and has taken none since, a last digest that a sink did not take.
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
      if (options.json) refuseIgnoredOptions(command, ["limit", "watch"], "with --json");
      if (options.watch && io.progress === undefined)
        throw new UsageError(
          "--watch draws on a terminal, and this is none: leave it out, or use `watch syncline status`",
        );
      if (options.at !== undefined) refuseIgnoredOptions(command, ["watch"], "with --at");
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
  if (at !== undefined) return showStatusAt(at, set.policies, options, { store, io });
  const status = await readStatus(set, store, target);
  const lines = await readPolicyLines(set.policies, store, status);
  const shown = await withSlots(options.json ? lines : lines.slice(0, options.limit), store, status.nowMs);
  const isBad = lines.some(({ health }) => needsPerson[health]) || listItems(status).some(mustBeActedOn);
  const isWell = isInstallationWell(status) && !isBad;
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

/** The chosen policies, and of the services only the named one, or those that they need. */
function chosenSet(set: PolicySet, choice: PolicyChoice): PolicySet {
  const policies = choosePolicies(set, choice);
  const { service: named } = choice;
  if (named === undefined && policies.length === set.policies.length) return set;
  const needed = new Set(named === undefined ? policies.map(({ service }) => service) : [named]);
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

/** Judges the policies and prints it; exit code 1 when one had not succeeded. */
async function showStatusAt(
  at: string,
  policies: readonly Policy[],
  { limit, json }: StatusOptions,
  { store, io }: Omit<Parts, "target">,
): Promise<void> {
  const spans = spansOf(at, await redisTimeMs(store));
  const found = await readStatusAt(policies, spans, store);
  const behind = found.filter(({ verdict }) => verdict === "not");
  io.exitCode = behind.length === 0 ? 0 : 1;
  if (json) return io.out(toJson(found));
  io.out(sumOf(found));
  const rows = behind.slice(0, limit).map(({ policy, why }) => [policy.name, why]);
  if (rows.length > 0) io.out(toTable(["not succeeded", "why"], rows, io));
  if (behind.length > limit) io.out(`and ${behind.length - limit} more: --limit shows more, --json all`);
}

/** From the midnight before a time up to it, once for each zone. @throws UsageError */
function spansOf(at: string, nowMs: number): (policy: Policy) => Interval {
  const known = new Map<string, Interval>();
  const make = (timezone: string) => {
    const context = { nowMs, timezone, side: "past" } as const;
    const toMs = parseTime(at, "--at", context);
    if (toMs > nowMs)
      throw new UsageError(
        `--at ${at} is still to come in ${timezone}: \`syncline plan\` shows what is due until then`,
      );
    const date = showInstant(toMs - 1, timezone).slice(0, 10);
    return { fromMs: readTime(date, context)?.nearMs ?? toMs - 86_400_000, toMs };
  };
  return ({ timezone }) => getOrMake(known, timezone, make);
}

function sumOf(found: readonly PolicyAt[]): string {
  const times = new Map(found.map(({ policy, span }) => [span.toMs, showInstant(span.toMs, policy.timezone)]));
  const count = (wanted: PolicyAt["verdict"]) => found.filter(({ verdict }) => verdict === wanted).length;
  const [good, idle, fresh] = [count("succeeded"), count("nothing-due"), count("new")];
  const due = found.length - idle - fresh;
  const others = idle === 0 ? "" : `; ${counted(idle, "policy", "policies")} had nothing due`;
  const later = fresh === 0 ? "" : `; ${counted(fresh, "policy is", "policies are")} planned only since later`;
  const shown = [...times.values()];
  const ofDays = [...new Map(shown.map((time) => [time.slice(0, 10), time])).values()];
  const named = shown.length <= zonesNamedMax ? shown : ofDays;
  const when = `${named.join(", ")}${named.length === shown.length ? "" : " and the same time in other zones"}`;
  return `at ${when}, since the midnight before: ${good} of ${counted(due, "policy", "policies")} due had succeeded${others}${later}`;
}

function toJson(found: readonly PolicyAt[]): string {
  const policies = found.map(({ policy, span, verdict, why }) => ({
    ...{ policy: policy.name, from: toIso(span.fromMs), at: toIso(span.toMs), verdict, why },
  }));
  return JSON.stringify({ v: 1, ok: found.every(({ verdict }) => verdict !== "not"), policies });
}
