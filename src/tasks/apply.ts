// An apply task: the worker reads one declared object, PUTs what differs and reads it again
// (apply/apply-object.ts). A PUT may be repeated, so there is no journal entry. While a run of the
// sync job goes on, the task waits.

import { type Applied, applyObject } from "../apply/apply-object.ts";
import { describeBlock, describeChanges, describePrecondition } from "../apply/describe.ts";
import { readingKeptMs } from "../apply/mask-cache.ts";
import type { Policy } from "../config/policy-set.ts";
import { systemClock } from "../core/clock.ts";
import { type DeclaredObject, objectName, showObject } from "../core/declared-object.ts";
import type { Attempt } from "../model/contracts.ts";
import type { Task } from "../model/task.ts";
import type { SyncService } from "../service/client.ts";
import type { TaskDependencies } from "./contracts.ts";
import { deferAfter, deferIfLimited } from "./defer.ts";
import { judge, reasonOf } from "./judge.ts";
import { end, type TaskEnding, type TaskStep } from "./step.ts";

/** Brings the object to its declared state once. */
export async function stepApply(task: Task, parts: TaskDependencies, attempt: Attempt): Promise<TaskStep> {
  const policy = parts.policy(task.policy);
  const service = parts.service(task.service);
  const object =
    policy?.action.kind === "apply" ? policy.action.objects.find((one) => objectName(one) === task.target) : undefined;
  if (policy === undefined || object === undefined || service === undefined) {
    const detail = `policy ${task.policy} does not declare ${task.target} any more`;
    return end({ status: "skipped", evidence: "direct", reason: "policy-removed", detail });
  }
  const step = await stepObject(task, object, { parts, policy, service, attempt });
  return step.step === "end" && step.ending.status === "missed" ? correctMissed(task, object, { parts, step }) : step;
}

interface Work {
  readonly parts: TaskDependencies;
  readonly policy: Policy;
  readonly service: SyncService;
  readonly attempt: Attempt;
}

async function stepObject(
  task: Task,
  object: DeclaredObject,
  { parts, policy, service, attempt }: Work,
): Promise<TaskStep> {
  const nowMs = await parts.nowMs();
  if (nowMs > task.startByMs) {
    const detail = "its turn came after its start-by time";
    return end({ status: "missed", evidence: "direct", reason: "too-late", detail });
  }
  const deferred = await deferIfLimited(task, parts, { nowMs });
  if (deferred !== undefined) return deferred;
  const { masks, memory } = parts.declared;
  // A reading from before the slot may miss changes made by then. Tasks of one slot share a reading
  // of the masks.
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
  /** The pause before it asks again whether the run has ended. */
  readonly againMs: number;
}

function toStep(task: Task, object: DeclaredObject, { applied, nowMs, againMs }: Context): TaskStep {
  const name = showObject(object);
  const changed = describeChanges(applied.changes);
  const failed = (reason: TaskEnding["reason"], why: string): TaskStep => {
    const detail = changed === "" ? why : `${why}; but ${changed}`;
    return end({ status: "failed", evidence: "direct", reason, detail, startedAtMs: nowMs });
  };
  switch (applied.end) {
    case "done":
      if (applied.blocked.length > 0)
        return failed("read-only-field", `${name}: ${applied.blocked.map(describeBlock).join("; ")}`);
      return end({ ...goodEnding(applied, `${name}: ${changed}`, `${name} is as declared`), startedAtMs: nowMs });
    case "missing":
      return failed("no-target", `there is no ${name}${inRepository(task)}: ${applied.detail}`);
    case "precondition":
      return failed("refused", describePrecondition(object, applied.detail));
    case "busy": {
      if (nowMs + againMs <= task.startByMs) return { step: "snooze", untilMs: nowMs + againMs };
      const detail = `its start-by time passes while ${applied.holder} is still running`;
      return end({ status: "missed", evidence: "direct", reason: "overlap", detail });
    }
    case "failed":
      return onFailure(task, applied, { nowMs, changed });
  }
}

/**
 * A task past its start-by time is not `missed` when an earlier step has changed the object, or may
 * have.
 */
async function correctMissed(
  task: Task,
  object: DeclaredObject,
  { parts, step }: { readonly parts: TaskDependencies; readonly step: Extract<TaskStep, { step: "end" }> },
): Promise<TaskStep> {
  const { by, sent, changed } = await parts.declared.memory.record(task, object);
  if (by !== task.id || sent.length + changed.length === 0) return step;
  const { ending, from } = step;
  const detail = changed.length === 0 ? ending.detail : `${ending.detail}; but ${describeChanges(changed)}`;
  if (sent.length === 0) return end({ ...ending, status: "failed", detail }, from);
  const open = { status: "unknown", evidence: "none", answerLost: true } as const;
  return end({ ...ending, ...open, detail: `${detail}; an update of it went out and was not answered` }, from);
}

function goodEnding({ changes }: Applied, changed: string, unchanged: string): TaskEnding {
  const good = { status: "succeeded", evidence: "direct" } as const;
  if (changes.length === 0) return { ...good, reason: "nothing-to-do", detail: unchanged };
  return { ...good, reason: changes.some(({ isDrift }) => isDrift) ? "drift-corrected" : "applied", detail: changed };
}

function onFailure(
  task: Task,
  { error, isSent }: Extract<Applied, { readonly end: "failed" }>,
  { nowMs, changed }: { readonly nowMs: number; readonly changed: string },
): TaskStep {
  const detail = changed === "" ? error.message : `${error.message}; but ${changed}`;
  const failure = { reason: reasonOf[error.kind], detail, startedAtMs: nowMs };
  const ending: TaskEnding = isSent
    ? { ...failure, status: "unknown", evidence: "none", answerLost: true }
    : { ...failure, status: "failed", evidence: "direct" };
  switch (judge(error, "apply")) {
    case "retry":
    case "verify":
      return { step: "retry", afterMs: error.retryAfterMs ?? 0, ending };
    case "defer":
      return deferAfter(task, error, { nowMs });
    case "resume":
      return { step: "snooze", untilMs: nowMs };
    case "give-up":
      return end(ending);
  }
}

function inRepository({ repository }: Task): string {
  return repository === null ? "" : ` in repository ${repository}`;
}
