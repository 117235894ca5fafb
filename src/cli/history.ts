// `syncline history`: what happened, newest first.
import { type Command, InvalidArgumentError, Option } from "commander";
import type { PolicySet } from "../config/policy-set.ts";
import { formatTook } from "../core/duration.ts";
import { UsageError } from "../core/errors.ts";
import { showClock, showInstant } from "../core/instant.ts";
import { didYouMean, nearestWord } from "../core/nearest-word.ts";
import { counted } from "../core/plain-text.ts";
import { isGood, type Outcome, type OutcomeStatus, outcomeStatuses } from "../model/outcome.ts";
import { isByHand } from "../model/task.ts";
import { findOutcomes, type OutcomeFilter, outcomesReadMax } from "../queries/outcomes.ts";
import { findRunningSet } from "../queries/policy-set.ts";
import { taskWords } from "../queries/task-words.ts";
import { History } from "../store/history.ts";
import { redisTimeMs, type Store } from "../store/redis.ts";
import { SlotLedger } from "../store/slot-ledger.ts";
import type { CommandIo, Screen } from "./command-io.ts";
import {
  choosePolicies,
  countArgument,
  findService,
  labelOption,
  othersThan,
  type RedisOptions,
  redisCommand,
  redisTarget,
  withStore,
} from "./shared-options.ts";
import { showStatus, toTable, wideOption } from "./table.ts";
import { parsePast, timeForms, timezoneFor, timezoneOption } from "./time-argument.ts";

interface HistoryOptions extends RedisOptions, Omit<OutcomeFilter, "statuses" | "sees"> {
  readonly limit: number;
  readonly status?: ReadonlySet<OutcomeStatus>;
  readonly since?: string;
  readonly until?: string;
  readonly timezone?: string;
  readonly ids?: true;
  readonly ndjson?: true;
  readonly label: readonly string[];
}

const help = `
Times: ${timeForms}; 02:30 is the newest one, and 7d is seven days ago.

Examples:
  $ syncline history
  $ syncline history contracts-nightly --status bad --since 7d
  $ syncline history --since yesterday --until 06:00 --status failed,unknown
  $ syncline history --task 42 --origin manual
  $ syncline history --json | jq '.[0]'`;

/** The command `history`. */
export function historyCommand(io: CommandIo): Command {
  return redisCommand("history")
    .argument("[policy]", "only of this policy")
    .option("-n, --limit <count>", "how many", countArgument(outcomesReadMax), 20)
    .option("--since <time>", "only what ended at this time or later")
    .option("--until <time>", "only what ended up to this time")
    .addOption(timezoneOption())
    .option("--status <status,…>", `only ${outcomeStatuses.join(", ")}; or good, bad`, statusArgument)
    .addOption(new Option("--origin <origin>", "only tasks by schedule, or by hand").choices(["schedule", "manual"]))
    .option("--task <name>", "only this sync job, list or object, or the task of this id")
    .option("--service <name>", "only of this service")
    .addOption(labelOption())
    .option("--ids", "show the ids of the tasks, too")
    .option("--json", "print a JSON array")
    .addOption(new Option("--ndjson", "print one JSON object a line").conflicts("json"))
    .addOption(wideOption())
    .addHelpText("after", help)
    .action((policy: string | undefined, options: HistoryOptions) =>
      withStore(redisTarget(options, io), async (store) => {
        const history = new History(store);
        const set = (await findRunningSet(store))?.set;
        const policies = namedPolicies(policy, options, set);
        const zones = zonesOf(options, policies, set);
        const span = parsePast(options, { nowMs: await redisTimeMs(store), timezone: zones.timezone });
        const filter = { ...options, statuses: options.status };
        const found = await findOutcomes(history, { policies, span, filter, limit: options.limit });
        const isEmpty = found.outcomes.length === 0;
        if (isEmpty && policy !== undefined) await checkKnownPolicy(policy, store);
        if (isEmpty && options.service !== undefined && set !== undefined) findService(set, options.service);
        show(found.outcomes, { policy, zoneOf: zones.of, options }, io);
        await reportReach(history, found.reach, policies && new Set(policies), io);
        if (isEmpty && set === undefined)
          io.err(`no process has run under the prefix ${options.prefix}: check --prefix and --redis-url`);
      }),
    );
}

/** The policies to read; undefined: all of which outcomes are kept. */
function namedPolicies(policy: string | undefined, { label }: HistoryOptions, set: PolicySet | undefined) {
  if (label.length === 0) return policy === undefined ? undefined : [policy];
  if (set === undefined) throw new UsageError("no `syncline serve` has run here, so no policy with a label is known");
  const names = policy === undefined ? [] : [policy];
  return choosePolicies(set, { names, label }).map(({ name }) => name);
}

/** The zone in which times are read, and that of each policy: the option, or its own. */
function zonesOf(
  { timezone: option, service }: Pick<HistoryOptions, "timezone" | "service">,
  named: readonly string[] | undefined,
  set: PolicySet | undefined,
) {
  const policies = set?.policies ?? [];
  const names = named && new Set(named);
  const meant = policies.filter(
    (one) => names?.has(one.name) !== false && (service === undefined || one.service === service),
  );
  const timezone = timezoneFor(option, meant);
  const zones = option === undefined ? new Map(policies.map((policy) => [policy.name, policy.timezone])) : new Map();
  return { timezone, of: (name: string): string => zones.get(name) ?? timezone };
}

