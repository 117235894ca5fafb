// Writes the change record of an action: who did what, when and why. Called by the other files of
// this folder, and by commands that change something at a service.
import { errorText } from "../core/errors.ts";
import type { Change } from "../model/change.ts";
import { Changes } from "../store/changes.ts";
import type { Store } from "../store/redis.ts";

/**
 * Who acts, and why; null where no reason is given. `from`: the request over HTTP. `warn` takes
 * what went wrong beside it.
 */
export interface By extends Pick<Change, "actor" | "reason" | "from"> {
  readonly warn: (text: string) => void;
}

/** What is recorded beside the actor, the reason and the time. */
export type Done = Pick<Change, "what" | "subject"> & Partial<Pick<Change, "before" | "after">>;

/** Records a change. If that fails, the change stays, and `by.warn` hears of it. */
export async function recordChange(store: Store, { warn, ...who }: By, done: Done): Promise<void> {
  try {
    await new Changes(store).add({ ...who, before: null, after: null, ...done });
  } catch (error) {
    warn(`done, but not in the record of changes: ${errorText(error)}`);
  }
}
