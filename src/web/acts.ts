// What callers change: each act asks whether the caller may do just this, and hands it to actions/.
// Called by the API and the pages, so that both allow, do and record the same.
import { acknowledge, endAcknowledgement } from "../actions/acknowledge.ts";
import { cancel, findToCancel } from "../actions/cancel.ts";
import { type ActionResult, discard, replay } from "../actions/failed.ts";
import { once } from "../actions/once.ts";
import { pause, type ResumeResult, resume } from "../actions/pause.ts";
import type { By } from "../actions/record-change.ts";
import { type policyOfSyncJob, type QueuedTasks, runNow, runSyncJob } from "../actions/run.ts";
import type { LoadOptions } from "../config/load-policies.ts";
import { someNames } from "../core/plain-text.ts";
import { hasLabels } from "../model/label.ts";
import { isAbout, type Pause, type PauseSubject, subjectKey } from "../model/pause.ts";
import { reaches } from "../model/scope.ts";
import type { Task } from "../model/task.ts";
import { type FailedItem, readFailed, type Selection, selectFailed } from "../queries/failed.ts";
import { type QueryContext, seenPause } from "../queries/query-context.ts";
import { readPausesInForce } from "../queries/records.ts";
import { policyOf } from "./api/operation.ts";
import { type Caller, checkScope, checkWhole, notYours } from "./identity.ts";
import { conflict, notFound, type ProblemDetails } from "./problem.ts";

/** Who acts, on what they may see. `by`: with their reason. */
export interface Acting {
  readonly context: QueryContext;
  readonly caller: Caller;
  readonly by: (reason: string) => By;
  /** Notes what a part of the request tried and may not: it is recorded as a refusal. */
  readonly refuse: (problem: ProblemDetails) => void;
  /** How policy files are checked. */
  readonly load: LoadOptions;
}

/** Notes that the caller knows what is wrong with a policy. */
export function acknowledgePolicy({ context, by }: Acting, name: string, reason: string) {
  return acknowledge(policyOf(context, name), { store: context.store, by: by(reason) });
}

/** Takes that back. */
export async function endPolicyAcknowledgement({ context, by }: Acting, name: string, reason: string): Promise<void> {
  const wasThere = await endAcknowledgement(policyOf(context, name), { store: context.store, by: by(reason) });
  if (!wasThere) throw conflict(`policy ${name} is not acknowledged`);
}

/** A start under a key: sent again, it is the same start. */
export interface KeyedActing extends Acting {
  readonly key: string;
}

/**
 * More than a policy is an admin's; a label is also of those whose own labels are all in it.
 * @throws WebError unless the caller sees and may pause it.
 */
export function checkMayPause({ context, caller }: Acting, { scope, name }: PauseSubject): void {
  if (scope === "policy") return void policyOf(context, name);
  if (scope === "label" && mayPauseLabel(caller, name)) return;
  if (scope === "service") checkService(context, name);
  checkScope(caller, "admin");
  checkWhole(caller);
  if (scope === "service" || !context.view.isNarrowed) return;
  throw notYours(`caller "${caller.name}" may change some services only, and this concerns all of them`);
}

/**
 * The same for its end. What is in no file any more may be paused still: that is an admin's to end.
 * @throws WebError
 */
export async function checkMayResume(acting: Acting, subject: PauseSubject): Promise<void> {
  const { context, caller } = acting;
  const isOfGone = isGone(subject, context) && !context.view.isNarrowed;
  if (isOfGone && (await readPausesInForce(context)).some((one) => subjectKey(one) === subjectKey(subject)))
    checkScope(caller, "admin");
  else checkMayPause(acting, subject);
}

/** Whether no policy file has this policy or service. */
export function isGone({ scope, name }: PauseSubject, { set }: QueryContext): boolean {
  return scope === "policy"
    ? !set.policies.some((one) => one.name === name)
    : scope === "service" && !set.services.has(name);
}

/** Whether all policies with these labels, now and later, are of those a caller is held to. */
export function mayPauseLabel({ scope, services, labels }: Caller, selector: string): boolean {
  const isOwn = labels?.split(",").every((label) => selector.split(",").includes(label)) ?? false;
  return isOwn && services === undefined && reaches(scope, "operate");
}

function checkService({ set }: QueryContext, name: string): void {
  if (!set.services.has(name)) throw notFound(`there is no service ${name}`, "/api/v1/services lists them");
}

