// A deletion whose answer never came, or makes no sense: did it happen? Reads the sync job again. Called by delete.ts.
//
//   404 ─▶ deleted     400 ─▶ deleted, inferred     there in the end ─▶ not deleted, or by onUnknown: retry sent again     unreadable ─▶ unknown
//
// A sync job that is there right after the request shows nothing yet: the service may still be at it.

import { showName } from "../core/show-name.ts";
import type { Task } from "../tasks/task.ts";
import { type EffectSign, lookForEffect } from "./look-for-effect.ts";
import type { WorkParts } from "./parts.ts";
import { sendAgain } from "./send-start.ts";
import { type Claim, type Ending, end, type Step } from "./step.ts";
import { awaitAnswer, endingOf, isLost, noteLoss } from "./verify.ts";

/** A deletion that is looked into. `guard`: undefined when nobody asks for it any more; then it is only looked at. */
interface Lost {
  readonly parts: WorkParts;
  readonly claim: Claim;
  readonly guard: string | undefined;
}

/** The same read was answered with the sync job right before the request. What a missing one is answered with is not documented (§7). */
const gone: EffectSign = { select: [], isShown: () => false, isShownBy: (status) => status === 404 || status === 400 };

/** Looks for the sync job: gone, still there, sent again, or given up on with what is known. */
export async function verifyDeletion(task: Task, { parts, claim, guard }: Lost): Promise<Step> {
  const { entry } = claim;
  const { state, owner } = entry;
  if (state === "settled") return { step: "settled" };
  const onUnknown = parts.policy(task.policy)?.onUnknown;
  const isRemoved = parts.service(task.service) === undefined;
  const awaited = isRemoved || onUnknown === "give-up" ? await awaitAnswer(entry, parts) : undefined;
  if (awaited !== undefined) return awaited;
  const lost = await noteLoss(task, parts);
  const told = { startedAtMs: entry.sentAtMs ?? entry.claimedAtMs, sends: entry.sends, answerLost: isLost(lost) };
  const finish = (ending: Pick<Ending, "status" | "evidence" | "reason">, more: string): Step =>
    end({ ...ending, ...told, detail: `${lost.detail}; ${more}` }, { state, owner });
  if (isRemoved) return finish({ ...endingOf(lost), reason: "policy-removed" }, "the service was removed meanwhile");
  if (onUnknown === "give-up") return finish(endingOf(lost), "the policy says give-up");
  const look = await lookForEffect(task, { parts, entry, sign: gone });
  switch (look.is) {
    case "again":
      return look.step;
    case "effect": {
      const evidence = look.status === 404 ? "direct" : "inferred";
      const seen = `reading it again was answered with ${look.status}, so it is gone`;
      return finish({ status: "succeeded", evidence, reason: "deletion-confirmed" }, seen);
    }
    case "none": {
      const { name } = look.syncJob;
      const isSame = guard !== undefined && name === guard;
      const again =
        onUnknown === "retry" && isSame ? await sendAgain(task, { parts, claim, acceptedEnds: true }) : undefined;
      const renamed = isSame ? "" : `, and has ${showName(name)} now`;
      const seen = `it is still there ${Math.round(look.afterMs / 1_000)} s later${renamed}`;
      return again ?? finish({ status: "failed", evidence: "direct", reason: "still-there" }, seen);
    }
    case "unreadable":
      return finish(endingOf(lost), `whether it is there cannot be read: ${look.why}`);
  }
}
