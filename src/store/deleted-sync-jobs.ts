// The sync jobs that Syncline has deleted: `doctor` and `plan` name policies that still refer to
// them.
import * as z from "zod";
import { isJsonObject } from "../core/json.ts";
import { refuseNewer } from "../core/newer-version.ts";
import type { Store } from "./redis.ts";
import { asNothing, createScript } from "./script.ts";

/** Deleted sync jobs remembered of one service, about 200 bytes each; the oldest go first. */
const notesMax = 1_000;
const keepForMs = 400 * 86_400_000;

const noteSchema = z.object({
  v: z.literal(1),
  repository: z.string().nullable(),
  syncJob: z.string(),
  atMs: z.int(),
  policy: z.string(),
});

/** A deletion, confirmed at `atMs`. `policy`: the policy that deleted it, or `by-hand.delete`. */
export type DeletedSyncJob = Readonly<z.infer<typeof noteSchema>>;

const noteScript = createScript("note-deletion", asNothing);

/** The deletions in Redis. */
export class DeletedSyncJobs {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Notes a deletion. Idempotent. */
  async note(service: string, deleted: Omit<DeletedSyncJob, "v">): Promise<void> {
    const { repository, syncJob, atMs } = deleted;
    const { key } = this.#store;
    await noteScript(
      this.#store,
      [key("deleted", service), key("deleted-order", service)],
      [JSON.stringify([repository, syncJob]), JSON.stringify({ v: 1, ...deleted }), atMs, notesMax, keepForMs],
    );
  }

  /** Returns the deletions of a service, newest first; throws NewerVersionError. */
  async of(service: string): Promise<readonly DeletedSyncJob[]> {
    const texts = await this.#store.redis.hvals(this.#store.key("deleted", service));
    const notes = texts.flatMap((text) => {
      const value: unknown = JSON.parse(text);
      refuseNewer("note of a deleted sync job", isJsonObject(value) ? value["v"] : undefined);
      // A broken note is left out: it only warns.
      return noteSchema.safeParse(value).data ?? [];
    });
    return notes.toSorted((a, b) => b.atMs - a.atMs);
  }
}
