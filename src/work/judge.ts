// The error table (design §7): what a failed exchange means for each kind of task. Total: a missing cell does not compile.
// The kind decides, never the message.
import type { ErrorKind } from "../core/error-kind.ts";
import type { ServiceError } from "../service/service-error.ts";
import type { OutcomeReason } from "../tasks/outcome.ts";
import type { TaskKind } from "../tasks/task.ts";

/**
 * What to do after a failure. `give-up`: it will not get better. `retry`: the same again later, one attempt spent.
 * `wait`: the service asked for patience, no attempt spent. `verify`: it may have happened; look before saying anything.
 * `again`: our own side stopped; go on where it was.
 */
export type Judgement = "give-up" | "retry" | "wait" | "verify" | "again";

const giveUp = all("give-up");
/** Reading and declared state may be repeated; run, activate and delete may not. */
const ambiguous = { run: "verify", activate: "verify", delete: "verify", apply: "retry", poll: "retry" } as const;

const table: Readonly<Record<ErrorKind, Readonly<Record<TaskKind, Judgement>>>> = {
  "bad-request": giveUp,
  "not-found": giveUp,
  unauthorized: giveUp,
  forbidden: giveUp,
  throttled: all("wait"),
  server: ambiguous,
  unreachable: all("retry"),
  unknown: ambiguous,
  // A 2xx that makes no sense, or a redirect: a failure after the effect looks like this too.
  contract: { ...giveUp, run: "verify", activate: "verify", delete: "verify" },
  paging: giveUp,
  cancelled: all("again"),
};

/** The reason that an outcome names when this kind of failure was the last word. */
export const reasonOf: Readonly<Record<ErrorKind, OutcomeReason>> = {
  "bad-request": "refused",
  "not-found": "refused",
  unauthorized: "refused",
  forbidden: "refused",
  throttled: "throttled",
  server: "server-error",
  unreachable: "unreachable",
  unknown: "answer-lost",
  contract: "bad-answer",
  paging: "bad-answer",
  cancelled: "crashed",
};

/**
 * Judges a failure in a task of this kind. A request that our own side cut off while it may have been under way is as unknown as
 * one that the network cut off.
 */
export function judge({ kind, sent }: Pick<ServiceError, "kind" | "sent">, task: TaskKind): Judgement {
  const judgement = table[kind][task];
  return judgement === "again" && sent === "maybe" && ambiguous[task] === "verify" ? "verify" : judgement;
}

function all(judgement: Judgement): Readonly<Record<TaskKind, Judgement>> {
  return { run: judgement, activate: judgement, apply: judgement, delete: judgement, poll: judgement };
}
