// Deferral: what a task does while limits (a throttle, the breaker, our own rates) let nothing be
// sent to its service. It sleeps without an attempt and a worker slot, or ends as missed when its
// start-by time passes meanwhile. Called before a start, after a limited request, and while a start
// cannot be verified.

import { systemClock } from "../core/clock.ts";
import { type Denied, isDenied, isOwnLimit, type Permit, resourceKey } from "../core/limiter.ts";
import type { Task } from "../model/task.ts";
import { describeDenied } from "../service/call-failure.ts";
import { inRepository } from "../service/request-url.ts";
import { waitToGoOnMsMax } from "../service/retry.ts";
import { ServiceError } from "../service/service-error.ts";
import type { TaskDependencies } from "./contracts.ts";
import { end, type TaskStep } from "./step.ts";

/** A task that would be too late asks once more, this long before its start-by time. */
const lastChanceMs = 500;

/** The time by Redis, and the owner of the task's claim, if it has one. */
interface Moment {
  readonly nowMs: number;
  readonly owner?: string;
}

/** Why a task must wait, and for how long from now. */
interface Deferral extends Moment {
  readonly waitMs: number;
  /** True when nothing will be sent before that; false when the limiter may admit it earlier. */
  readonly isSure: boolean;
  readonly why: string;
}

/**
 * The step of a start that is limited now; undefined when it may go on. When the breaker is open
 * and due for a probe, the worker reads the task's sync job: a start is never the probe, since a
 * lost answer would leave it unknown.
 */
export async function deferIfLimited(
  task: Task,
  parts: TaskDependencies,
  moment: Moment,
): Promise<TaskStep | undefined> {
  let denied = await parts.deniedBy(task.service);
  let probeWaitMs = 0;
  if (denied?.deniedBy === "breaker" && denied.waitMs === 0) {
    probeWaitMs = await probe(task, parts);
    denied = await parts.deniedBy(task.service);
  }
  if (denied === undefined) return undefined;
  // At least 1 s: a probe by another worker needs that long.
  return deferByLimiter(task, { ...denied, waitMs: Math.max(denied.waitMs, probeWaitMs, 1_000) }, moment);
}

/** The step of a task after a limited request: by the service (429), or by our own limiter. */
export function deferAfter(task: Task, error: ServiceError, moment: Moment): TaskStep {
  const isSure = error.deniedBy === undefined || error.deniedBy === "throttle";
  return snoozeOrMiss(task, { ...moment, waitMs: error.retryAfterMs ?? 5_000, isSure, why: error.message });
}

/**
 * The permit of a deletion whose guard has just been read, or its denial. Waits in place, but only
 * for our own limits: after a sleep of the task the guard would have to be read again, which would
 * use up the permit.
 */
export async function acquireAfterGuard(task: Task, parts: TaskDependencies): Promise<Permit | Denied> {
  const resource = resourceKey({ ...task, key: task.target });
  for (let waitedMs = 0; ; ) {
    const answer = await parts.acquire(task.service, { isRead: false, resource });
    if (!isDenied(answer)) return answer;
    waitedMs += Math.max(answer.waitMs, 1);
    const isLong = waitedMs > waitToGoOnMsMax || !isOwnLimit(answer.deniedBy);
    if (isLong || parts.stopping.aborted) return answer;
    await systemClock.sleep(answer.waitMs, parts.stopping);
  }
}

/** The step of a start that the limiter denies before its permission. */
export function deferByLimiter(task: Task, denied: Denied, moment: Moment): TaskStep {
  const isSure = denied.deniedBy === "throttle";
  return snoozeOrMiss(task, { ...moment, waitMs: denied.waitMs, isSure, why: describeDenied(denied) });
}

/** Sleeps for `waitMs`, or ends the task as missed when that is past its start-by time. */
export function snoozeOrMiss(task: Task, { nowMs, owner, waitMs, isSure, why }: Deferral): TaskStep {
  if (nowMs + waitMs <= task.startByMs) return { step: "snooze", untilMs: nowMs + waitMs };
  const chanceMs = task.startByMs - lastChanceMs;
  if (!isSure && nowMs < chanceMs) return { step: "snooze", untilMs: chanceMs };
  const detail = `its start-by time passes while it waits: ${why}`;
  const ending = { status: "missed", evidence: "direct", reason: "throttled", detail } as const;
  return end(ending, owner === undefined ? undefined : { state: "claimed", owner });
}

/**
 * A limited verification steps at least this often, to renew its lease and its wait for the feeds.
 */
const limitedStepMsMax = 60_000;

/**
 * A try to verify. `heldUntilMs`: until when limits blocked it so far; `limitedForMs`: how long our
 * own limits do now.
 */
interface Verification {
  readonly nowMs: number;
  readonly heldUntilMs: number | undefined;
  readonly limitedForMs?: number | undefined;
}

/**
 * Until when limits block or blocked the verification of a start; 0 if they never did. Noted in the
 * journal, so that time for a verification remains afterwards. A service that is down is not
 * limited: it is unreadable.
 */
export async function noteUnreadable(
  task: Task,
  parts: TaskDependencies,
  { nowMs, heldUntilMs = 0, limitedForMs = 0 }: Verification,
): Promise<number> {
  const denied = await parts.deniedBy(task.service);
  const waitMs = Math.max(limitedForMs, denied?.deniedBy === "throttle" ? denied.waitMs : 0);
  if (waitMs === 0) return heldUntilMs;
  await parts.journal.heldUntil(task.id, nowMs + waitMs);
  return nowMs + waitMs;
}

/** Verifies again: after a moment, or when the service takes requests again. */
export function verifyLater(nowMs: number, heldUntilMs: number): TaskStep {
  const sleepMs = Math.min(Math.max(heldUntilMs - nowMs, 1_000), limitedStepMsMax);
  return { step: "snooze", untilMs: nowMs + sleepMs };
}

/** Sends the probe. Returns for how long the limiter denies it; 0 when it was sent. */
async function probe(task: Task, parts: TaskDependencies): Promise<number> {
  const query = inRepository(task);
  try {
    const service = parts.service(task.service);
    // The target of an apply task is a name, not an id.
    if (task.kind === "apply") await service?.count("GetJobMasks", query);
    else await service?.getSyncJobById(Number(task.target), query);
  } catch (error) {
    // The limiter has noted what the error says about the service.
    if (!(error instanceof ServiceError)) throw error;
    if (error.deniedBy === "breaker") return error.retryAfterMs ?? 0;
  }
  return 0;
}