/** Pauses a subject. `untilMs` null: until it is resumed. */
export async function pauseSubject(acting: Acting, subject: PauseSubject, untilMs: number | null, reason: string) {
  checkMayPause(acting, subject);
  const { store, set } = acting.context;
  return pause(subject, untilMs, { store, set, by: acting.by(reason) });
}

/** Ends the pause of a subject. Tells of the pauses that still hold one of its policies. */
export async function resumeSubject(
  acting: Acting,
  subject: PauseSubject,
  { reason, catchUp }: { readonly reason: string; readonly catchUp: boolean },
): Promise<ResumeResult> {
  await checkMayResume(acting, subject);
  const { store, set, producer, view } = acting.context;
  const signal = AbortSignal.timeout(catchUpMsMax);
  const wish = catchUp ? { policies: set.policies, producer, signal } : undefined;
  const resumed = await resume(subject, wish, { store, set, by: acting.by(reason) });
  if (resumed.ended.length === 0 && resumed.left.length === 0)
    throw conflict("it is not paused", "GET /api/v1/pauses lists what is");
  const own = set.policies.filter((policy) => isAbout(subject, policy));
  const isOwn = (one: Pause) => own.some((policy) => isAbout(one, policy));
  const seen = (pauses: readonly Pause[]) => pauses.map((one) => seenPause(one, view));
  return { ...resumed, ended: seen(resumed.ended), stillPaused: seen(resumed.stillPaused.filter(isOwn)) };
}

/** A request may take so long. */
const catchUpMsMax = 8_000;

/** Starts a policy now, whatever its schedule and its pauses say. */
export function runPolicy(acting: KeyedActing, name: string, reason: string) {
  const policy = policyOf(acting.context, name);
  return started(acting, { run: name, reason }, (atMs) => runNow(policy, { ...partsOf(acting, reason), atMs }));
}

/** Starts a sync job that has no policy. */
export function runOne(
  acting: KeyedActing,
  place: Parameters<typeof policyOfSyncJob>[0],
  reason: string,
): Promise<StartResult> {
  const { context, caller } = acting;
  checkWhole(caller);
  checkService(context, place.service);
  const run = (atMs: number) => runSyncJob(place, context.set, { ...partsOf(acting, reason), atMs });
  return started(acting, { ...place, repository: place.repository ?? null, reason }, run);
}

/** What a start has put into the queue. `requestId`: of the request that did. */
export interface StartResult {
  readonly tasks: readonly string[];
  readonly workers: number;
  readonly requestId: string;
}

function started(
  acting: KeyedActing,
  asked: unknown,
  run: (atMs: number) => Promise<QueuedTasks>,
): Promise<StartResult> {
  const { context, caller, key } = acting;
  return once(context.store, { caller: caller.name, key, asked }, async (atMs) => {
    const { tasks, workers } = await run(atMs);
    return { tasks: tasks.map(({ id }) => id), workers, requestId: requestIdOf(acting) };
  });
}

function requestIdOf({ by }: Acting): string {
  return by("").from?.requestId ?? "";
}

function partsOf({ context: { store, producer }, by }: Acting, reason: string) {
  return { store, producer, by: by(reason) };
}

/**
 * What became of entries of the failed list. `into`: the new task. `isAll`: no older task of it was
 * left out.
 */
export interface FailedListResult {
  readonly done: readonly { readonly id: string; readonly into?: string | undefined }[];
  readonly left: readonly { readonly id: string; readonly why: string }[];
  readonly isAll: boolean;
  readonly requestId: string;
}

/** Which entries of the failed list are meant: by ids, or by a group. As JSON holds it. */
export interface FailedSelection extends Omit<Selection, "policies"> {
  readonly policy?: string | undefined;
  readonly label?: string | undefined;
}

/** An entry of the failed list, if the caller sees it. */
export async function failedOf({ store, notices, failedTasks: failed, view }: QueryContext, id: string) {
  const { items } = await readFailed(store, notices, { ids: [id], failed });
  return items.find((item) => item.id === id && seenBy(view)(item));
}

/** Notices go to sinks, which belong to no service. */
function seenBy(view: QueryContext["view"]): (item: FailedItem) => boolean {
  return (item) => (item.type === "task" ? view.sees(item.outcome) : !view.isNarrowed);
}

