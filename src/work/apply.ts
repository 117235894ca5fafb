// An apply task: one declared object is looked at, what differs is PUT, and it is looked at again (declared/apply-object.ts). Here that becomes a
// step: an outcome, or when to go on. A PUT may be repeated, so it needs no journal; while a run of its sync job goes on it waits.

import type { Policy } from "../config/policy-set.ts";
import { systemClock } from "../core/clock.ts";
import { type DeclaredObject, objectName, showObject } from "../core/declared-object.ts";
import { type Applied, applyObject } from "../declared/apply-object.ts";
import { readingKeptMs } from "../declared/mask-shelf.ts";
import { tellBlock, tellChanges, tellPrecondition } from "../declared/tell.ts";
import type { SyncService } from "../service/client.ts";
import type { Attempt } from "../tasks/seams.ts";
import type { Task } from "../tasks/task.ts";
import { heldBack, waitAfter } from "./held.ts";
import { judge, reasonOf } from "./judge.ts";
import type { WorkParts } from "./parts.ts";
import { type Ending, end, type Step } from "./step.ts";

/** Looks at the object, changes what differs, and says how that ended. */
export async function stepApply(task: Task, parts: WorkParts, attempt: Attempt): Promise<Step> {
  const policy = parts.policy(task.policy);
  const service = parts.service(task.service);
  const object =
    policy?.action.kind === "apply" ? policy.action.objects.find((one) => objectName(one) === task.target) : undefined;
  if (policy === undefined || object === undefined || service === undefined) {
    const detail = `policy ${task.policy} does not declare ${task.target} any more`;
    return end({ status: "skipped", evidence: "direct", reason: "policy-removed", detail });
  }
  const step = await stepObject(task, object, { parts, policy, service, attempt });
  return step.step === "end" && step.ending.status === "missed" ? tellMissed(task, object, { parts, step }) : step;
}

interface Work {
  readonly parts: WorkParts;
  readonly policy: Policy;
  readonly service: SyncService;
  readonly attempt: Attempt;
}

async function stepObject(
  task: Task,
  object: DeclaredObject,
  { parts, policy, service, attempt }: Work,
): Promise<Step> {
  const nowMs = await parts.nowMs();
  if (nowMs > task.startByMs) {
    const detail = "its turn came after its start-by time";
    return end({ status: "missed", evidence: "direct", reason: "too-late", detail });
  }
  const held = await heldBack(task, parts, { nowMs });
  if (held !== undefined) return held;
  const { masks, memory } = parts.declared;
  // Whatever was changed before the slot came due is seen; tasks of one slot share a reading of the masks.
  const sinceMs = systemClock.monotonicMs() - Math.min(Math.max(0, nowMs - task.slotMs), readingKeptMs);
  const applied = await applyObject(object, {
    owner: task,
    service,
    masks,
    memory,
    signal: attempt.signal,
    sinceMs,
    by: task.id,
    holder: async (target) => (policy.overlap === "allow" ? undefined : parts.leases.holder({ ...task, target })),
  });
  return toStep(task, object, { applied, nowMs, againMs: parts.timing.queueForLeaseMs });
}

interface Context {
  readonly applied: Applied;
  readonly nowMs: number;
  /** How long to wait for the end of a run. */
  readonly againMs: number;
}

function toStep(task: Task, object: DeclaredObject, { applied, nowMs, againMs }: Context): Step {
  const name = showObject(object);
  const changed = tellChanges(applied.changes);
  const failed = (reason: Ending["reason"], why: string): Step => {
    const detail = changed === "" ? why : `${why}; but ${changed}`;
    return end({ status: "failed", evidence: "direct", reason, detail, startedAtMs: nowMs });
  };
  switch (applied.end) {
    case "done":
      if (applied.blocked.length > 0)
        return failed("read-only-field", `${name}: ${applied.blocked.map(tellBlock).join("; ")}`);
      return end({ ...goodEnding(applied, `${name}: ${changed}`, `${name} is as declared`), startedAtMs: nowMs });
    case "missing":
      return failed("no-target", `there is no ${name}${inRepository(task)}: ${applied.detail}`);
    case "precondition":
      return failed("refused", tellPrecondition(object, applied.detail));
    case "busy": {
      if (nowMs + againMs <= task.startByMs) return { step: "snooze", untilMs: nowMs + againMs };
      const detail = `its start-by time passes while ${applied.holder} is still running`;
      return end({ status: "missed", evidence: "direct", reason: "overlap", detail });
    }
    case "failed":
      return onFailure(task, applied, { nowMs, changed });
  }
}

/** A task whose time is over before it is at its end was not missed when it has changed something, or may have. */
async function tellMissed(
  task: Task,
  object: DeclaredObject,
  { parts, step }: { readonly parts: WorkParts; readonly step: Extract<Step, { step: "end" }> },
): Promise<Step> {
  const { by, sent, changed } = await parts.declared.memory.record(task, object);
  if (by !== task.id || sent.length + changed.length === 0) return step;
  const { ending, from } = step;
  const detail = changed.length === 0 ? ending.detail : `${ending.detail}; but ${tellChanges(changed)}`;
  if (sent.length === 0) return end({ ...ending, status: "failed", detail }, from);
  const open = { status: "unknown", evidence: "none", answerLost: true } as const;
  return end({ ...ending, ...open, detail: `${detail}; an update of it went out and was not answered` }, from);
}

function goodEnding({ changes }: Applied, changed: string, unchanged: string): Ending {
  const good = { status: "succeeded", evidence: "direct" } as const;
  if (changes.length === 0) return { ...good, reason: "nothing-to-do", detail: unchanged };
  return { ...good, reason: changes.some(({ isDrift }) => isDrift) ? "drift-mended" : "applied", detail: changed };
}

function onFailure(
  task: Task,
  { error, isSent }: Extract<Applied, { readonly end: "failed" }>,
  { nowMs, changed }: { readonly nowMs: number; readonly changed: string },
): Step {
  const detail = changed === "" ? error.message : `${error.message}; but ${changed}`;
  const told = { reason: reasonOf[error.kind], detail, startedAtMs: nowMs };
  const ending: Ending = isSent
    ? { ...told, status: "unknown", evidence: "none", answerLost: true }
    : { ...told, status: "failed", evidence: "direct" };
  switch (judge(error, "apply")) {
    case "retry":
    case "verify":
      return { step: "retry", afterMs: error.retryAfterMs ?? 0, ending };
    case "wait":
      return waitAfter(task, error, { nowMs });
    case "again":
      return { step: "snooze", untilMs: nowMs };
    case "give-up":
      return end(ending);
  }
}

function inRepository({ repository }: Task): string {
  return repository === null ? "" : ` in repository ${repository}`;
}
