// Whether a request had its effect on a task's sync job: reads the sync job, and has patience where nobody could look yet. Called by
// verify-activation.ts and verify-deletion.ts, which know what the effect looks like and how a task ends. Sends nothing else.
//
//   it shows the effect ─▶ effect     not yet ─▶ again     not when it could not come any more ─▶ none     unreadable ─▶ again, for 5 min ─▶ unreadable
import { isOwnLimit } from "../core/gate.ts";
import type { SyncJob, SyncService } from "../service/client.ts";
import { inRepository } from "../service/request-url.ts";
import { ServiceError } from "../service/service-error.ts";
import type { StartEntry } from "../store/start-entry.ts";
import type { Task } from "../tasks/task.ts";
import { lookAgain, noteHold } from "./held.ts";
import { tellOther } from "./other-sync-job.ts";
import type { WorkParts } from "./parts.ts";
import type { Step } from "./step.ts";
import { sendWithinMs } from "./timing.ts";

/** What the effect looks like. */
export interface EffectSign {
  /** The properties to ask for; none: those that come unasked. */
  readonly select: readonly string[];
  /** Whether a sync job shows it; else why that cannot be told, in one line: the next look would say the same. */
  readonly isShown: (syncJob: SyncJob) => boolean | { readonly wrong: string };
  /** Whether a read that is refused with this status shows it. */
  readonly isShownBy: (status: number) => boolean;
}

/** What a look showed. `none`: the request had no effect `afterMs` later, when it could come no more; `again`: nothing yet, the next look follows. */
export type Look =
  | { readonly is: "effect"; readonly status: number }
  | { readonly is: "none"; readonly syncJob: SyncJob; readonly afterMs: number }
  | { readonly is: "again"; readonly step: Step }
  | { readonly is: "unreadable"; readonly why: string };

/** What one read says. `stopped`: our own side broke it off; `isLasting`: the next one will say the same; `limitedForMs`: our limits let none out for so long. */
type Sight =
  | { readonly is: "effect"; readonly status: number }
  | { readonly is: "none"; readonly syncJob: SyncJob }
  | { readonly is: "stopped" }
  | Unreadable;

interface Unreadable {
  readonly is: "unreadable";
  readonly why: string;
  readonly isLasting?: boolean;
  readonly limitedForMs?: number | undefined;
}

interface Looking {
  readonly parts: WorkParts;
  readonly entry: StartEntry;
  readonly sign: EffectSign;
}

/** The sync job is looked at soon at first, then ever more rarely. */
const lookAgainMs = [1_000, 10_000] as const;

/** Looks once at the sync job of a task whose newest request may have gone out. */
export async function lookForEffect(task: Task, { parts, entry, sign }: Looking): Promise<Look> {
  const sentAtMs = entry.lastSentAtMs ?? entry.claimedAtMs;
  const service = parts.service(task.service);
  // From then on no effect means that there is none: the request may have left late, and a proxy may have held it back.
  const inTimeMs = sentAtMs + Math.max(parts.timing.verifyForMs, sendWithinMs + (service?.requestTimeoutMs ?? 0));
  // Before the look: what it shows is of then at the earliest.
  const nowMs = await parts.nowMs();
  const againAtMs = nowMs + Math.min(Math.max(nowMs - sentAtMs, lookAgainMs[0]), lookAgainMs[1]);
  const sight = await read(task, service, sign);
  switch (sight.is) {
    case "effect":
      return sight;
    case "none":
      if (nowMs >= inTimeMs) return { ...sight, afterMs: nowMs - sentAtMs };
      return again({ step: "snooze", untilMs: Math.min(againAtMs, inTimeMs) });
    case "stopped":
      return again({ step: "snooze", untilMs: againAtMs });
    case "unreadable": {
      const { isLasting, limitedForMs } = sight;
      const { unreadableForMs, heldForMs } = parts.timing;
      const heldUntilMs = await noteHold(task, parts, { nowMs, heldUntilMs: entry.heldUntilMs, limitedForMs });
      // From the first look that could have said the last word: all workers may have been down for hours before it.
      const sinceMs = nowMs < inTimeMs ? inTimeMs : await parts.journal.unreadable(task.id, nowMs);
      const readableAtMs = Math.max(sinceMs, Math.min(heldUntilMs, sinceMs + heldForMs));
      const patientUntilMs = isLasting === true ? inTimeMs : readableAtMs + unreadableForMs;
      if (nowMs >= patientUntilMs) return sight;
      return again(lookAgain(nowMs, Math.min(Math.max(heldUntilMs, againAtMs), patientUntilMs)));
    }
  }
}

function again(step: Step): Look {
  return { is: "again", step };
}

async function read(task: Task, service: SyncService | undefined, sign: EffectSign): Promise<Sight> {
  if (service === undefined) return { is: "unreadable", why: "the service was removed meanwhile", isLasting: true };
  try {
    const select = sign.select.length === 0 ? {} : { select: sign.select };
    const syncJob = await service.getSyncJobById(Number(task.target), { ...inRepository(task), ...select });
    const other = tellOther(task, syncJob);
    if (other !== undefined) return { is: "unreadable", why: other };
    const shown = sign.isShown(syncJob);
    if (typeof shown === "object") return { is: "unreadable", why: shown.wrong, isLasting: true };
    return shown ? { is: "effect", status: 200 } : { is: "none", syncJob };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { kind, heldBy, retryAfterMs = 0, status = 0, message: why } = error;
    if (kind === "cancelled") return { is: "stopped" };
    if (sign.isShownBy(status)) return { is: "effect", status };
    const limitedForMs = isOwnLimit(heldBy) ? retryAfterMs : undefined;
    return { is: "unreadable", why, limitedForMs };
  }
}