/** Does failed tasks and notices over. `isForced`: also tasks that may be at work still. */
export function replayFailed(
  acting: KeyedActing,
  meant: FailedSelection,
  { reason, isForced }: { readonly reason: string; readonly isForced: boolean },
): Promise<FailedListResult> {
  const { context, caller, key } = acting;
  const asked = { replay: meant, isForced, reason };
  return once(context.store, { caller: caller.name, key, asked }, async (atMs, { isRepeat, done: before, note }) => {
    const of = { queues: context.notices, set: context.set, force: isForced, atMs, note };
    // What has failed since was not meant: it may even be a task of the first request.
    const isLater = (item: FailedItem) =>
      isRepeat && item.type === "task" && Date.parse(item.outcome.finishedAt) > atMs;
    const why = "it failed after the first request with this Idempotency-Key: send one with another key";
    const { done, left, ...rest } = await changeFailed(acting, meant, async (items) => {
      const [later, own] = [items.filter(isLater), items.filter((item) => !isLater(item))];
      return [...(await replay(own, { ...partsOf(acting, reason), ...of })), ...later.map((item) => ({ item, why }))];
    });
    const now = new Set(done.map(({ id }) => id));
    const doneBefore = [...before]
      .filter(([id]) => !now.has(id))
      .map(([id, into]) => ({ id, into: into || undefined }));
    return { done: [...doneBefore, ...done], left: left.filter(({ id }) => !before.has(id)), ...rest };
  });
}

/** Takes entries off the failed list. */
export function discardFailed(acting: Acting, meant: FailedSelection, reason: string): Promise<FailedListResult> {
  const { notices: queues, set } = acting.context;
  return changeFailed(acting, meant, (items) =>
    discard(items, { ...partsOf(acting, reason), queues, set, force: false }),
  );
}

/** The policies whose entries are meant; undefined: none is named. @throws WebError for a typo. */
function policiesMeant(
  context: QueryContext,
  policy: string | undefined,
  label: string | undefined,
): ReadonlySet<string> | undefined {
  if (policy === undefined && label === undefined) return undefined;
  if (policy !== undefined) policyOf(context, policy);
  const { policies } = context.set;
  const named = policies.filter((one) => (policy ?? one.name) === one.name && hasLabels(one, label ?? ""));
  if (policy === undefined && named.length === 0)
    throw notFound(`no policy has the label ${label}`, "/api/v1/policies lists them");
  return new Set(named.map(({ name }) => name));
}

async function changeFailed(
  acting: Acting,
  { policy, label, ...selection }: FailedSelection,
  act: (items: readonly FailedItem[]) => Promise<readonly ActionResult[]>,
): Promise<FailedListResult> {
  const { context, caller } = acting;
  const policies = policiesMeant(context, policy, label);
  const { store, notices, failedTasks: failed, view } = context;
  const list = await readFailed(store, notices, { ids: selection.ids, failed });
  const seen = { ...list, items: list.items.filter(seenBy(view)) };
  const { meant, absent, isAll } = selectFailed(seen, { ...selection, policies });
  // The answer calls them absent as any other: only the record of changes tells.
  const theirs = list.items.filter(({ id }) => absent.includes(id));
  if (theirs.length > 0)
    acting.refuse(notYours(`caller "${caller.name}" may not see ${someNames(theirs.map(({ id }) => id))}`).problem);
  const results = await act(meant);
  return {
    done: results.flatMap(({ item, into, why }) => (why === undefined ? [{ id: item.id, into }] : [])),
    left: [
      ...results.flatMap(({ item, why }) => (why === undefined ? [] : [{ id: item.id, why }])),
      ...absent.map((id) => ({ id, why: "not on the failed list" })),
    ],
    isAll,
    requestId: requestIdOf(acting),
  };
}

/** A task that can be cancelled. @throws WebError when it is not in flight. */
export async function taskInFlight({ store, set, view }: QueryContext, id: string): Promise<Task> {
  const task = await findToCancel(id, [...set.services.keys()], store);
  if (task === undefined || !view.sees(task))
    throw notFound(`no task ${id} is in flight`, "it has ended, or never was");
  return task;
}

/**
 * Cancels a task; answers whether its request was sent before. Null for an apply, which may send
 * several: a step that is under way ends first, and its outcome tells.
 */
export async function cancelTask(acting: Acting, id: string, reason: string): Promise<{ wasSent: boolean | null }> {
  const task = await taskInFlight(acting.context, id);
  const met = await cancel(task, { ...partsOf(acting, reason) });
  if (met === "settled") throw conflict("it has ended before");
  if (met === "fanned-out") throw conflict("it stands for other tasks by now: cancel those");
  return { wasSent: task.kind === "apply" ? null : met !== "claimed" };
}
