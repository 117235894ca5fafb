// The notifier's events: an outcome, an unusually long run, a missed slot, or the sync jobs of
// masks. The step in Redis that records one of them writes the event, so that no notice is lost.
import type { Outcome } from "./outcome.ts";

/** A run that goes on for unusually long, as seen at `atMs`. */
export interface LongRun {
  readonly policy: string;
  readonly taskId: string;
  readonly target: string;
  readonly slotMs: number;
  readonly sentAtMs: number;
  readonly atMs: number;
  readonly usualMs: number;
}

/** One event, in the order of recording. `id`: its place in the stream. */
export type NotifyEvent =
  | { readonly id: string; readonly kind: "outcome"; readonly outcome: Outcome }
  | ({ readonly id: string; readonly kind: "run-long" } & LongRun)
  | {
      readonly id: string;
      readonly kind: "slot-missed";
      readonly policy: string;
      readonly slotMs: number;
      readonly detail: string;
    }
  | {
      readonly id: string;
      readonly kind: "masks-read";
      readonly policy: string;
      readonly slotMs: number;
      /** The sync jobs that the policy runs in this slot. */
      readonly syncJobs: readonly string[];
    };

/** A batch of events. `lost`: dropped unread; negative: handled ones that Redis has forgotten. */
export interface NotifyBatch {
  readonly events: readonly NotifyEvent[];
  /** The stream id of the last event, read or not; '' without one. */
  readonly cursor: string;
  /** Events that the cursor passes. */
  readonly passed: number;
  readonly lost: number;
  /** Of the passed ones, how many could not be read. */
  readonly unreadable: number;
  /** Whether the next event has to wait. */
  readonly isNextWaiting: boolean;
}

/** Whether an event, and so all after it, has to wait for now. */
export type MustWait = (event: NotifyEvent, ageMs: number) => boolean;

/** How long what cannot be read blocks all after it: as long as a rolling upgrade may take. */
export const leftToNewerMs = 600_000;

/**
 * What the notifier keeps: alert states, notices that wait, heartbeats, deadlines, digests. Stored
 * words: its `outbox` holds notices for the sinks' queues, and not the tasks of slots.
 */
export const notifyParts = ["policies", "services", "muted", "outbox", "heartbeats", "deadlines", "digests"] as const;

/** One of these parts. */
export type NotifyPart = (typeof notifyParts)[number];

/** Texts by field; undefined removes the field. */
export type NotifyTexts = ReadonlyMap<string, string | undefined>;

/** The changes of a save. */
export type NotifyChanges = Readonly<Partial<Record<NotifyPart, NotifyTexts>>>;

/** The parts of a policy that decide whether its outcomes become events. */
interface NotifiedPolicy {
  readonly notify?: readonly unknown[];
  readonly heartbeat?: unknown;
}

/** Whether a sink or a heartbeat wants a policy's outcomes; false for an unknown policy. */
export function isNotified(policy: NotifiedPolicy | undefined): boolean {
  return policy?.notify !== undefined || policy?.heartbeat !== undefined;
}
