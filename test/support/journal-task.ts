// A task as the start journal knows it, for tests that need no more of it than its id.
import type { JournalTask } from "../../src/store/start-entry.ts";

/** A run of a sync job of its own. */
export function journalTask(id: string): JournalTask {
  return { id, kind: "run", service: "main", repository: null, target: id };
}
