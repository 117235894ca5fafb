// What an event means for its policy: the fate of one target, and whether it may be its service's doing. Pure; called by decide.ts.
import type { Outcome, OutcomeReason, OutcomeStatus } from "../tasks/outcome.ts";
import type { TellingEvent } from "../tasks/telling-event.ts";
import type { Brief, Fate } from "./standing.ts";

/** An event as the decisions see it. */
export interface Ending {
  readonly brief: Brief;
  /** undefined: it says nothing of how the policy fares. */
  readonly fate: Fate | undefined;
  readonly conflicts: number;
  readonly slotMs: number;
  readonly atMs: number;
  /** Whether it may be the service's doing: yes; only while the service is known or feared to be down; no. */
  readonly outage: "yes" | "while-down" | "no";
  /** Whether it shows that the service is alive. */
  readonly isSignOfLife: boolean;
  /** All of it, for those who are told every outcome. */
  readonly outcome: Outcome | undefined;
  /** A poll's own wish to be told, whether or not the policy's state changed: `each` outcome, or since this one says that it `changed`. */
  readonly news: "each" | "changed" | undefined;
}

const fateOf: Readonly<Record<OutcomeStatus, Fate | undefined>> = {
  succeeded: "good",
  accepted: "good",
  conflicts: "conflicts",
  failed: "failing",
  "timed-out": "failing",
  "not-started": "failing",
  unknown: "unknown",
  blocked: "blocked",
  missed: "missed",
  skipped: undefined,
};

/** What a service that is down leaves behind. */
const outageReasons: ReadonlySet<string> = new Set<OutcomeReason>(["unreachable", "throttled", "server-error"]);
/** What it may leave behind, too. A refusal counts only while the breaker is open: 401 and 403 open it. */
const vagueReasons: ReadonlySet<string> = new Set<OutcomeReason>([
  "answer-lost",
  "bad-answer",
  "no-evidence",
  "deadline",
]);
/** The service's own word on a run, a list, a sync job or a declared object: it is alive. */
const aliveReasons: ReadonlySet<string> = new Set<OutcomeReason>([
  "completed",
  "answered",
  "run-failed",
  "new-conflicts",
  "expectation-met",
  "expectation-not-met",
  "expectation-unreadable",
  "approval-waiting",
  "seen-active",
  "not-active",
  "deleted",
  "deleted-no-content",
  "deletion-confirmed",
  "not-deleted",
  "still-there",
  "already-gone",
  "gone-meanwhile",
  "guard-mismatch",
  "applied",
  "drift-mended",
  "read-only-field",
]);

const detailCharactersMax = 500;

/** What an event means. `notifyOn`: the poll's own wish; undefined for anything else. */
export function toEnding(event: TellingEvent, isBreakerOpen: boolean, notifyOn?: "change" | "always"): Ending {
  if (event.kind === "slot-missed") return toMissed(event);
  const { outcome } = event;
  const { taskId, finishedAt, status, reason, detail, target, slot, newConflicts } = outcome;
  const fate = fateOf[status];
  const isBad = fate === "failing" || fate === "unknown" || fate === "missed";
  const isSure = outageReasons.has(reason) && fate !== "missed";
  const isVague = outageReasons.has(reason) || vagueReasons.has(reason);
  const isOfBreaker = isBreakerOpen && (isVague || reason === "refused");
  return {
    brief: {
      ...{ key: taskId, at: finishedAt, status, reason, target, slot, newConflicts },
      detail: detail.slice(0, detailCharactersMax),
    },
    fate,
    conflicts: newConflicts ?? 0,
    slotMs: Date.parse(slot),
    atMs: Date.parse(finishedAt),
    outage: !isBad ? "no" : isSure || isOfBreaker ? "yes" : isVague ? "while-down" : "no",
    isSignOfLife: aliveReasons.has(reason),
    outcome,
    news: notifyOn === "always" ? "each" : notifyOn === "change" && outcome.changed === true ? "changed" : undefined,
  };
}

function toMissed({ policy, slotMs, detail, id }: Extract<TellingEvent, { kind: "slot-missed" }>): Ending {
  const slot = new Date(slotMs).toISOString();
  const atMs = Number(id.split("-")[0]);
  const said = {
    status: "missed",
    reason: detail,
    detail: `nothing is done for the slot ${slot} any more (${detail})`,
  };
  return {
    brief: {
      key: `${policy}/${slot}`,
      at: new Date(atMs).toISOString(),
      ...said,
      target: "",
      slot,
      newConflicts: null,
    },
    ...{ fate: "missed", conflicts: 0, slotMs, atMs, outage: "no", isSignOfLife: false },
    ...{ outcome: undefined, news: undefined },
  };
}
