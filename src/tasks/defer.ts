// Deferral: what a task does while the limiter denies its requests (a throttle, the breaker, our
// own rates). While denied it sleeps without an attempt, or ends as missed when its start-by time
// passes. Also here: what follows a failed read or PUT (`stepAfterFailure`), which may cost an
// attempt.
import { systemClock } from "../core/clock.ts";
import { parseObjectName } from "../core/declared-object.ts";
import { type Denial, isDenied, isOwnLimit, type Permit, resourceKey } from "../core/limiter.ts";
import type { Task } from "../model/task.ts";
import { complete, retry, snooze } from "../model/verdict.ts";
import { followUpWaitMsMax } from "../service/call.ts";
import { describeDenial } from "../service/call-failure.ts";
import { inRepository } from "../service/request-url.ts";
import { ServiceError } from "../service/service-error.ts";
import { judge } from "./judge.ts";
import { endUnsent, type StepResult, type TaskEnding } from "./step.ts";
import type { Configuration, Limits, Runtime, StartDependencies } from "./step-dependencies.ts";

/** A task that would be too late asks once more, this long before its start-by time. */
const lastChanceMs = 500;

/** The time by Redis, and the task's claimant, if it has one. */
interface Moment {
  readonly nowMs: number;
  readonly claimant?: string;
}

/** Why a task must wait, and for how long from now. */
interface Deferral extends Moment {
  readonly waitMs: number;
  /** True when nothing will be sent before that; false when the limiter may admit it earlier. */
  readonly isSure: boolean;
  readonly why: string;
}

/** The result of a start that is denied now; undefined when it may go on. */
export async function deferIfDenied(
  task: Task,
  deps: Pick<Limits, "denialOf"> & Pick<Configuration, "service">,
  moment: Moment,
): Promise<StepResult | undefined> {
  const denied = await denialAfterProbe(task, deps);
  return denied && deferByLimiter(task, denied, moment);
}

/**
 * What denies a start now; undefined when it may go on. A breaker that is due is probed by reading:
 * a start is never the probe, since a lost answer would leave it unknown.
 */
export async function denialAfterProbe(
  task: Task,
  deps: Pick<Limits, "denialOf"> & Pick<Configuration, "service">,
): Promise<Denial | undefined> {
  let denied = await deps.denialOf(task.service);
  let probeWaitMs = 0;
  if (denied?.deniedBy === "breaker" && denied.waitMs === 0) {
    probeWaitMs = await probe(task, deps);
    denied = await deps.denialOf(task.service);
  }
  // At least 1 s: a probe by another worker needs that long.
  return denied && { ...denied, waitMs: Math.max(denied.waitMs, probeWaitMs, 1_000) };
}

/** Sends the probe. Returns for how long the limiter denies it; 0 when it was sent. */
async function probe(task: Task, deps: Pick<Configuration, "service">): Promise<number> {
  const [service, query] = [deps.service(task.service), inRepository(task)];
  // The target of an apply task is a name. Only sync jobs and masks can be read.
  const declared = task.kind === "apply" ? parseObjectName(task.target) : undefined;
  if (declared?.kind === "syncJob") return deniedForMs(service?.getSyncJobById(declared.id, query));
  const own = declared === undefined ? service?.getSyncJobById(task.target, query) : service?.getJobMasks(query);
  const waitMs = await deniedForMs(own);
  // A start, and the update of a target, need no such read: where it has failed, another may go.
  return waitMs === 0 || declared?.kind === "docMask" ? waitMs : deniedForMs(service?.getTriggers(query));
}

/** For how long the breaker denies a read; 0 when it was sent. */
async function deniedForMs(read: Promise<unknown> | undefined): Promise<number> {
  try {
    await read;
  } catch (error) {
    // The limiter has noted what the error says about the service.
    if (!(error instanceof ServiceError)) throw error;
    if (error.deniedBy === "breaker") return error.retryAfterMs ?? 0;
  }
  return 0;
}

/**
 * The result after a failed read, or a PUT: both may be repeated. `ending`: if the task ends by it.
 * @throws what is no failure of the service.
 */
