// What an event means for its policy: the health of one target, and whether it may be the service's
// fault. Pure.
import { cutText } from "../core/plain-text.ts";
import type { NotifyEvent } from "../model/notify-event.ts";
import {
  type Health,
  healthOfStatus,
  type Outcome,
  type OutcomeReason,
  outageReasons,
  weightOf,
} from "../model/outcome.ts";
import { targetFromMasks } from "../model/task.ts";
import type { Brief } from "./alert-state.ts";

/** An event as the decisions see it. */
export interface AlertEvent {
  readonly brief: Brief;
  /** undefined: the event says nothing about the policy's health. */
  readonly health: Health | undefined;
  /** Whether it ends staleness: a poll whose expectation is not met does, too. */
  readonly isSuccess: boolean;
  /** New ones; `stillConflicts`: those from before that are open; undefined: not known. */
  readonly conflicts: number;
  readonly stillConflicts: number | undefined;
  readonly slotMs: number;
  readonly atMs: number;
  /** Whether it may be the service's fault: `while-down` only while it is down or suspected. */
  readonly servicesFault: "yes" | "while-down" | "no";
  /** Whether it shows that the service is alive. */
  readonly isSignOfLife: boolean;
  /** The whole outcome, for sinks with `every`. */
  readonly outcome: Outcome | undefined;
  /**
   * Why a poll wants a notice although its health is the same: it wants one of `each` poll, or what
   * it saw has `changed`.
   */
  readonly news: "each" | "changed" | undefined;
}

const possibleReasons: readonly OutcomeReason[] = ["answer-lost", "bad-answer", "no-evidence", "deadline"];
/** Reasons that an outage may cause, too. */
const possibleOutageReasons: ReadonlySet<string> = new Set([...outageReasons, ...possibleReasons]);
/** Reasons that the service itself stated: it is alive. */
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

/** Whether the policy did its work, whatever that found. */
export function didWork(health: Health | undefined): health is "good" | "conflicts" {
  return health === "good" || health === "conflicts";
}

/** The end of a task, or of a slot that has none. */
type EndingEvent = Exclude<NotifyEvent, { kind: "masks-read" | "run-long" }>;

/** Interprets an event. `notifyOn`: the poll's own wish; undefined for other actions. */
export function toAlertEvent(event: EndingEvent, isBreakerOpen: boolean, notifyOn?: "change" | "always"): AlertEvent {
  if (event.kind === "slot-missed") return toMissed(event);
  const { outcome } = event;
  const { taskId: key, finishedAt: at, status, reason, detail, target, slot, newConflicts } = outcome;
  const health = healthOfStatus[status];
  const isBad = health === "failing" || health === "unknown" || health === "missed";
  const isSure = outageReasons.has(reason) && health !== "missed";
  // Without access it counts only while the breaker is open: 401 and 403 open it.
  const isOfBreaker = isBreakerOpen && (possibleOutageReasons.has(reason) || reason === "no-access");
  const whileDown = possibleOutageReasons.has(reason) ? "while-down" : "no";
  return {
    brief: { key, at, status, reason, detail: cutText(detail, detailCharactersMax), target, slot, newConflicts },
    health,
    isSuccess: weightOf(outcome) === "success",
    conflicts: newConflicts ?? 0,
    stillConflicts: outcome.stillConflicts,
    slotMs: Date.parse(slot),
    atMs: Date.parse(at),
    servicesFault: !isBad ? "no" : isSure || isOfBreaker ? "yes" : whileDown,
    isSignOfLife: aliveReasons.has(reason),
    outcome,
    news: notifyOn === "always" ? "each" : notifyOn === "change" && outcome.changed === true ? "changed" : undefined,
  };
}

function toMissed({ policy, slotMs, detail: reason, id }: Extract<NotifyEvent, { kind: "slot-missed" }>): AlertEvent {
  const slot = new Date(slotMs).toISOString();
  const detail = `nothing is done for the slot ${slot} any more (${reason})`;
  const key = `${policy}/${slot}`;
  const brief = { key, at: atOf(id), status: "missed", reason, detail, target: "", slot, newConflicts: null };
  return {
    ...{ brief, health: "missed", conflicts: 0, stillConflicts: undefined, slotMs, atMs: Date.parse(brief.at) },
    ...{ isSuccess: false, servicesFault: "no", isSignOfLife: false, outcome: undefined, news: undefined },
  };
}

/** Which sync jobs the policy has from this slot on, by its masks. */
export interface MasksRead {
  readonly brief: Brief;
  readonly slotMs: number;
  readonly syncJobs: readonly string[];
}

/** Interprets that masks were read. */
export function toMasksRead(event: Extract<NotifyEvent, { kind: "masks-read" }>): MasksRead {
  const { id, policy, slotMs, syncJobs } = event;
  const slot = new Date(slotMs).toISOString();
  const detail = `the masks name ${syncJobs.length} sync jobs for this slot`;
  const what = { status: "started", reason: "masks-read", detail, target: targetFromMasks, newConflicts: null };
  return { brief: { key: `${policy}/${targetFromMasks}/${slot}`, at: atOf(id), slot, ...what }, slotMs, syncJobs };
}

/** When an event was recorded: its place in the stream says it. */
function atOf(id: string): string {
  return new Date(Number(id.split("-")[0])).toISOString();
}
