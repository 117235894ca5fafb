// `syncline history`: what happened, newest first.
import { Command, InvalidArgumentError } from "commander";
import { formatDuration } from "../core/duration.ts";
import { History } from "../store/history.ts";
import { openStore } from "../store/redis.ts";
import { type Outcome, type OutcomeStatus, outcomeStatuses } from "../tasks/outcome.ts";
import type { CommandIo } from "./command-io.ts";
import { countArgument, prefixOption, type RedisOptions, redisOption, redisTarget } from "./shared-options.ts";
import { showInstant, showStatus, toTable } from "./table.ts";

interface HistoryOptions extends RedisOptions {
  readonly limit: number;
  readonly status?: OutcomeStatus;
  readonly json?: true;
}

/** Makes the command. */
export function historyCommand(io: CommandIo): Command {
  return new Command("history")
    .description("the outcomes of tasks, newest first")
    .argument("[policy]", "only of this policy")
    .addOption(redisOption())
    .addOption(prefixOption())
    .option("-n, --limit <count>", "how many", countArgument(20_000), 20)
    .option("--status <status>", `only ${outcomeStatuses.join(", ")}`, statusArgument)
    .option("--json", "print a JSON array")
    .addHelpText(
      "after",
      "\nExamples:\n  $ syncline history\n  $ syncline history contracts-nightly --status failed\n  $ syncline history --json | jq '.[0]'",
    )
    .action(async (policy: string | undefined, options: HistoryOptions) => {
      const store = await openStore(redisTarget(options, io));
      try {
        const limit = options.status === undefined ? options.limit : 20_000;
        const outcomes = (await new History(store).newest(limit, policy)).filter(
          (outcome) => options.status === undefined || outcome.status === options.status,
        );
        show(outcomes.slice(0, options.limit), options, io);
      } finally {
        await store.close();
      }
    });
}

/** Outcomes as a table for people; of each poll at most `itemsMax` of the items that offend are named, below its detail. */
export function outcomeTable(outcomes: readonly Outcome[], colours: boolean, itemsMax = 3): string {
  const rows = outcomes.map((outcome) => [
    showInstant(Date.parse(outcome.finishedAt)),
    outcome.policy,
    `${outcome.kind} ${outcome.target}`,
    showStatus(outcome.status, colours),
    outcome.durationMs === null
      ? ""
      : formatDuration(
          outcome.durationMs < 1_000 ? Math.round(outcome.durationMs) : Math.round(outcome.durationMs / 1_000) * 1_000,
        ),
    [`${coversOf(outcome)}${outcome.detail}`.slice(0, 100), ...offendersOf(outcome, itemsMax)].join("\n"),
  ]);
  return toTable(["finished", "policy", "task", "status", "took", "detail"], rows, colours);
}

/** The items that offend, one a line, and how many more there are. */
function offendersOf({ offending = 0, offendingItems = [] }: Outcome, itemsMax: number): readonly string[] {
  const shown = offendingItems.slice(0, itemsMax).map((name) => `- ${name}`);
  return offending > shown.length ? [...shown, `- and ${offending - shown.length} more`] : shown;
}

/** What else a task stands for: `for 35 older slots since 2026-11-21 06:30:00Z as well; `. */
function coversOf({ covers, coveredSlots = [] }: Outcome): string {
  if (covers === 0) return "";
  const [first] = coveredSlots;
  const since = first === undefined || coveredSlots.length < covers ? "" : ` since ${showInstant(Date.parse(first))}`;
  return `for ${covers} older ${covers === 1 ? "slot" : "slots"}${since} as well; `;
}

function show(outcomes: readonly Outcome[], options: HistoryOptions, io: CommandIo): void {
  if (options.json) io.out(JSON.stringify(outcomes));
  else if (outcomes.length === 0) io.err("nothing in the history yet");
  else io.out(outcomeTable(outcomes, io.colours));
}

function statusArgument(text: string): OutcomeStatus {
  const status = outcomeStatuses.find((known) => known === text);
  if (status === undefined) throw new InvalidArgumentError(`the statuses are ${outcomeStatuses.join(", ")}`);
  return status;
}
