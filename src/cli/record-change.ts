// Writes the audit record of a change by hand. Called by every command that changes something,
// after the change.
import { errorText } from "../core/errors.ts";
import type { Change } from "../model/change.ts";
import { Changes } from "../store/changes.ts";
import type { Store } from "../store/redis.ts";
import type { CommandIo } from "./command-io.ts";
import { currentActor } from "./pause-subject.ts";

/** What is recorded beside the actor and the time. */
export type DoneByHand = Pick<Change, "what" | "subject" | "reason" | "before" | "after">;

/** Records a change. If that fails, the change stays, and the failure is reported. */
export async function recordChange(store: Store, io: CommandIo, done: DoneByHand): Promise<void> {
  try {
    await new Changes(store).add({ actor: currentActor(), ...done });
  } catch (error) {
    io.err(`done, but not in the record of changes: ${errorText(error)}`);
  }
}
