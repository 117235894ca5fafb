// An activate task: permission, POST once, done. The interface names no trace that an activation leaves (§3 and §4.4), so a lost
// answer stays unknown, unless the policy says onUnknown: retry, or the mapping says by what a sync job shows that it is
// active: then each activation is looked at (verify-activation.ts).
import type { Task } from "../tasks/task.ts";
import { heldBack } from "./held.ts";
import type { WorkParts } from "./parts.ts";
import { acceptedEnds, sendAgain, sendStart } from "./send-start.ts";
import { type Claim, end, endUnsent, type Step } from "./step.ts";
import { awaitAnswer, endingOf, noteLoss } from "./verify.ts";
import { verifyActivation } from "./verify-activation.ts";

/** Does the next step of an activation. */
export async function stepActivate(task: Task, parts: WorkParts, claim: Claim): Promise<Step> {
  const { entry, owner } = claim;
  const policy = parts.policy(task.policy);
  const sign =
    policy?.onUnknown === "give-up" && entry.state === "sending" ? undefined : parts.activeSign(task.service);
  switch (entry.state) {
    case "settled":
      return { step: "settled" };
    case "answered":
      if (sign !== undefined) return verifyActivation(task, { parts, claim, sign });
      return end(
        {
          status: "succeeded",
          evidence: "direct",
          reason: "answered",
          detail: "the service accepted it",
          startedAtMs: entry.sentAtMs,
          sends: entry.sends,
        },
        { state: "answered" },
      );
    case "sending": {
      if (sign !== undefined) return verifyActivation(task, { parts, claim, sign });
      const awaited = await awaitAnswer(entry, parts);
      if (awaited !== undefined) return awaited;
      const lost = await noteLoss(task, parts);
      if (policy?.onUnknown === "retry") {
        const again = await sendAgain(task, { parts, claim, acceptedEnds: true });
        if (again !== undefined) return again;
      }
      const { sentAtMs: startedAtMs, sends, owner: sender } = entry;
      return end({ ...endingOf(lost), detail: lost.detail, startedAtMs, sends }, { state: "sending", owner: sender });
    }
    case "claimed":
      if (policy === undefined) {
        const detail = `policy ${task.policy} is not configured any more`;
        return endUnsent(owner, "skipped", { reason: "policy-removed", detail });
      }
      return (
        (await heldBack(task, parts, { nowMs: await parts.nowMs(), owner })) ??
        sendStart(task, { parts, claim, baseline: "", acceptedEnds: acceptedEnds(task, policy, parts) })
      );
  }
}
