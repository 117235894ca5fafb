// How a deletion can end, by what the service says: one reason for each. Called by send-start.ts, delete.ts and verify-deletion.ts. Pure.
// Source: service-interface §4.4 (true or false), §7 (404).
import { showName } from "../core/show-name.ts";
import type { DeleteResult } from "../service/client.ts";
import type { Ending } from "./step.ts";

/** What an answer says of how a task ended. */
export type SaidEnding = Pick<Ending, "status" | "evidence" | "reason" | "detail">;

/** The three answers to a DELETE with a 2xx status. Assumption A9: a 204 means that it worked; nobody says so, hence `inferred`. */
export const answeredDeletion: Readonly<Record<DeleteResult, SaidEnding>> = {
  deleted: { status: "succeeded", evidence: "direct", reason: "deleted", detail: "the service answered true" },
  "not-deleted": {
    status: "failed",
    evidence: "direct",
    reason: "not-deleted",
    detail: "the service answered false: it did not delete the sync job, and does not say why",
  },
  "deleted-no-content": {
    status: "succeeded",
    evidence: "inferred",
    reason: "deleted-no-content",
    detail: "the service answered 204, without saying true or false",
  },
};

/** 404 to the DELETE: the sync job was there when its name was read, and is not any more. */
export const goneMeanwhile: SaidEnding = {
  status: "succeeded",
  evidence: "direct",
  reason: "gone-meanwhile",
  detail: "the service answered 404: the sync job was deleted after its name had been read, not by this request",
};

/** 404 to the read of its name: nothing was sent. */
export const alreadyGone =
  "there is no such sync job (404): deleted before, or the id or the repository is wrong; nothing was sent";

/** What is wrong with a sync job whose name is not the guard's. */
export function tellMismatch(guard: string, name: string | null | undefined): string {
  const isSpelling = typeof name === "string" && name.normalize("NFC") === guard.normalize("NFC");
  const why = isSpelling ? "; they look the same and are written with other Unicode characters" : "";
  return `the guard says ${showName(guard)}, the sync job has ${showName(name)}${why}; nothing was sent`;
}
