// Whether an activation took effect, where the operator says by what a sync job shows that it is active (`mapping.syncJob.active`):
// reads the sync job, also when the service answered 200. Called by activate.ts.
//
//   active ─▶ succeeded     not active in time ─▶ failed     unreadable ─▶ what is known without it     (by onUnknown: retry a lost one is sent again first)
//
// Active is a state: whose request made it so is no question. A sync job that is not active right after the request shows nothing yet.
import type { ActiveSign } from "../feeds/mapping.ts";
import { ServiceError } from "../service/service-error.ts";
import type { StartEntry } from "../store/start-entry.ts";
import type { Task } from "../tasks/task.ts";
import { limitedForMs, lookAgain, noteHold } from "./held.ts";
import { tellOther } from "./other-sync-job.ts";
import type { WorkParts } from "./parts.ts";
import { sendAgain } from "./send-start.ts";
import { type Claim, type Ending, end, type Step } from "./step.ts";
import { sendWithinMs } from "./timing.ts";
import { endingOf, isLost, noteLoss } from "./verify.ts";

/** Nothing could be read. `isLasting`: the same will be read again; `limitedForMs`: nothing was asked, our own limits let nothing out for so long. */
interface Unreadable {
  readonly is: "unreadable";
  readonly why: string;
  readonly isLasting: boolean;
  readonly limitedForMs: number | undefined;
}

/** What a read of the sync job showed. `stopped`: our own side broke it off. */
type Look = { readonly is: "active" | "inactive" | "stopped" } | Unreadable;

interface Activation {
  readonly parts: WorkParts;
  readonly claim: Claim;
  readonly sign: ActiveSign;
}

/** The sync job is looked at soon at first, then ever more rarely. */
const lookAgainMs = [1_000, 10_000] as const;
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
  // Before the look: what it shows is of then at the earliest.
  const nowMs = await parts.nowMs();
  const look = await lookAt(task, { parts, sign });
  const inTimeMs = inTimeUntilMs(entry, task, parts);
  const againMs = Math.min(Math.max(nowMs - sentAtMsOf(entry), lookAgainMs[0]), lookAgainMs[1]);
  const orAgain = async (ended: Step): Promise<Step> => {
    const mayRepeat = lost !== undefined && parts.policy(task.policy)?.onUnknown === "retry";
    return (mayRepeat ? await sendAgain(task, { parts, claim, acceptedEnds: false }) : undefined) ?? ended;
  };
  switch (look.is) {
    case "active":
      return finish({ ...wasAccepted, reason: "seen-active" }, "the sync job is active");
    case "inactive": {
      if (nowMs < inTimeMs) return { step: "snooze", untilMs: Math.min(nowMs + againMs, inTimeMs) };
      const seconds = Math.round((nowMs - sentAtMsOf(entry)) / 1_000);
      const ending = { status: "failed", evidence: "direct", reason: "not-active" } as const;
      return orAgain(finish(ending, `the sync job is not active ${seconds} s later`));
    }
    case "stopped":
      return { step: "snooze", untilMs: nowMs + againMs };
    case "unreadable": {
      const { unreadableForMs, heldForMs } = parts.timing;
      const heldUntilMs = await noteHold(task, parts, { ...look, nowMs, heldUntilMs: entry.heldUntilMs });
      // Of a worker that died, nobody has looked before that was noticed.
      const lookedFromMs = Math.max(inTimeMs, lost?.atMs ?? 0);
      const readableAtMs = Math.max(lookedFromMs, Math.min(heldUntilMs, inTimeMs + heldForMs));
      const patientUntilMs = look.isLasting ? inTimeMs : readableAtMs + unreadableForMs;
      if (nowMs < patientUntilMs)
        return lookAgain(nowMs, Math.min(Math.max(heldUntilMs, nowMs + againMs), patientUntilMs));
      return orAgain(finish(known, `whether the sync job is active cannot be told: ${look.why}`));
    }
  }
}

function sentAtMsOf({ lastSentAtMs, sentAtMs, claimedAtMs }: StartEntry): number {
  return lastSentAtMs ?? sentAtMs ?? claimedAtMs;
}

/** From when on a sync job that is not active shows that the request had no effect: it may have left late, and a proxy may have held it back. */
function inTimeUntilMs(entry: StartEntry, task: Task, { timing, service }: WorkParts): number {
  const requestMs = service(task.service)?.requestTimeoutMs ?? 0;
  return sentAtMsOf(entry) + Math.max(timing.verifyForMs, sendWithinMs + requestMs);
}

async function lookAt(task: Task, { parts, sign }: Pick<Activation, "parts" | "sign">): Promise<Look> {
  const service = parts.service(task.service);
  if (service === undefined)
    return { is: "unreadable", why: "the service was removed meanwhile", isLasting: true, limitedForMs: undefined };
  try {
    const select = sign.select.length === 0 ? {} : { select: sign.select };
    const query = { ...(task.repository === null ? {} : { repository: task.repository }), ...select };
    const syncJob = await service.getSyncJobById(Number(task.target), query);
    const other = tellOther(task, syncJob);
    if (other !== undefined) return { is: "unreadable", why: other, isLasting: false, limitedForMs: undefined };
    const seen = sign.read(syncJob);
    if ("wrong" in seen)
      return { is: "unreadable", why: `mapping.syncJob.${seen.wrong}`, isLasting: true, limitedForMs: undefined };
    return { is: seen.active ? "active" : "inactive" };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    if (error.kind === "cancelled") return { is: "stopped" };
    return { is: "unreadable", why: error.message, isLasting: false, limitedForMs: limitedForMs(error) };
  }
}
