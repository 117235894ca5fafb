// confirmEffect: did a request have its effect on the task's sync job? Reads the sync job once a
// step and sends nothing else. Called by activate.ts and delete.ts, which bring the predicate and
// turn the result into an ending.
//
//   shows the effect ─▶ effect           does not, and could come no more ─▶ none
//   does not yet     ─▶ again later      unreadable ─▶ again later, for 5 min ─▶ unreadable
import { isOwnLimit } from "../core/limiter.ts";
import type { Task } from "../model/task.ts";
import { snooze } from "../model/verdict.ts";
import type { SyncJob, SyncService } from "../service/client.ts";
import { inRepository } from "../service/request-url.ts";
import { ServiceError } from "../service/service-error.ts";
import type { StartEntry } from "../store/start-entry.ts";
import { noteDenied, verifyLater } from "./defer.ts";
import { describeOther, type StepResult } from "./step.ts";
import type { StartDependencies } from "./step-dependencies.ts";
import { sendWithinMs } from "./timing.ts";

/** How a sync job shows the effect. */
export interface EffectPredicate {
  /** The properties to select; none: the default ones. */
  readonly select: readonly string[];
  /** Whether a sync job shows it. `wrong`: why that cannot be read, now or later. */
  readonly isShown: (syncJob: SyncJob) => boolean | { readonly wrong: string };
  /** Whether a read that is answered with this error status shows it. */
  readonly isShownBy: (status: number) => boolean;
}

/** `none`: no effect `afterMs` after the request, when it could come no more. */
export type EffectCheck =
  | { readonly is: "effect"; readonly status: number }
  | { readonly is: "none"; readonly syncJob: SyncJob; readonly afterMs: number }
  | { readonly is: "again"; readonly result: StepResult }
  | { readonly is: "unreadable"; readonly why: string };

/**
 * One read. `stopped`: this process broke it off. `isLasting`: the next read will say the same.
 * `deniedForMs`: our own limits deny reads for this long.
 */
type Observation =
  | { readonly is: "effect"; readonly status: number }
  | { readonly is: "none"; readonly syncJob: SyncJob }
  | { readonly is: "stopped" }
  | Unreadable;

interface Unreadable {
  readonly is: "unreadable";
  readonly why: string;
  readonly isLasting?: boolean;
  readonly deniedForMs?: number | undefined;
}

interface EffectQuery {
  readonly deps: StartDependencies;
  readonly entry: StartEntry;
  readonly predicate: EffectPredicate;
}

/** The pause between two reads grows with the age of the request, within these bounds. */
const checkAgainMs = [1_000, 10_000] as const;

/** Reads the sync job of a task once, after its newest request may have been sent. */
export async function confirmEffect(task: Task, { deps, entry, predicate }: EffectQuery): Promise<EffectCheck> {
  const sentAtMs = entry.lastSentAtMs ?? entry.claimedAtMs;
  const service = deps.service(task.service);
  // From then on, no effect is final: the request may have left late, and a proxy may have delayed
  // it.
  const inTimeMs = sentAtMs + Math.max(deps.timing.verifyForMs, sendWithinMs + (service?.requestTimeoutMs ?? 0));
  // Taken before the read, so that the observation is no older than this instant.
  const nowMs = await deps.nowMs();
  const againAtMs = nowMs + Math.min(Math.max(nowMs - sentAtMs, checkAgainMs[0]), checkAgainMs[1]);
  const observation = await read(task, service, predicate);
  switch (observation.is) {
    case "effect":
      return observation;
    case "none":
      if (nowMs >= inTimeMs) return { ...observation, afterMs: nowMs - sentAtMs };
      return again(snooze(Math.min(againAtMs, inTimeMs)));
    case "stopped":
      return again(snooze(againAtMs));
    case "unreadable": {
      const { isLasting, deniedForMs } = observation;
      const { syncJobUnreadableForMs, deniedForMsMax } = deps.timing;
      const deniedUntilMs = await noteDenied(task, deps, {
        nowMs,
        deniedUntilMs: entry.deniedUntilMs,
        deniedForMs,
      });
      // Patience starts with the first read that could have been final: all workers may have been
      // down for hours before it.
      const sinceMs = nowMs < inTimeMs ? inTimeMs : await deps.journal.noteWindowOver(task.id, nowMs);
      const readableAtMs = Math.max(sinceMs, Math.min(deniedUntilMs, sinceMs + deniedForMsMax));
      const patientUntilMs = isLasting === true ? inTimeMs : readableAtMs + syncJobUnreadableForMs;
      if (nowMs >= patientUntilMs) return observation;
      return again(verifyLater(nowMs, Math.min(Math.max(deniedUntilMs, againAtMs), patientUntilMs)));
    }
  }
}

function again(result: StepResult): EffectCheck {
  return { is: "again", result };
}

async function read(task: Task, service: SyncService | undefined, predicate: EffectPredicate): Promise<Observation> {
  if (service === undefined)
    return { is: "unreadable", why: "the worker that had its turn lacks the service", isLasting: true };
  try {
    const select = predicate.select.length === 0 ? {} : { select: predicate.select };
    const syncJob = await service.getSyncJobById(task.target, { ...inRepository(task), ...select });
    const other = describeOther(task, syncJob);
    if (other !== undefined) return { is: "unreadable", why: other };
    const shown = predicate.isShown(syncJob);
    if (typeof shown === "object") return { is: "unreadable", why: shown.wrong, isLasting: true };
    return shown ? { is: "effect", status: 200 } : { is: "none", syncJob };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { kind, deniedBy, retryAfterMs = 0, status = 0, message: why } = error;
    if (kind === "cancelled") return { is: "stopped" };
    // A proxy that has no way to the service says nothing of the sync job.
    if (kind !== "contract" && predicate.isShownBy(status)) return { is: "effect", status };
    const deniedForMs = isOwnLimit(deniedBy) ? retryAfterMs : undefined;
    return { is: "unreadable", why, deniedForMs };
  }
}
