// What an event means for its policy: the health of one target, and whether it may be the service's
// fault. Pure; called by decide.ts.

import type { NotifyEvent } from "../model/notify-event.ts";
import type { Outcome, OutcomeReason, OutcomeStatus } from "../model/outcome.ts";
import { targetFromMasks } from "../model/task.ts";
import type { Brief, PolicyHealth } from "./alert-state.ts";

/** An event as the decisions see it. */
export interface AlertEvent {
  readonly brief: Brief;
  /** undefined: the event says nothing about the policy's health. */
  readonly health: PolicyHealth | undefined;
  readonly conflicts: number;
  readonly slotMs: number;
  readonly atMs: number;
  /**
   * Whether it may be the service's fault: yes; only while the service is down or suspected; no.
   */
  readonly outage: "yes" | "while-down" | "no";
  /** Whether it shows that the service is alive. */
  readonly isSignOfLife: boolean;
  /** The whole outcome, for sinks with `every`. */
  readonly outcome: Outcome | undefined;
  /**
   * A poll's own wish to be notified even when the health is the same: of `each` outcome, or
   * because this one `changed`.
   */
  readonly news: "each" | "changed" | undefined;
}

const healthOfStatus: Readonly<Record<OutcomeStatus, PolicyHealth | undefined>> = {
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

/** The reasons that a service outage causes. */
const outageReasons: ReadonlySet<string> = new Set<OutcomeReason>(["unreachable", "throttled", "server-error"]);
/**
 * Reasons that an outage may cause, too. A refusal counts only while the breaker is open: 401 and
 * 403 open it.
 */
const vagueReasons: ReadonlySet<string> = new Set<OutcomeReason>([
  "answer-lost",
  "bad-answer",
  "no-evidence",
  "deadline",
]);
/**
 * Reasons that the service itself stated, of a run, a list, a sync job or an object: it is alive.
 */
const aliveReasons: ReadonlySet<string> = new Set<OutcomeReason>([
  "completed",
  "answered",
  "start-confirmed",
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
  "drift-corrected",
  "read-only-field",
]);

const detailCharactersMax = 500;

/** The end of a task, or of a slot that has none. */
type EndingEvent = Exclude<NotifyEvent, { kind: "masks-read" }>;

/** Interprets an event. `notifyOn`: the poll's own wish; undefined for other actions. */
export function toAlertEvent(event: EndingEvent, isBreakerOpen: boolean, notifyOn?: "change" | "always"): AlertEvent {
  if (event.kind === "slot-missed") return toMissed(event);
  const { outcome } = event;
  const { taskId, finishedAt, status, reason, detail, target, slot, newConflicts } = outcome;
  const health = healthOfStatus[status];
  const isBad = health === "failing" || health === "unknown" || health === "missed";
  const isSure = outageReasons.has(reason) && health !== "missed";
  const isVague = outageReasons.has(reason) || vagueReasons.has(reason);
  const isOfBreaker = isBreakerOpen && (isVague || reason === "refused");
  return {
    brief: {
      ...{ key: taskId, at: finishedAt, status, reason, target, slot, newConflicts },
      detail: detail.slice(0, detailCharactersMax),
    },
    health,
    conflicts: newConflicts ?? 0,
    slotMs: Date.parse(slot),
    atMs: Date.parse(finishedAt),
    outage: !isBad ? "no" : isSure || isOfBreaker ? "yes" : isVague ? "while-down" : "no",
    isSignOfLife: aliveReasons.has(reason),
    outcome,
    news: notifyOn === "always" ? "each" : notifyOn === "change" && outcome.changed === true ? "changed" : undefined,
  };
}

function toMissed({ policy, slotMs, detail, id }: Extract<NotifyEvent, { kind: "slot-missed" }>): AlertEvent {
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
    ...{ health: "missed", conflicts: 0, slotMs, atMs, outage: "no", isSignOfLife: false },
    ...{ outcome: undefined, news: undefined },
  };
}

/** Which sync jobs the policy has from this slot on, by its masks. */
export function toMasksRead({ id, policy, slotMs, syncJobs }: Extract<NotifyEvent, { kind: "masks-read" }>) {
  const slot = new Date(slotMs).toISOString();
  const brief: Brief = {
    key: `${policy}/${targetFromMasks}/${slot}`,
    at: new Date(Number(id.split("-")[0])).toISOString(),
    ...{ status: "started", reason: "masks-read", detail: `the masks name ${syncJobs.length} sync jobs for this slot` },
    ...{ target: targetFromMasks, slot, newConflicts: null },
  };
  return { brief, slotMs, syncJobs };
}
