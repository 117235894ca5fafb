// `syncline history`: what happened, newest first.
import { type Command, Option } from "commander";
import { formatDuration } from "../core/duration.ts";
import { UsageError } from "../core/errors.ts";
import { showInstant } from "../core/instant.ts";
import { nearestWord } from "../core/nearest-word.ts";
import { counted, cutText } from "../core/plain-text.ts";
import { type Outcome, type OutcomeStatus, outcomeStatuses } from "../model/outcome.ts";
import { History } from "../store/history.ts";
import type { Store } from "../store/redis.ts";
import { SlotLedger } from "../store/slot-ledger.ts";
import type { CommandIo, Screen } from "./command-io.ts";
import { withStore } from "./connections.ts";
import { countArgument, type RedisOptions, redisCommand, redisTarget } from "./shared-options.ts";
import { showStatus, toTable, wideOption } from "./table.ts";

/** The most outcomes that one command reads. */
const historyReadMax = 20_000;
const detailShownMax = 100;

interface HistoryOptions extends RedisOptions {
  readonly limit: number;
  readonly status?: OutcomeStatus;
}

/** The command `history`. */
export function historyCommand(io: CommandIo): Command {
  return redisCommand("history")
    .argument("[policy]", "only of this policy")
    .option("-n, --limit <count>", "how many", countArgument(historyReadMax), 20)
    .addOption(new Option("--status <status>", `only ${outcomeStatuses.join(", ")}`).choices(outcomeStatuses))
    .option("--json", "print a JSON array")
    .addOption(wideOption())
    .addHelpText(
      "after",
      "\nExamples:\n  $ syncline history\n  $ syncline history contracts-nightly --status failed\n  $ syncline history --json | jq '.[0]'",
    )
    .action((policy: string | undefined, options: HistoryOptions) =>
      withStore(redisTarget(options, io), async (store) => {
        const history = new History(store);
        const limit = options.status === undefined ? options.limit : historyReadMax;
        const read = await history.newest(limit, policy);
        if (read.length === 0 && policy !== undefined) await checkKnownPolicy(policy, store);
        const fitting = read.filter(({ status }) => options.status === undefined || status === options.status);
        const outcomes = fitting.slice(0, options.limit);
        show(outcomes, policy, options, io);
        const isFull = outcomes.length === options.limit;
        await reportReach(history, isFull ? outcomes : read, isFull ? options.limit : limit, policy, io);
      }),
    );
}

/** Outcomes as a table. Below a poll's detail it names at most `itemsMax` offending items. */
export function outcomeTable(outcomes: readonly Outcome[], screen: Screen, itemsMax = 3): string {
  const rows = outcomes.map((outcome) => [
    showInstant(Date.parse(outcome.finishedAt)),
    outcome.policy,
    `${outcome.kind} ${outcome.target}`,
    showStatus(outcome, screen.colours),
    outcome.durationMs === null ? "" : tookOf(outcome.durationMs),
    [cutText(`${coversOf(outcome)}${outcome.detail}`, detailShownMax), ...offendersOf(outcome, itemsMax)].join("\n"),
  ]);
  return toTable(["finished", "policy", "task", "status", "took", "detail"], rows, screen);
}

function tookOf(durationMs: number): string {
  return formatDuration(durationMs < 1_000 ? durationMs : Math.round(durationMs / 1_000) * 1_000);
}

/** The offending items, one a line, and how many more there are. */
function offendersOf({ offending = 0, offendingItems = [] }: Outcome, itemsMax: number): readonly string[] {
  const shown = offendingItems.slice(0, itemsMax).map((name) => `- ${name}`);
  return offending > shown.length ? [...shown, `- and ${offending - shown.length} more`] : shown;
}

/** Older slots that a task covers: `for 35 older slots since 2026-11-21 06:30:00Z as well; `. */
function coversOf({ covers, coveredSlots = [] }: Outcome): string {
  if (covers === 0) return "";
  const [first] = coveredSlots;
  const since = first === undefined || coveredSlots.length < covers ? "" : ` since ${showInstant(Date.parse(first))}`;
  return `for ${counted(covers, "older slot")}${since} as well; `;
}

/** @throws UsageError about an unknown policy: a typo must not look like an empty history. */
export async function checkKnownPolicy(policy: string, store: Store): Promise<void> {
  const planned = await new SlotLedger(store).policies();
  if (planned.includes(policy) || (await new History(store).newest(1, policy)).length > 0) return;
  const near = nearestWord(policy, planned);
  const hint = near === undefined ? "" : `; did you mean ${near}?`;
  throw new UsageError(
    `nothing is known of a policy ${policy}: no outcome of it is kept, and no scheduler plans it here${hint}`,
  );
}

function show(
  outcomes: readonly Outcome[],
  policy: string | undefined,
  { limit, status, json }: HistoryOptions,
  io: CommandIo,
): void {
  const whose = policy === undefined ? "" : ` of ${policy}`;
  if (json) io.out(JSON.stringify(outcomes));
  else if (outcomes.length > 0) io.out(outcomeTable(outcomes, io));
  else io.err(`no outcome${whose}${status === undefined ? " yet" : `: none of those that are kept is ${status}`}`);
  if (outcomes.length === limit) io.err(`only the newest ${limit}; --limit shows more`);
}

/** Says which outcomes are not in `read`: those beyond the limit, and those no longer kept. */
export async function reportReach(
  history: History,
  read: readonly Outcome[],
  limit: number,
  policy: string | undefined,
  io: CommandIo,
): Promise<void> {
  const isCut = read.length === limit;
  const fromMs = isCut ? Date.parse(read.at(-1)?.finishedAt ?? "") : Number.NEGATIVE_INFINITY;
  if (isCut && limit === historyReadMax && policy === undefined)
    io.err(`only the newest ${limit} outcomes were looked at, back to ${showInstant(fromMs)}`);
  const kept = policy === undefined ? [...(await history.keptSince()).values()] : [await history.keptSinceMs(policy)];
  const dropped = kept.flatMap((sinceMs = Number.NEGATIVE_INFINITY) => (sinceMs > fromMs ? [sinceMs] : []));
  if (dropped.length === 0) return;
  const whose = policy ?? (dropped.length === 1 ? "one policy" : `${dropped.length} policies`);
  const sinceMs = dropped.reduce((latest, one) => Math.max(latest, one));
  io.err(`older outcomes of ${whose} are no longer kept: all are here since ${showInstant(sinceMs)}`);
}
