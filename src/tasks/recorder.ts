// Records a task's outcome in the history (the same step writes the event that the notifier reads),
// then publishes it: a log line, the count for a quarantine, the note of a deletion. After a crash
// in between, the next worker with the task publishes it: at least once, with the same taskId. A
// recorded outcome never changes. RecentOutcomes writes the newest ones again when Redis lost them.

import { Batcher } from "../core/batcher.ts";
import type { Clock } from "../core/clock.ts";
import { errorText } from "../core/errors.ts";
import type { EventLog } from "../core/event-log.ts";
import { isGood, type Outcome, type OutcomeReason, weightOf } from "../model/outcome.ts";
import { endedBySuccess } from "../model/pause.ts";
import type { DeletedSyncJobs } from "../store/deleted-sync-jobs.ts";
import type { History, OutcomeName, RecordResult, SettleFrom } from "../store/history.ts";
import type { QuarantineRule, Quarantines } from "../store/pauses.ts";
import type { PollNote } from "../store/poll-store.ts";
import { batchesOf } from "../store/script.ts";

/** The part of the history that the recorder uses. */
export type OutcomeHistory = Pick<History, "record" | "recordAlone" | "markPublished" | "claimUnpublished">;

/** The recorder. */
export interface Recorder {
  /** Records an outcome once, and publishes it. */
  readonly record: (outcome: Outcome, from?: SettleFrom, poll?: PollNote) => Promise<RecordResult>;
  /** Does so without the other writes (journal, poll note), where those fail. */
  readonly recordAlone: (outcome: Outcome) => Promise<void>;
  /** Publishes an outcome if no worker has. Returns until when another worker may still do so. */
  readonly republish: (task: OutcomeName) => Promise<number | undefined>;
}

/**
 * Creates the recorder. `onPublished` follows the log line, and is repeated like it. `recent`: what
 * records in the history, and remembers the latest outcomes.
 */
export function createRecorder(
  history: OutcomeHistory,
  log: EventLog,
  onPublished: (outcome: Outcome) => Promise<void> = async () => {},
  recent: Pick<OutcomeHistory, "record"> = history,
): Recorder {
  const published = new Batcher<string>((taskIds) => history.markPublished(taskIds));
  const publish = async (outcome: Outcome) => {
    const { v: _version, ...fields } = outcome;
    const level = isGood[outcome.status] ? "info" : outcome.status === "conflicts" ? "warn" : "error";
    log[level]("task.finished", fields);
    await onPublished(outcome);
    // Not awaited: without this note the outcome is only published once more.
    published.add(outcome.taskId).catch(() => {});
  };
  return {
    record: async (outcome, from, poll) => {
      const recorded = await recent.record(outcome, from, poll);
      if (isWritten(recorded)) await publish(outcome);
      return recorded;
    },
    recordAlone: async (outcome) => {
      if (await history.recordAlone(outcome)) await publish(outcome);
    },
    republish: async (task) => {
      const unpublished = await history.claimUnpublished(task);
      if (typeof unpublished === "number") return unpublished;
      if (unpublished !== undefined) await publish(unpublished);
      return undefined;
    },
  };
}

/** Whether the outcome was written now. */
function isWritten(recorded: RecordResult): boolean {
  return recorded === "recorded" || recorded === "recorded-awaited";
}

/** Longer than a Redis replica lags (`min-replicas-max-lag 10`), or a disk delays its writes. */
const rememberedMs = 30_000;
/** About 1 KB each. */
const rememberedMax = 5_000;
/** The batch that is written again at once. */
const batchMax = 100;

interface RecentRecord {
  readonly outcome: Outcome;
  readonly from: SettleFrom | undefined;
  readonly poll: PollNote | undefined;
  readonly atMs: number;
}

/** Records in a history, and remembers its latest outcomes. */
export class RecentOutcomes implements Pick<OutcomeHistory, "record"> {
  readonly #history: Pick<OutcomeHistory, "record" | "markPublished">;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #log: EventLog;
  /** By task, the oldest first. */
  readonly #recent = new Map<string, RecentRecord>();

