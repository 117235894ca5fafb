// Writes the audit record of a change by hand. Called by every command that changes something for others, after it did.
import { errorText } from "../core/errors.ts";
import { Changes } from "../store/changes.ts";
import type { Store } from "../store/redis.ts";
import type { Change } from "../tasks/change.ts";
import type { CommandIo } from "./command-io.ts";
import { currentActor } from "./pause-subject.ts";

/** What is recorded beside who and when. */
export type DoneByHand = Pick<Change, "what" | "subject" | "reason" | "before" | "after">;

/** Records a change. What was done stays done when that fails; it is said. */
export async function recordChange(store: Store, io: CommandIo, done: DoneByHand): Promise<void> {
  try {
    await new Changes(store).add({ actor: currentActor(), ...done });
  } catch (error) {
    io.err(`done, but not in the record of changes: ${errorText(error)}`);
  }
}
