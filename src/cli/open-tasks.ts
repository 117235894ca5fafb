// Which tasks have an outcome, are on their way, or are nowhere: the second half of `syncline audit`.
import type { Producer } from "../queue/producer.ts";
import type { History } from "../store/history.ts";
import type { SlotLedger } from "../store/slot-ledger.ts";
import type { StartJournal } from "../store/start-journal.ts";
import type { Task } from "../tasks/task.ts";

/** Where tasks may be found. */
export interface TaskPlaces {
  readonly history: History;
  readonly journal: StartJournal;
  readonly producer: Producer;
  readonly ledger: SlotLedger;
}

/** What names a task in all of these places. */
export type TaskName = Pick<Task, "service" | "kind" | "id">;

/** The tasks that have neither an outcome nor a place in the queue, and how many are still on their way. */
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
  // A task may have ended, or become others, while the queue was asked.
  const lost = await withoutOutcome(await expand(gone, places), places);
  return { lost, inFlight: open.length - lost.length };
}

async function withoutOutcome(tasks: readonly TaskName[], { history }: TaskPlaces): Promise<TaskName[]> {
  const outcomes = await history.outcomes(tasks.map(({ id }) => id));
  return tasks.filter(({ id }) => !outcomes.has(id));
}

/** A task over masks is over when others stand for it. */
async function expand(tasks: readonly TaskName[], { journal }: TaskPlaces): Promise<TaskName[]> {
  const expanded: TaskName[] = [];
  for (const task of tasks) {
    const into = await journal.expandedInto(task.id);
    expanded.push(...(into ?? [task.id]).map((id) => ({ ...task, id })));
  }
  return expanded;
}