  constructor(
    history: Pick<OutcomeHistory, "record" | "markPublished">,
    { clock, log }: { readonly clock: Pick<Clock, "monotonicMs">; readonly log: EventLog },
  ) {
    this.#history = history;
    this.#clock = clock;
    this.#log = log;
  }

  /** As the history does; a recorded outcome is remembered for a while. */
  async record(outcome: Outcome, from?: SettleFrom, poll?: PollNote): Promise<RecordResult> {
    const recorded = await this.#history.record(outcome, from, poll);
    if (isWritten(recorded)) this.#remember({ outcome, from, poll, atMs: this.#clock.monotonicMs() });
    return recorded;
  }

  /** Writes again what may be lost since `lastSeenMs` (monotonic clock). Never throws. */
  async restore(lastSeenMs: number): Promise<void> {
    const mayBeLost = [...this.#recent.values()].filter(({ atMs }) => atMs >= lastSeenMs - rememberedMs);
    let count = 0;
    try {
      for (const batch of batchesOf(mayBeLost, batchMax)) {
        const restored = (await Promise.all(batch.map((one) => this.#restoreOne(one)))).flat();
        count += restored.length;
        await this.#history.markPublished(restored);
      }
    } catch (error) {
      this.#log.warn("outcome.not-restored", { message: errorText(error) });
    }
    if (count > 0) this.#log.warn("outcome.restored", { count });
  }

  /** "Sent" stays true; "not sent" only while the journal still shows `from`. */
  async #restoreOne({ outcome, from, poll }: RecentRecord): Promise<string[]> {
    const wasSent = outcome.startedAt !== null;
    return isWritten(await this.#history.record(outcome, wasSent ? undefined : from, poll)) ? [outcome.taskId] : [];
  }

  #remember(one: RecentRecord): void {
    this.#recent.set(one.outcome.taskId, one);
    for (const [taskId, { atMs }] of this.#recent) {
      if (this.#recent.size <= rememberedMax && atMs >= one.atMs - rememberedMs) break;
      this.#recent.delete(taskId);
    }
  }
}

/** Creates what counts failed slots for quarantines. A policy without a rule is not counted. */
export function createQuarantineCounter(
  counts: Pick<Quarantines, "count">,
  ruleOf: (policy: string) => QuarantineRule | undefined,
  log: EventLog,
): (outcome: Outcome) => Promise<void> {
  return async (outcome) => {
    const rule = ruleOf(outcome.policy);
    const weight = weightOf(outcome);
    // What Redis lost is no failure of the policy.
    if (rule === undefined || weight === "nothing" || outcome.reason === "redis-loss") return;
    const { policy, taskId, status, reason, detail } = outcome;
    const isSuccess = weight === "success";
    const note = isSuccess ? `${endedBySuccess}: ${taskId}` : `the last ended ${status} (${reason}): ${detail}`;
    const change = await counts.count({ policy, slotMs: Date.parse(outcome.slot), isSuccess, note }, rule);
    if (change === "quarantined")
      log.error("policy.quarantined", { policy, after: rule.after, forMs: rule.forMs, taskId, status, reason, detail });
    if (change === "released") log.info("policy.released", { policy, by: note });
  };
}

/** After these the sync job is gone. Not `already-gone`: it may never have existed. */
const goneReasons: ReadonlySet<string> = new Set<OutcomeReason>([
  "deleted",
  "deleted-no-content",
  "deletion-confirmed",
  "gone-meanwhile",
]);

/** Creates what notes deleted sync jobs. */
export function createDeletionNoter(notes: Pick<DeletedSyncJobs, "note">): (outcome: Outcome) => Promise<void> {
  return async ({ kind, reason, service, repository, target: syncJob, finishedAt, policy }) => {
    if (kind !== "delete" || !goneReasons.has(reason)) return;
    await notes.note(service, { repository, syncJob, atMs: Date.parse(finishedAt), policy });
  };
}
