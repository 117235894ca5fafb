// An apply task: the worker reads one declared object, PUTs what differs and reads it again
// (apply/apply-object.ts). A PUT may be repeated, so there is no journal entry. While a run of the
// sync job goes on, the task waits.
import { type ApplyResult, applyObject } from "../apply/apply-object.ts";
import { describeBlock, describeChanges, describePrecondition } from "../apply/differences.ts";
import { readingKeptMs } from "../apply/mask-cache.ts";
import type { Policy } from "../config/policy-set.ts";
import { systemClock } from "../core/clock.ts";
import { type DeclaredObject, objectName, parseObjectName, showObject } from "../core/declared-object.ts";
import type { Task } from "../model/task.ts";
import type { Attempt } from "../model/task-processing.ts";
import { complete, snooze } from "../model/verdict.ts";
import type { SyncService } from "../service/client.ts";
import { deferIfDenied, stepAfterFailure } from "./defer.ts";
import { endCancelled } from "./finish.ts";
import { reasonOf } from "./judge.ts";
import { endRemoved, endTooLate, endUnsent, type StepResult, type TaskEnding } from "./step.ts";
import type { ApplyTaskDependencies } from "./step-dependencies.ts";

/** Brings the object to its declared state once. */
export async function stepApply(task: Task, deps: ApplyTaskDependencies, attempt: Attempt): Promise<StepResult> {
  const policy = deps.policy(task.policy);
  const service = deps.service(task.service);
  const objects = policy?.action.kind === "apply" ? policy.action.objects : [];
  const object = objects.find((one) => objectName(one) === task.target);
  const step =
    (await endCancelled(task, deps)) ??
    (policy === undefined || object === undefined || service === undefined
      ? endRemoved(undefined, `policy ${task.policy} does not declare ${task.target}`)
      : await stepObject(task, object, { deps, policy, service, attempt }));
  return step.verdict === "complete" && (step.ending?.status === "missed" || step.ending?.status === "skipped")
    ? complete(await correctUnsent(task, { deps, unsent: step.ending }))
    : step;
}

interface Work {
  readonly deps: ApplyTaskDependencies;
  readonly policy: Policy;
  readonly service: SyncService;
  readonly attempt: Attempt;
}

async function stepObject(
  task: Task,
  object: DeclaredObject,
  { deps, policy, service, attempt }: Work,
): Promise<StepResult> {
  const nowMs = await deps.nowMs();
  if (nowMs > task.startByMs) return endTooLate(undefined);
  const deferred = await deferIfDenied(task, deps, { nowMs });
  if (deferred !== undefined) return deferred;
  const { masks, memory } = deps.declared;
  // A reading from before the slot may miss changes made by then. Tasks of one slot share one.
  const sinceMs = systemClock.monotonicMs() - Math.min(Math.max(0, nowMs - task.slotMs), readingKeptMs);
  const applied = await applyObject(object, {
    place: task,
    service,
    masks,
    memory,
    signal: attempt.signal,
    sinceMs,
    by: task.id,
    holder: async (target) =>
      policy.overlap === "allow" ? undefined : deps.leases.liveHolder({ ...task, target }, deps.jobStatus),
  });
  return toResult(task, object, { applied, nowMs, againMs: deps.timing.queueForLeaseMs });
}

interface Context {
  readonly applied: ApplyResult;
  readonly nowMs: number;
  /** The pause before it asks again whether the run has ended. */
  readonly againMs: number;
}

function toResult(task: Task, object: DeclaredObject, { applied, nowMs, againMs }: Context): StepResult {
  const name = showObject(object);
  const changed = describeChanges(applied.changes);
  const but = (why: string) => (changed === "" ? why : `${why}; but ${changed}`);
  const failed = (reason: TaskEnding["reason"], why: string): StepResult =>
    complete({ status: "failed", evidence: "direct", reason, detail: but(why), startedAtMs: nowMs });
  switch (applied.end) {
    case "done":
      if (applied.blocked.length > 0)
        return failed("read-only-field", `${name}: ${applied.blocked.map(describeBlock).join("; ")}`);
      return complete({ ...goodEnding(name, applied), startedAtMs: nowMs });
    case "missing": {
      const where = task.repository === null ? "" : ` in repository ${task.repository}`;
      return failed("no-target", `there is no ${name}${where}: ${applied.detail}`);
    }
    case "precondition":
      return failed("refused", describePrecondition(object, applied.detail));
    case "busy": {
      if (nowMs + againMs <= task.startByMs) return snooze(nowMs + againMs);
      const detail = `its start-by time passes while ${applied.holder} is still running`;
      return endUnsent(undefined, "missed", { reason: "overlap", detail });
    }
    case "failed": {
      const open = { status: "unknown", evidence: "none", answerLost: true } as const;
      const status = applied.isSent ? open : ({ status: "failed", evidence: "direct" } as const);
      return stepAfterFailure(task, applied.error, {
        nowMs,
        ending: ({ kind, message }) => ({
          ...status,
          reason: reasonOf(kind),
          detail: but(message),
          startedAtMs: nowMs,
        }),
      });
    }
  }
}

/** A late, cancelled or removed task is not unsent if it changed something before, or may have. */
async function correctUnsent(
  task: Task,
  { deps, unsent }: { readonly deps: Pick<ApplyTaskDependencies, "declared">; readonly unsent: TaskEnding },
): Promise<TaskEnding> {
  const kept = await deps.declared.memory.record(task, parseObjectName(task.target));
  const changed = kept.by === task.id ? kept.changed : [];
  const sent = kept.sent.filter(({ by }) => by === task.id);
  if (sent.length + changed.length === 0) return unsent;
  const detail = changed.length === 0 ? unsent.detail : `${unsent.detail}; but ${describeChanges(changed)}`;
  if (sent.length === 0) return { ...unsent, status: "failed", detail };
  const open = { status: "unknown", evidence: "none", answerLost: true } as const;
  return { ...unsent, ...open, detail: `${detail}; an update of it went out and was not answered` };
}

function goodEnding(name: string, { changes, unread }: Extract<ApplyResult, { readonly end: "done" }>): TaskEnding {
  const good = { status: "succeeded", evidence: "direct" } as const;
  if (changes.length > 0) {
    const reason = changes.some(({ isDrift }) => isDrift) ? "drift-corrected" : "applied";
    return { ...good, reason, detail: `${name}: ${describeChanges(changes)}` };
  }
  if (unread.length === 0) return { ...good, reason: "nothing-to-do", detail: `${name} is as declared` };
  const detail = `${name} is declared as last applied; ${unread.join(", ")} cannot be read`;
  return { ...good, evidence: "inferred", reason: "nothing-to-do", detail };
}
