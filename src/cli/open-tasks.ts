// Which tasks have an outcome, are queued, or are lost: the second half of `syncline audit`.

import { isFromMasks, type Task } from "../model/task.ts";
import { targetOf } from "../model/task-id.ts";
import type { Producer } from "../queue/producer.ts";
import type { History } from "../store/history.ts";
import type { SlotLedger } from "../store/slot-ledger.ts";
import { entryRetentionMs, type StartJournal } from "../store/start-journal.ts";

/** Where tasks may be found. */
export interface TaskPlaces {
  readonly history: Pick<History, "outcome" | "outcomes" | "keptSinceMs">;
  readonly journal: StartJournal;
  readonly producer: Producer;
  readonly ledger: SlotLedger;
}

/** What identifies a task in all of these places. */
export type TaskName = Pick<Task, "policy" | "service" | "kind" | "target" | "slotMs" | "id">;

/**
 * The tasks of one policy that have neither an outcome nor a place in the queue, and how many are
 * still queued. Tasks that may have been dropped are not lost: outcomes older than the kept ones,
 * and tasks over masks that fanned out.
 */
export async function findLostTasks(
  tasks: readonly TaskName[],
  places: TaskPlaces,
): Promise<{ readonly lost: readonly TaskName[]; readonly inFlight: number }> {
  const open = await withoutOutcome(await expand(await withoutOutcome(tasks, places), places), places);
  const outbox = (await places.ledger.unqueued(Number.POSITIVE_INFINITY)).flatMap((step) => step.tasks);
  const waiting = new Set(outbox.map(({ id }) => id));
  const gone: TaskName[] = [];
  for (const task of open) {
    if (!waiting.has(task.id) && !((await places.producer.find(task))?.isInFlight ?? false)) gone.push(task);
  }
  // A task may have ended or fanned out while the queue was asked.
  const ended = await withoutOutcome(await expand(gone, places), places);
  const lost = ended.length === 0 ? [] : await withoutDropped(ended, places);
  return { lost, inFlight: open.length - gone.length };
}

/** Asked last: a worker may have recorded newer outcomes meanwhile, and so dropped these. */
async function withoutDropped(tasks: readonly TaskName[], { history, ledger }: TaskPlaces): Promise<TaskName[]> {
  const keptSinceMs = (await history.keptSinceMs(tasks[0]?.policy ?? "")) ?? 0;
  const masksKeptSinceMs = (await ledger.nowMs()) - entryRetentionMs;
  return tasks.filter(
    (task) => task.slotMs > (isFromMasks(task) ? Math.max(keptSinceMs, masksKeptSinceMs) : keptSinceMs),
  );
}

async function withoutOutcome(tasks: readonly TaskName[], { history }: TaskPlaces): Promise<TaskName[]> {
  const outcomes = await history.outcomes(
    tasks[0]?.policy ?? "",
    tasks.map(({ id }) => id),
  );
  return tasks.filter(({ id }) => !outcomes.has(id));
}

/** A task over masks is over when it has fanned out. */
async function expand(tasks: readonly TaskName[], { journal }: TaskPlaces): Promise<TaskName[]> {
  const expanded: TaskName[] = [];
  for (const task of tasks) {
    const into = await journal.expandedInto(task.id);
    if (into === undefined) expanded.push(task);
    else expanded.push(...into.map((id) => ({ ...task, id, target: targetOf(id) })));
  }
  return expanded;
}