export function stepAfterFailure(
  task: Task,
  error: unknown,
  { ending, ...moment }: Moment & { readonly ending: (error: ServiceError) => TaskEnding },
): StepResult {
  if (!(error instanceof ServiceError)) throw error;
  // A link to a later page has died: the next attempt reads from the first page on.
  if (error.reason === "expired") return retry(0, ending(error));
  // As of a poll, whatever the task is: what failed here may be repeated.
  switch (judge(error, "poll")) {
    case "retry":
    case "verify":
      return retry(error.retryAfterMs ?? 0, ending(error));
    case "defer":
      return deferAfter(task, error, moment);
    case "resume":
      return snooze(moment.nowMs);
    case "end":
      return complete(ending(error));
  }
}

/** The result of a task after a denied request: by the service (429), or by our own limiter. */
export function deferAfter(task: Task, error: ServiceError, moment: Moment): StepResult {
  const isSure = error.deniedBy === undefined || error.deniedBy === "throttle";
  return snoozeOrMiss(task, { ...moment, waitMs: error.retryAfterMs ?? 5_000, isSure, why: error.message });
}

/** The result of a start that the limiter denies before its permission. */
export function deferByLimiter(task: Task, denied: Denial, moment: Moment): StepResult {
  const isSure = denied.deniedBy === "throttle";
  return snoozeOrMiss(task, { ...moment, waitMs: denied.waitMs, isSure, why: describeDenial(denied) });
}

/** Sleeps for `waitMs`, or ends the task as missed when that is past its start-by time. */
export function snoozeOrMiss(task: Task, { nowMs, claimant, waitMs, isSure, why }: Deferral): StepResult {
  if (nowMs + waitMs <= task.startByMs) return snooze(nowMs + waitMs);
  const chanceMs = task.startByMs - lastChanceMs;
  if (!isSure && nowMs < chanceMs) return snooze(chanceMs);
  return endUnsent(claimant, "missed", {
    reason: "throttled",
    detail: `its start-by time passes while it waits: ${why}`,
  });
}

/**
 * The permit of a deletion whose guard has just been read, or its denial. It waits in place for our
 * own limits: a sleep would need the guard again, and reading that would use up the permit.
 */
export async function acquireForDeletion(
  task: Task,
  deps: Pick<Limits, "acquire"> & Pick<Runtime, "stopping">,
): Promise<Permit | Denial> {
  const resource = resourceKey({ ...task, key: task.target });
  for (let waitedMs = 0; ; ) {
    const answer = await deps.acquire(task.service, { isRead: false, resource });
    if (!isDenied(answer)) return answer;
    waitedMs += Math.max(answer.waitMs, 1);
    const isLong = waitedMs > followUpWaitMsMax || !isOwnLimit(answer.deniedBy);
    if (isLong || deps.stopping.aborted) return answer;
    await systemClock.sleep(answer.waitMs, deps.stopping);
  }
}

/** A denied verification steps at least this often, to renew its lease and its wait for feeds. */
const deniedStepMsMax = 60_000;

/** A try to verify. `deniedUntilMs`: as noted; `deniedForMs`: by our own limits. */
interface Verification {
  readonly nowMs: number;
  readonly deniedUntilMs: number | undefined;
  readonly deniedForMs?: number | undefined;
}

/**
 * Until when a throttle or our own limits deny the verification of a start; 0 if never. The journal
 * keeps it: this time does not count against patience. That of an open breaker does.
 */
export async function noteDenied(
  task: Task,
  deps: Pick<StartDependencies, "denialOf" | "journal">,
  { nowMs, deniedUntilMs = 0, deniedForMs = 0 }: Verification,
): Promise<number> {
  const denied = await deps.denialOf(task.service);
  const waitMs = Math.max(deniedForMs, denied?.deniedBy === "throttle" ? denied.waitMs : 0);
  if (waitMs === 0) return deniedUntilMs;
  await deps.journal.noteDeniedUntil(task.id, nowMs + waitMs);
  return nowMs + waitMs;
}

/** Verifies again: after a moment, or when the service takes requests again. */
export function verifyLater(nowMs: number, deniedUntilMs: number): StepResult {
  return snooze(nowMs + Math.min(Math.max(deniedUntilMs - nowMs, 1_000), deniedStepMsMax));
}
