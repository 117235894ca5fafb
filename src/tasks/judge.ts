// The error table (docs/outcomes.md): what a failed exchange means. Total: a missing row does not
// compile. The kind of the failure decides, never the message.
import type { ErrorKind } from "../core/errors.ts";
import type { OutcomeReason } from "../model/outcome.ts";
import type { TaskKind } from "../model/task.ts";
import type { ServiceError } from "../service/service-error.ts";
import type { StartDoubt } from "../store/start-entry.ts";

/**
 * What to do after a failure (`onUnknown` is another question). `end`: the task is over. `retry`:
 * one attempt spent. `defer`: denied for now, none spent. `verify`: it may have happened. `resume`:
 * this process stopped; the task goes on.
 */
export type AfterFailure = "end" | "retry" | "defer" | "verify" | "resume";

/** `repeatable`: poll and apply. */
interface Meaning {
  readonly runOrActivate: AfterFailure;
  readonly delete: AfterFailure;
  readonly repeatable: AfterFailure;
  /** Of the outcome, unless the start was verified (verify.ts). */
  readonly reason: OutcomeReason;
}

const all = (next: AfterFailure) => ({ runOrActivate: next, delete: next, repeatable: next });
const refused = { ...all("end"), reason: "refused" } as const;
/** The token, or its rights: what is asked for does not matter. */
const noAccess = { ...all("end"), reason: "no-access" } as const;
/** An undocumented answer may follow a start that happened (service-interface §7). */
const verifyOrEnd = { runOrActivate: "verify", delete: "verify", repeatable: "end" } as const;
const verifyOrRetry = { runOrActivate: "verify", delete: "verify", repeatable: "retry" } as const;

const table: Readonly<Record<ErrorKind | "throttled-503", Meaning>> = {
  "bad-request": refused,
  // Documented for a deletion only. A start may have met a proxy, or failed after its effect.
  "not-found": { ...refused, runOrActivate: "verify" },
  unauthorized: noAccess,
  forbidden: noAccess,
  throttled: { ...all("defer"), reason: "throttled" },
  // A gateway may say so of a deletion that happened; reading the sync job shows it.
  "throttled-503": { ...all("defer"), delete: "verify", reason: "throttled" },
  undocumented: { ...verifyOrEnd, reason: "refused" },
  server: { ...verifyOrRetry, reason: "server-error" },
  unreachable: { ...all("retry"), reason: "unreachable" },
  "answer-lost": { ...verifyOrRetry, reason: "answer-lost" },
  // An unreadable 2xx, a redirect, a 1xx without an end: a failure after the effect looks the same.
  contract: { ...verifyOrEnd, reason: "bad-answer" },
  paging: { ...all("end"), reason: "bad-answer" },
  // Stopped by this process. What a person cancelled never comes here (finish.ts).
  cancelled: { ...all("resume"), reason: "crashed" },
};

const columns = {
  run: "runOrActivate",
  activate: "runOrActivate",
  delete: "delete",
  apply: "repeatable",
  poll: "repeatable",
} as const;

/** The reason of an outcome whose last failure was of this kind. */
export function reasonOf(kind: ErrorKind): OutcomeReason {
  return table[kind].reason;
}

/** Why a start that is to be verified is in doubt. */
export function doubtOf(kind: ErrorKind): Exclude<StartDoubt["kind"], "crash"> {
  if (kind === "server" || kind === "throttled") return kind;
  return kind === "answer-lost" || kind === "cancelled" ? "answer-lost" : "contract";
}

type Failure = Pick<ServiceError, "kind" | "sent"> & Partial<Pick<ServiceError, "status">>;

/** Judges a failure. What this process cut off is as unknown as what the network cut off. */
export function judge({ kind, sent, status }: Failure, task: TaskKind): AfterFailure {
  const column = columns[task];
  const next = table[kind === "throttled" && status === 503 ? "throttled-503" : kind][column];
  return next === "resume" && sent === "maybe" && column !== "repeatable" ? "verify" : next;
}
