// A deletion whose answer never came, or makes no sense: did it happen? Reads the sync job again. Called by delete.ts.
//
//   404 ─▶ deleted     400 ─▶ deleted, inferred     there for 30 s ─▶ not deleted, or by onUnknown: retry sent again     unreadable ─▶ unknown
//
// A sync job that is there right after the request shows nothing yet: the service may still be at it.

import { showName } from "../core/show-name.ts";
import type { SyncService } from "../service/client.ts";
import { ServiceError } from "../service/service-error.ts";
import type { Task } from "../tasks/task.ts";
import { limitedForMs, lookAgain, noteHold } from "./held.ts";
import { tellOther } from "./other-sync-job.ts";
import type { WorkParts } from "./parts.ts";
import { sendAgain } from "./send-start.ts";
import { type Claim, type Ending, end, type Step } from "./step.ts";
import { endingOf, isLost, noteLoss } from "./verify.ts";

/** A deletion that is looked into. `guard`: undefined when nobody asks for it any more; then it is only looked at. */
interface Lost {
  readonly parts: WorkParts;
  readonly claim: Claim;
  readonly guard: string | undefined;
}

const againMs = 1_000;

/** What a read showed. */
type Look =
  | { readonly is: "gone"; readonly evidence: "direct" | "inferred"; readonly status: number }
  | { readonly is: "there"; readonly name: string | undefined }
  | { readonly is: "unreadable"; readonly why: string; readonly limitedForMs?: number | undefined };

/** Looks for the sync job: gone, still there, sent again, or given up on with what is known. */
export async function verifyDeletion(task: Task, { parts, claim, guard }: Lost): Promise<Step> {
  const { entry } = claim;
  const { state, owner } = entry;
  if (state === "settled") return { step: "settled" };
  const lost = await noteLoss(task, parts);
  const policy = parts.policy(task.policy);
  const service = parts.service(task.service);
  const sentAtMs = entry.sentAtMs ?? entry.claimedAtMs;
  const told = { startedAtMs: sentAtMs, sends: entry.sends, answerLost: isLost(lost) };
  const finish = (ending: Pick<Ending, "status" | "evidence" | "reason">, more: string): Step =>
    end({ ...ending, ...told, detail: `${lost.detail}; ${more}` }, { state, owner });
  if (service === undefined)
    return finish({ ...endingOf(lost), reason: "policy-removed" }, "the service was removed meanwhile");
  if (policy?.onUnknown === "give-up") return finish(endingOf(lost), "the policy says give-up");
  const look = await lookAt(task, service);
  const nowMs = await parts.nowMs();
  const lastSentAtMs = entry.lastSentAtMs ?? sentAtMs;
  const ageMs = nowMs - lastSentAtMs;
  switch (look.is) {
    case "gone": {
      const { evidence, status } = look;
      return finish(
        { status: "succeeded", evidence, reason: "deletion-confirmed" },
        `reading it again was answered with ${status}, so it is gone`,
      );
    }
    case "there": {
      if (ageMs < parts.timing.verifyForMs) return { step: "snooze", untilMs: nowMs + againMs };
      const isSame = guard !== undefined && look.name === guard;
      const again =
        policy?.onUnknown === "retry" && isSame
          ? await sendAgain(task, { parts, claim, acceptedEnds: true })
          : undefined;
      if (again !== undefined) return again;
      const name = isSame ? "" : `, and has ${showName(look.name)} now`;
      const seconds = Math.round(ageMs / 1_000);
      return finish(
        { status: "failed", evidence: "direct", reason: "still-there" },
        `it is still there ${seconds} s later${name}`,
      );
    }
    case "unreadable": {
      const { unreadableForMs, heldForMs } = parts.timing;
      const held = { nowMs, heldUntilMs: entry.heldUntilMs, limitedForMs: look.limitedForMs };
      const heldUntilMs = await noteHold(task, parts, held);
      const readableAtMs = Math.max(lastSentAtMs, Math.min(heldUntilMs, lastSentAtMs + heldForMs));
      const patientUntilMs = readableAtMs + unreadableForMs;
      if (nowMs < patientUntilMs) return lookAgain(nowMs, Math.min(heldUntilMs, patientUntilMs));
      return finish(endingOf(lost), `whether it is there cannot be read: ${look.why}`);
    }
  }
}

async function lookAt(task: Task, service: SyncService): Promise<Look> {
  try {
    const query = task.repository === null ? {} : { repository: task.repository };
    const syncJob = await service.getSyncJobById(Number(task.target), query);
    const other = tellOther(task, syncJob);
    if (other !== undefined) return { is: "unreadable", why: other };
    return { is: "there", name: syncJob.name ?? undefined };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    if (error.kind === "not-found") return { is: "gone", evidence: "direct", status: 404 };
    // The same read was answered with the sync job right before the request. What a missing one is answered with is not documented (§7).
    if (error.status === 400) return { is: "gone", evidence: "inferred", status: 400 };
    return { is: "unreadable", why: error.message, limitedForMs: limitedForMs(error) };
  }
}
