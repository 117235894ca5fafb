// Cancels a task: what is not sent never goes out, and Syncline stops to follow what is. The
// journal decides, and the next step of the task records the outcome. Called by `syncline cancel`.
import type { Task } from "../model/task.ts";
import type { Producer } from "../queue/producer.ts";
import type { Store } from "../store/redis.ts";
import type { StartState } from "../store/start-entry.ts";
import { StartJournal } from "../store/start-journal.ts";
import { type By, recordChange } from "./record-change.ts";

/**
 * What the cancel met. `claimed`: nothing was sent, nor will be. `sending`, `answered`: the request
 * is out. `settled`: it had ended. `fanned-out`: tasks of sync jobs stand in its place.
 */
export type Cancelled = StartState | "fanned-out";

/** Cancels a task in flight. It needs no worker; its outcome does. */
export async function cancel(
  task: Task,
  { store, producer, by }: { readonly store: Store; readonly producer: Pick<Producer, "expedite">; readonly by: By },
): Promise<Cancelled> {
  const { actor, reason } = by;
  const journal = new StartJournal(store);
  const met = await journal.cancel(task.id, `cancelled by ${actor}${reason === null ? "" : `: ${reason}`}`);
  if (met === "settled" || met === "fanned-out") return met;
  await recordChange(store, by, { what: "cancel", subject: `task ${task.id}`, before: { state: met } });
  await producer.expedite(task);
  return met;
}
