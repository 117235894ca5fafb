// The error table (docs/outcomes.md): what a failed exchange means for each kind of task. Total: a
// missing cell does not compile. The kind decides, never the message.
import type { ErrorKind } from "../core/error-kind.ts";
import type { OutcomeReason } from "../model/outcome.ts";
import type { TaskKind } from "../model/task.ts";
import type { ServiceError } from "../service/service-error.ts";
import type { AnswerLoss } from "../store/start-entry.ts";

/**
 * What to do after a failure. `give-up`: the task ends. `retry`: the same request later, one
 * attempt spent. `defer`: limited for now, no attempt spent. `verify`: it may have happened: check
 * before ending or sending. `resume`: this process stopped; the task goes on from its last step.
 */
export type FailureAction = "give-up" | "retry" | "defer" | "verify" | "resume";

const giveUp = all("give-up");
/** Reads and declared state may be repeated; run, activate and delete may not. */
const ambiguous = { run: "verify", activate: "verify", delete: "verify", apply: "retry", poll: "retry" } as const;

const table: Readonly<Record<ErrorKind, Readonly<Record<TaskKind, FailureAction>>>> = {
  "bad-request": giveUp,
  // Documented for a deletion only. A start that meets it may have met a proxy, or a service that
  // failed afterwards.
  "not-found": { ...giveUp, run: "verify", activate: "verify" },
  unauthorized: giveUp,
  forbidden: giveUp,
  throttled: all("defer"),
  // An undocumented status may follow a start that happened (service-interface §7).
  undocumented: { ...giveUp, run: "verify", activate: "verify", delete: "verify" },
  server: ambiguous,
  unreachable: all("retry"),
  unknown: ambiguous,
  // An unreadable 2xx, a redirect, a 1xx without an end: a failure after the effect looks the same.
  contract: { ...giveUp, run: "verify", activate: "verify", delete: "verify" },
  paging: giveUp,
  cancelled: all("resume"),
};

/** The reason of an outcome whose last failure was of this kind. */
export const reasonOf: Readonly<Record<ErrorKind, OutcomeReason>> = {
  "bad-request": "refused",
  "not-found": "refused",
  unauthorized: "refused",
  forbidden: "refused",
  throttled: "throttled",
  undocumented: "refused",
  server: "server-error",
  unreachable: "unreachable",
  unknown: "answer-lost",
  contract: "bad-answer",
  paging: "bad-answer",
  cancelled: "crashed",
};

/**
 * The loss that the journal notes for a start to verify: a server failure, an answer that says
 * nothing, or no answer.
 */
export const lossOf: Readonly<Record<ErrorKind, Exclude<AnswerLoss["kind"], "crash">>> = {
  "bad-request": "contract",
  "not-found": "contract",
  unauthorized: "contract",
  forbidden: "contract",
  throttled: "contract",
  undocumented: "contract",
  server: "server",
  unreachable: "unknown",
  unknown: "unknown",
  contract: "contract",
  paging: "contract",
  cancelled: "unknown",
};

/**
 * Judges a failure in a task of this kind. A request that this process cut off while it may have
 * been under way is as unknown as one that the network cut off.
 */
export function judge({ kind, sent }: Pick<ServiceError, "kind" | "sent">, task: TaskKind): FailureAction {
  const action = table[kind][task];
  return action === "resume" && sent === "maybe" && ambiguous[task] === "verify" ? "verify" : action;
}

function all(action: FailureAction): Readonly<Record<TaskKind, FailureAction>> {
  return { run: action, activate: action, apply: action, delete: action, poll: action };
}
