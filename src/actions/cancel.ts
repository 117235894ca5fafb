// Cancels a task: what is not sent never goes out, and Syncline stops to follow what is. The
// journal decides, and the next step of the task records the outcome. Called by `syncline cancel`
// and web/.
import type { Task } from "../model/task.ts";
import type { Producer } from "../queue/producer.ts";
import { findTaskInFlight } from "../queue/tasks-in-flight.ts";
import type { Store } from "../store/redis.ts";
import { SlotLedger } from "../store/slot-ledger.ts";
import type { StartState } from "../store/start-entry.ts";
import { StartJournal } from "../store/start-journal.ts";
import { type By, beginChange } from "./record-change.ts";

/**
 * What the cancel met. `claimed`: the request was not sent, nor will be; nor will an activation
 * before it, unless it was. `sending`, `confirmed`: the request is out. `settled`: it had ended.
 * `fanned-out`: tasks of sync jobs stand in its place.
 */
export type CancelResult = StartState | "fanned-out";

/** Cancels a task in flight. It needs no worker; its outcome does. */
export async function cancel(
  task: Task,
  { store, producer, by }: { readonly store: Store; readonly producer: Pick<Producer, "expedite">; readonly by: By },
): Promise<CancelResult> {
  const { actor, reason } = by;
  const journal = new StartJournal(store);
  const change = await beginChange(store, by, { what: "cancel", subject: `task ${task.id}` });
  const cancelled = `cancelled by ${actor}${reason === null ? "" : `: ${reason}`}`;
  let met = await journal.cancel(task.id, cancelled);
  const entry = met === "settled" ? await journal.entry(task.id) : undefined;
  // Its answer got lost: the task has ended as cancelled before the command was sent again.
  if (entry?.cancelled === cancelled) met = entry.sentAtMs === undefined ? "claimed" : "sending";
  if (met === "settled" || met === "fanned-out") {
    await change.drop();
    return met;
  }
  await change.end({ before: { state: met } });
  await producer.expedite(task);
  return met;
}

/** Finds a task of these services in flight, also on its way into the queue. */
export async function findToCancel(id: string, services: readonly string[], store: Store): Promise<Task | undefined> {
  const found = await findTaskInFlight(store, services, id);
  if (found !== undefined) return found;
  const planned = (await new SlotLedger(store).outbox()).flatMap((planned) => planned.tasks);
  return planned.find((task) => task.id === id && services.includes(task.service));
}
