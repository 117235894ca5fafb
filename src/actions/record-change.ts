// Writes the change record of an action: who did what, when and why. The record stands before the
// change is made, and is completed after: a process that dies in between leaves no change without
// one. Called by the other files of this folder, and by commands that change a service.
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
export type ChangeFacts = Pick<Change, "what" | "subject"> & Partial<Pick<Change, "before" | "after">>;

/** A change that stands in the record as begun. */
export interface BegunChange {
  /** Completes the record. If that fails, it stays begun there, and `by.warn` hears of it. */
  end(known?: Partial<ChangeFacts>): Promise<void>;
  /** Takes the record off: nothing was changed. */
  drop(): Promise<void>;
}

/** Records that a change begins. @throws when that fails: then nothing may be changed. */
export async function beginChange(store: Store, { warn, ...who }: By, facts: ChangeFacts): Promise<BegunChange> {
  const changes = new Changes(store);
  const change = { ...who, before: null, after: null, ...facts };
  const begun = await changes.add({ ...change, isBegun: true });
  return {
    end: (known) =>
      changes
        .end(begun, { v: begun.v, at: begun.at, ...change, ...known })
        .catch((error: unknown) =>
          warn(`done, but the record of changes says only that it began: ${errorText(error)}`),
        ),
    drop: () => changes.end(begun, undefined),
  };
}
