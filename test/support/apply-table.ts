// The error table of `apply` as the code has it, in Markdown: the second table of docs/outcomes.md.
// Printed by error-table.ts.

import { type PutFailure, readPutFailure } from "../../src/apply/apply-object.ts";
import type { ErrorKind } from "../../src/core/errors.ts";
import { ServiceError } from "../../src/service/service-error.ts";
import { judge, reasonOf } from "../../src/tasks/judge.ts";

/** One row of the table of failures. */
export interface FailureRow {
  readonly what: string;
  readonly kind: ErrorKind;
  readonly status?: number;
  readonly sent: "no" | "maybe";
}

/** No further step. */
export const giveUp = "give up";

/** What is done in turn; giving up is said by the last word alone. */
export function inTurn(...steps: readonly (string | undefined)[]): string {
  const done = steps.filter((step) => step !== undefined);
  return done.filter((step, index) => step !== giveUp || index === done.length - 1).join(" → ");
}

const putMeaning: Readonly<Record<Exclude<PutFailure, "not-done" | "in-doubt">, readonly [string, string]>> = {
  field: ["the field is found; the others go on", "failed (read-only-field)"],
  missing: [giveUp, "failed (no-target)"],
  stale: ["with an ETag read and PUT again, twice at most", "failed (refused)"],
  "wants-etag": ["target: once with `If-Match: *`", "failed (refused)"],
};

const verdicts = {
  end: giveUp,
  retry: "later again",
  verify: "later again",
  defer: "wait",
  resume: "go on",
} as const;

/** The head and the rows. */
export function applyRows(rows: readonly FailureRow[]): readonly [readonly string[], readonly (readonly string[])[]] {
  const shown = rows.map((row) => {
    const verdict = judge(row, "apply");
    const isWait = verdict === "defer" || verdict === "resume";
    const missing = row.kind === "not-found" ? "failed (no-target)" : `failed (${reasonOf(row.kind)})`;
    const waited = verdict === "resume" ? "missed (too-late)" : "missed (throttled)";
    return [row.what, inTurn(verdicts[verdict], isWait ? waited : missing), inTurn(...putCells(row, isWait))];
  });
  return [["answer or failure", "look", "PUT"], shown];
}

function putCells(row: FailureRow, isWait: boolean): readonly string[] {
  const error = new ServiceError({ ...row, operation: "UpdateSyncJobById", method: "PUT", path: "", problem: "" });
  const failure = readPutFailure(error);
  if (failure !== "not-done" && failure !== "in-doubt") return putMeaning[failure];
  const verdict = judge(row, "apply");
  if (isWait) return [verdicts[verdict], verdict === "resume" ? "missed (too-late)" : "missed (throttled)"];
  const first = row.kind === "contract" ? "look and PUT once more" : verdicts[verdict];
  return [first, `${failure === "in-doubt" ? "unknown" : "failed"} (${reasonOf(row.kind)})`];
}
