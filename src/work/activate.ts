// An activate task: permission, POST once, done. The interface names no trace that an activation leaves (§3 and §4.4), so a lost
// answer stays unknown.
import { randomUUID } from "node:crypto";
import type { Task } from "../tasks/task.ts";
import { heldBack } from "./held.ts";
import type { WorkParts } from "./parts.ts";
import { sendStart } from "./send-start.ts";
import { end, endUnsent, type Step } from "./step.ts";
import { endingOf, workerDied } from "./verify.ts";

/** Does the next step of an activation. */
export async function stepActivate(task: Task, parts: WorkParts): Promise<Step> {
  const owner = randomUUID();
  const entry = await parts.journal.claim(task.id, owner);
  switch (entry.state) {
    case "settled":
      return { step: "settled" };
    case "answered":
      return end({
        status: "succeeded",
        evidence: "direct",
        reason: "answered",
        detail: "the service accepted it",
        startedAtMs: entry.sentAtMs,
      });
    case "sending": {
      const lost = await parts.journal.answerLost(task.id, workerDied);
      return end({ ...endingOf(lost), detail: lost.detail, startedAtMs: entry.sentAtMs });
    }
    case "claimed":
      if (parts.policy(task.policy) === undefined)
        return endUnsent("skipped", "policy-removed", `policy ${task.policy} is not configured any more`);
      return (
        (await heldBack(task, parts, await parts.nowMs())) ??
        sendStart(task, { parts, owner, baseline: "", acceptedEnds: true })
      );
  }
}