/** Parses `failed,unknown`, `good` or `bad`. */
function statusArgument(text: string): ReadonlySet<OutcomeStatus> {
  return new Set(
    text.split(",").flatMap((word) => {
      if (word === "good" || word === "bad") return outcomeStatuses.filter((one) => isGood[one] === (word === "good"));
      const status = outcomeStatuses.find((one) => one === word);
      if (status !== undefined) return [status];
      throw new InvalidArgumentError(`there is no status ${word}: ${didYouMean(word, outcomeStatuses)}`);
    }),
  );
}

interface OutcomeColumns {
  /** The zone of a policy's local times; undefined: UTC alone. */
  readonly zoneOf?: (policy: string) => string;
  readonly ids?: boolean | undefined;
  /** Two lines an outcome where it is too wide for one. */
  readonly isBrief?: boolean;
}

/** Outcomes as a table. */
export function outcomeTable(
  outcomes: readonly Outcome[],
  screen: Screen,
  { zoneOf = () => "UTC", ids = false, isBrief = false }: OutcomeColumns = {},
): string {
  const isLocal = outcomes.some(({ policy }) => zoneOf(policy) !== "UTC");
  const rows = outcomes.map((outcome) => {
    const timezone = zoneOf(outcome.policy);
    const zone = timezone === "UTC" ? undefined : timezone;
    const finishedMs = Date.parse(outcome.finishedAt);
    const local = zone === undefined ? "" : showClock(finishedMs, zone, finishedMs);
    const task = taskWords({ ...outcome, slotMs: Date.parse(outcome.slot) }, zone, finishedMs);
    return [
      showInstant(finishedMs),
      ...(isLocal ? [local] : []),
      outcome.policy,
      task,
      showStatus(outcome, screen.colours),
      outcome.durationMs === null ? "" : formatTook(outcome.durationMs),
      `${coversOf(outcome)}${outcome.detail}${offendersOf(outcome)}`,
      ...(ids ? [outcome.taskId] : []),
    ];
  });
  const heading = ["finished", ...(isLocal ? ["local"] : []), "policy", "task", "status", "took", "detail"];
  return toTable(ids ? [...heading, "id"] : heading, rows, screen, { leaveOut: ["local", "took"], isBrief });
}

/** The items to blame of a poll: `; Draft 3 (3), Draft 4 (4) and 2 more`. */
function offendersOf({ offending = 0, offendingItems = [] }: Outcome): string {
  if (offendingItems.length === 0) return "";
  const more = offending > offendingItems.length ? ` and ${offending - offendingItems.length} more` : "";
  return `; ${offendingItems.join(", ")}${more}`;
}

/** Older slots that a task covers: `for 35 older slots since 2026-11-21 06:30:00Z as well; `. */
function coversOf({ covers, coveredSlots = [] }: Outcome): string {
  if (covers === 0) return "";
  const [first] = coveredSlots;
  const since = first === undefined || coveredSlots.length < covers ? "" : ` since ${showInstant(Date.parse(first))}`;
  return `for ${counted(covers, "older slot")}${since} as well; `;
}

/** @throws UsageError about an unknown policy: a typo must not look like an empty history. */
export async function checkKnownPolicy(
  policy: string,
  store: Store,
  subcommands: readonly string[] = [],
): Promise<void> {
  const planned = await new SlotLedger(store).policies();
  if (isByHand(policy) || planned.includes(policy) || (await new History(store).newest(1, policy)).length > 0) return;
  const isCommand = nearestWord(policy, subcommands) !== undefined;
  const others = othersThan(policy, isCommand ? subcommands : planned, "`syncline status`");
  throw new UsageError(
    `nothing is known of a policy ${policy}: no outcome of it is kept, and no scheduler plans it here; ${others}`,
  );
}

interface HistoryView {
  readonly policy: string | undefined;
  readonly zoneOf: (policy: string) => string;
  readonly options: HistoryOptions;
}

function show(outcomes: readonly Outcome[], { policy, zoneOf, options }: HistoryView, io: CommandIo): void {
  const { limit, json, ndjson, ids } = options;
  if (json) io.out(JSON.stringify(outcomes));
  else if (ndjson) for (const outcome of outcomes) io.out(JSON.stringify(outcome));
  else if (outcomes.length > 0) io.out(outcomeTable(outcomes, io, { zoneOf, ids, isBrief: !ids }));
  else {
    const { status, since, until, origin, task, service, label } = options;
    const filters = [status, since, until, origin, task, service, label[0]];
    const why = filters.some((one) => one !== undefined) ? ": none of those that are kept fits" : " yet";
    io.err(`no outcome${policy === undefined ? "" : ` of ${policy}`}${why}`);
  }
  if (outcomes.length === limit) io.err(`only the newest ${limit}; --limit shows more`);
}

/**
 * Says which outcomes since an instant are no longer kept, and that the reading was cut there.
 * `policies`: those that are meant; undefined: all.
 */
export async function reportReach(
  history: History,
  reach: { readonly fromMs: number; readonly isCut: boolean },
  policies: ReadonlySet<string> | undefined,
  io: CommandIo,
): Promise<void> {
  if (reach.isCut)
    io.err(`only the newest ${outcomesReadMax} outcomes were looked at, back to ${showInstant(reach.fromMs)}`);
  if (policies?.size === 0) return;
  const kept = policies ? await history.keptSinceOf([...policies]) : (await history.keptSince()).values().toArray();
  const dropped = kept.flatMap((sinceMs) => (sinceMs !== undefined && sinceMs > reach.fromMs ? [sinceMs] : []));
  if (dropped.length === 0) return;
  const [one] = policies?.size === 1 ? policies : [];
  const whose = one ?? (dropped.length === 1 ? "one policy" : `${dropped.length} policies`);
  const sinceMs = dropped.reduce((latest, one) => Math.max(latest, one));
  io.err(`older outcomes of ${whose} are no longer kept: all are here since ${showInstant(sinceMs)}`);
}
