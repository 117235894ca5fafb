// Whether an activation took effect, where the operator says by what a sync job shows that it is active (`mapping.syncJob.active`):
// reads the sync job, also when the service answered 200. Called by activate.ts.
//
//   active ─▶ succeeded     not active in time ─▶ failed     unreadable ─▶ what is known without it     (by onUnknown: retry a lost one is sent again first)
//
// Active is a state: whose request made it so is no question. A sync job that is not active right after the request shows nothing yet.
import type { ActiveSign } from "../feeds/mapping.ts";
import type { Task } from "../tasks/task.ts";
import { type EffectSign, lookForEffect } from "./look-for-effect.ts";
import type { WorkParts } from "./parts.ts";
import { sendAgain } from "./send-start.ts";
import { type Claim, type Ending, end, type Step } from "./step.ts";
import { endingOf, isLost, noteLoss } from "./verify.ts";

interface Activation {
  readonly parts: WorkParts;
  readonly claim: Claim;
  readonly sign: ActiveSign;
}

const wasAccepted = { status: "succeeded", evidence: "direct", reason: "answered" } as const;

/** Looks at the sync job of an activation that may have gone out: active, not yet, sent again, or given up on with what is known. */
export async function verifyActivation(task: Task, { parts, claim, sign }: Activation): Promise<Step> {
  const { entry } = claim;
  const { state, owner } = entry;
  const lost = state === "sending" ? await noteLoss(task, parts) : undefined;
  const known = lost === undefined ? wasAccepted : endingOf(lost);
  const said = lost?.detail ?? "the service accepted it";
  const from = lost === undefined ? ({ state: "answered" } as const) : ({ state: "sending", owner } as const);
  const loss = lost ?? entry.lost;
  const answerLost = loss !== undefined && isLost(loss);
  const told = { startedAtMs: entry.sentAtMs ?? entry.claimedAtMs, sends: entry.sends, answerLost };
  const finish = (ending: Pick<Ending, "status" | "evidence" | "reason">, seen: string): Step =>
    end({ ...ending, ...told, detail: `${said}; ${seen}` }, from);
  const orAgain = async (ended: Step): Promise<Step> => {
    const mayRepeat = lost !== undefined && parts.policy(task.policy)?.onUnknown === "retry";
    return (mayRepeat ? await sendAgain(task, { parts, claim, acceptedEnds: false }) : undefined) ?? ended;
  };
  const look = await lookForEffect(task, { parts, entry, sign: toEffect(sign) });
  switch (look.is) {
    case "again":
      return look.step;
    case "effect":
      return finish({ ...wasAccepted, reason: "seen-active" }, "the sync job is active");
    case "none": {
      const seconds = Math.round(look.afterMs / 1_000);
      const ending = { status: "failed", evidence: "direct", reason: "not-active" } as const;
      return orAgain(finish(ending, `the sync job is not active ${seconds} s later`));
    }
    case "unreadable":
      return orAgain(finish(known, `whether the sync job is active cannot be told: ${look.why}`));
  }
}

function toEffect({ select, read }: ActiveSign): EffectSign {
  const isShown: EffectSign["isShown"] = (syncJob) => {
    const seen = read(syncJob);
    return "wrong" in seen ? { wrong: `mapping.syncJob.${seen.wrong}` } : seen.active;
  };
  return { select, isShown, isShownBy: () => false };
}
