// What a task does when nothing may be sent to its service now: it sleeps without an attempt spent and without a worker slot,
// or ends as missed when its start-by time passes meanwhile. Called before a start, and after a request that was held back.

import { systemClock } from "../core/clock.ts";
import { type Hold, isHold, isOwnLimit, type Pass, requestSubject } from "../core/gate.ts";
import { tellHold } from "../service/call-failure.ts";
import { inRepository } from "../service/request-url.ts";
import { waitToGoOnMsMax } from "../service/retry.ts";
import { ServiceError } from "../service/service-error.ts";
import type { Task } from "../tasks/task.ts";
import type { WorkParts } from "./parts.ts";
import { end, type Step } from "./step.ts";

/** A task whose turn would come too late asks once more, this long before its start-by time. */
const lastChanceMs = 500;

/** Now by Redis, and who has claimed the task, if it needs a claim. */
interface Moment {
  readonly nowMs: number;
  readonly owner?: string;
}

/** Why a task must wait, and for how long from now. */
interface Patience extends Moment {
  readonly waitMs: number;
  /** True when nobody will send anything before that; false when a place may be free earlier. */
  readonly isSure: boolean;
  readonly why: string;
}

/**
 * What holds a start back now, as a step; undefined when it may go on. When the service's breaker is open and a probe is due,
 * this asks for the task's own sync job: a start is never the probe, since a lost answer would leave it unknown.
 */
export async function heldBack(task: Task, parts: WorkParts, moment: Moment): Promise<Step | undefined> {
  let hold = await parts.held(task.service);
  let probeWaitMs = 0;
  if (hold?.heldBy === "breaker" && hold.waitMs === 0) {
    probeWaitMs = await probe(task, parts);
    hold = await parts.held(task.service);
  }
  if (hold === undefined) return undefined;
  // Whoever probes now needs a moment; the others look again after it.
  return waitAtGate(task, { ...hold, waitMs: Math.max(hold.waitMs, probeWaitMs, 1_000) }, moment);
}

/** The step of a task after a request that was refused for now: by the service (429), or by our own gate. */
export function waitAfter(task: Task, error: ServiceError, moment: Moment): Step {
  const isSure = error.heldBy === undefined || error.heldBy === "throttle";
  return waitOrMiss(task, { ...moment, waitMs: error.retryAfterMs ?? 5_000, isSure, why: error.message });
}

/**
 * A place at the gate for a deletion whose guard has just been read: waited for in place, by our own limits alone, since the guard would have
 * to be read anew after a sleep, which would take the place. Or what holds it back for longer.
 */
export async function placeAfterLook(task: Task, parts: WorkParts): Promise<Pass | Hold> {
  const subject = requestSubject({ ...task, key: task.target });
  for (let waitedMs = 0; ; ) {
    const answer = await parts.enter(task.service, { isRead: false, subject });
    if (!isHold(answer)) return answer;
    waitedMs += Math.max(answer.waitMs, 1);
    const isLong = waitedMs > waitToGoOnMsMax || !isOwnLimit(answer.heldBy);
    if (isLong || parts.stopping.aborted) return answer;
    await systemClock.sleep(answer.waitMs, parts.stopping);
  }
}

/** The step of a start that the gate holds back before its permission. */
export function waitAtGate(task: Task, hold: Hold, moment: Moment): Step {
  const isSure = hold.heldBy === "throttle";
  return waitOrMiss(task, { ...moment, waitMs: hold.waitMs, isSure, why: tellHold(hold) });
}

/** Sleeps until then, or misses when that is too late. */
export function waitOrMiss(task: Task, { nowMs, owner, waitMs, isSure, why }: Patience): Step {
  if (nowMs + waitMs <= task.startByMs) return { step: "snooze", untilMs: nowMs + waitMs };
  const chanceMs = task.startByMs - lastChanceMs;
  if (!isSure && nowMs < chanceMs) return { step: "snooze", untilMs: chanceMs };
  const detail = `its start-by time passes while it waits: ${why}`;
  const ending = { status: "missed", evidence: "direct", reason: "throttled", detail } as const;
  return end(ending, owner === undefined ? undefined : { state: "claimed", owner });
}

/** A start that nobody can look for holds its sync job, and stays among those who wait for its feeds, when it comes by so often. */
const heldStepMsMax = 60_000;

/** When somebody looked, until when nobody could so far, and for how long our own limits let no look out (undefined: they did). */
interface Looked {
  readonly nowMs: number;
  readonly heldUntilMs: number | undefined;
  readonly limitedForMs?: number | undefined;
}

/**
 * Until when nobody may look for the start of a task, as the service asks or by our own limits: noted in the journal, so that after it there is time
 * for a look. Until when nobody could, if somebody may now; 0 if one always could. A service that is down names no time: it is unreadable.
 */
export async function noteHold(
  task: Task,
  parts: WorkParts,
  { nowMs, heldUntilMs = 0, limitedForMs = 0 }: Looked,
): Promise<number> {
  const hold = await parts.held(task.service);
  const waitMs = Math.max(limitedForMs, hold?.heldBy === "throttle" ? hold.waitMs : 0);
  if (waitMs === 0) return heldUntilMs;
  await parts.journal.heldUntil(task.id, nowMs + waitMs);
  return nowMs + waitMs;
}

/** Looks again: after a moment, or when the service takes requests again. */
export function lookAgain(nowMs: number, heldUntilMs: number): Step {
  const sleepMs = Math.min(Math.max(heldUntilMs - nowMs, 1_000), heldStepMsMax);
  return { step: "snooze", untilMs: nowMs + sleepMs };
}

/** Answers for how long the gate lets no probe of this task out; 0 where one went out. */
async function probe(task: Task, parts: WorkParts): Promise<number> {
  const query = inRepository(task);
  try {
    const service = parts.service(task.service);
    // The name of a declared object is no id.
    if (task.kind === "apply") await service?.count("GetJobMasks", query);
    else await service?.getSyncJobById(Number(task.target), query);
  } catch (error) {
    // The gate has noted what it says of the service.
    if (!(error instanceof ServiceError)) throw error;
    if (error.heldBy === "breaker") return error.retryAfterMs ?? 0;
  }
  return 0;
}
