// Which conflicts are gone after a run, and which are still there: two counts of the whole list, one before and one after, beside what
// appeared in between. Called by run.ts and baseline.ts. Where one of the counts is missing it says nothing, never 0.
import { censusOfJob, censusTotal } from "../feeds/census.ts";
import type { StartEntry } from "../store/start-entry.ts";
import type { Task } from "../tasks/task.ts";
import { type Appeared, type Baseline, feedOf, parseBaseline } from "./evidence.ts";
import type { WorkParts } from "./parts.ts";
import type { Ending } from "./step.ts";

/** How many conflicts there are, and whose: the sync job's where the mapping says whose a conflict is, else the repository's. */
type ConflictCount = NonNullable<Baseline["conflictsBefore"]>;

/** How many conflicts there are right before a run; undefined when the last walk did not see the whole list. */
export async function conflictsBefore(
  task: Task,
  parts: WorkParts,
  baseline: Pick<Baseline, "conflictDetails">,
): Promise<ConflictCount | undefined> {
  const counted = await countNow(task, parts);
  return counted?.seq === baseline.conflictDetails ? counted?.conflicts : undefined;
}

/** What became of the conflicts from before a run that has just ended; empty where that cannot be known. */
export async function conflictChange(
  task: Task,
  parts: WorkParts,
  { entry, appeared, ending }: { readonly entry: StartEntry; readonly appeared: Appeared; readonly ending: Ending },
): Promise<Pick<Ending, "goneConflicts" | "stillConflicts">> {
  const before = parseBaseline(entry.baseline).conflictsBefore;
  // Only of a run that is over can be said what it did away with: a walk since its end is behind such an ending (settle.ts).
  const isOver = ["succeeded", "conflicts", "failed"].includes(ending.status);
  if (before === undefined || appeared.newConflicts === undefined || !isOver) return {};
  const after = await countNow(task, parts);
  if (after === undefined || after.seq !== appeared.conflictDetails.seq || after.conflicts.of !== before.of) return {};
  return compareConflicts(before.count, after.conflicts.count, appeared.newConflicts) ?? {};
}

/**
 * How many of those from before are gone and still there. One that appeared and vanished again in between counts as new and as gone.
 * undefined when the numbers contradict each other: some have vanished before the first count and come back.
 */
export function compareConflicts(
  before: number,
  after: number,
  appeared: number,
): { readonly goneConflicts: number; readonly stillConflicts: number } | undefined {
  const stillConflicts = after - appeared;
  const goneConflicts = before - stillConflicts;
  return stillConflicts < 0 || goneConflicts < 0 ? undefined : { goneConflicts, stillConflicts };
}

/** The conflicts as the feed's last walk counted them, if it did and nothing was discovered since. */
async function countNow(
  task: Task,
  { book, itemReader }: Pick<WorkParts, "book" | "itemReader">,
): Promise<{ readonly seq: number; readonly conflicts: ConflictCount } | undefined> {
  const feed = feedOf(task, "conflictDetails");
  const of = itemReader(feed)?.knows("syncJobId") === true ? "syncJob" : "repository";
  const fields = [of === "syncJob" ? censusOfJob(task.target) : censusTotal];
  const first = await book.census(feed, fields);
  const status = await book.status(feed);
  // A walk may have ended in between: then its census is there by now.
  const census = first?.atMs === status.walkStartedAtMs ? first : await book.census(feed, fields);
  if (census === undefined || census.atMs !== status.walkStartedAtMs || census.seq !== status.seq) return undefined;
  return { seq: status.seq, conflicts: { of, count: census.counts[0] ?? 0 } };
}
