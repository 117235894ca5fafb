// Records as they stand, for a caller who may see some policies only: outcomes, failed tasks,
// changes, pauses, runs by hand, declared objects, and the story of a slot.

import { type Policy, targetsOf } from "../config/policy-set.ts";
import { always, toIso } from "../core/instant.ts";
import { lowest } from "../core/min-heap.ts";
import { type Change, changesMax } from "../model/change.ts";
import { hasLabels } from "../model/label.ts";
import { isReplayable, type Outcome } from "../model/outcome.ts";
import { isAbout, isInForce, type Pause, showSubject } from "../model/pause.ts";
import { deletionByHand, parseTaskId, runByHand } from "../model/task.ts";
import { usualMsOf } from "../model/unusual.ts";
import { findTaskInFlight, readTasksInFlight } from "../queue/tasks-in-flight.ts";
import { describeRecord, slotsAround } from "../schedule/explain-slot.ts";
import { Changes, changesReadMax } from "../store/changes.ts";
import { type FailedTask, failedMax } from "../store/failed-tasks.ts";
import { History, outcomePlaceMs } from "../store/history.ts";
import { readPauses } from "../store/pauses.ts";
import { type ReadStates, readPolicyStates } from "../store/policy-states.ts";
import { redisTimeMs } from "../store/redis.ts";
import { readLimiterStatus } from "../store/service-limiter.ts";
import { taskStores } from "./audit-policy.ts";
import { findOutcomes, type OutcomeQuestion } from "./outcomes.ts";
import { type PolicyLine, readPolicyLines, seenLine } from "./policy-lines.ts";
import {
  type QueryContext,
  type StateContext,
  seenOutcome,
  seenPause,
  seenRecord,
  wholeView,
  withoutUnseen,
  withoutUnseenNote,
} from "./query-context.ts";
import { readSlotStory, readStoryOfTask, type SlotStory, taskIdsIn } from "./slot-story.ts";
import type { TaskStory } from "./task-story.ts";

/** Which outcomes are asked for. `after`: the last of the page before. */
export interface OutcomePage extends Pick<OutcomeQuestion, "filter" | "limit" | "span" | "after"> {
  readonly policy: string | undefined;
  /** The labels that policies must have (model/label.ts); undefined: also those that are gone. */
  readonly label?: string | undefined;
}

interface FoundPage {
  readonly outcomes: readonly Outcome[];
  readonly next: OutcomePage["after"];
}

/** A policy, and when a task of it ended last; where that is not known, it may be just now. */
interface End {
  readonly name: string;
  readonly endedMs: number;
}

/** The names that outcomes may have at any time: of policies, and in place of one. */
function namesIn({ set }: QueryContext): readonly string[] {
  return [...set.policies.map(({ name }) => name), runByHand, deletionByHand];
}

/** Reads the names of policies that have outcomes and are gone. */
export async function readGonePolicies(context: QueryContext): Promise<readonly string[]> {
  const own = new Set(namesIn(context));
  return [...(await new History(context.store).keptSince()).keys()].filter((name) => !own.has(name));
}

/** Reads when the policies that have ended a task did so last, newest first; also `gone` ones. */
export async function readNewestEnds(context: QueryContext, gone: readonly string[]): Promise<readonly End[]> {
  const names = namesIn(context);
  return newestFirst(names, await context.readStates([...names, ...gone]), gone);
}

/**
 * Reads outcomes, newest first. `ends`: what `readNewestEnds` reads. `next`: where a page of older
 * ones that fit goes on; where few fit, a page may hold less than `limit`.
 */
export async function readOutcomes(
  context: QueryContext,
  page: OutcomePage,
  ends: () => Promise<readonly End[]>,
): Promise<FoundPage> {
  const { view } = context;
  const { sees } = view;
  let read = await readOutcomesOf(context, page, ends);
  // A policy had another service before: to look for what fits costs much more, and is seldom.
  if (!read.outcomes.every(sees))
    read = await readOutcomesOf(context, { ...page, filter: { ...page.filter, sees } }, ends);
  return { ...read, outcomes: read.outcomes.map((outcome) => seenOutcome(outcome, view)) };
}

async function readOutcomesOf(
  { store, set, view, readStates }: QueryContext,
  { policy, label, filter, limit, span, after }: OutcomePage,
  ends: () => Promise<readonly End[]>,
): Promise<FoundPage> {
  const labelled = set.policies.filter((one) => hasLabels(one, label ?? ""));
  const names = view.isNarrowed || label !== undefined ? labelled.map(({ name }) => name) : undefined;
  const policies = policy === undefined ? names : [policy].filter((name) => names?.includes(name) ?? true);
  // One more tells whether there is another page.
  const asked = { filter, span, after, limit: limit + 1 };
  const isOther = policy !== undefined && !set.policies.some(({ name }) => name === policy);
  const newest =
    policies === undefined
      ? await ends()
      : newestFirst(isOther ? [] : policies, await readStates(policies), isOther ? policies : []);
  const able = newest.filter(({ endedMs }) => endedMs >= span.fromMs);
  const isUnbounded = after === undefined && span.toMs === Number.POSITIVE_INFINITY && Object.keys(filter).length === 0;
  // Each holds at least one that is newer than all of those behind it, or as new.
  const leastMs = (isUnbounded ? able[limit]?.endedMs : undefined) ?? Number.NEGATIVE_INFINITY;
  const enough = able.flatMap(({ name, endedMs }) => (endedMs >= leastMs ? [name] : []));
  const { outcomes, lookedTo } = await findOutcomes(new History(store), { ...asked, policies: enough });
  const page = outcomes.slice(0, limit);
  const last = outcomes.length > limit ? page.at(-1) : undefined;
  return { outcomes: page, next: last === undefined ? lookedTo : { atMs: outcomePlaceMs(last), id: last.taskId } };
}

/** The ends of policies, without those that have none; `gone` policies may have any. */
function newestFirst(
  policies: readonly string[],
  states: Awaited<ReturnType<ReadStates>>,
  gone: readonly string[] = [],
): readonly End[] {
  const ended = policies.filter((name) => states.get(name)?.targets.length);
  const endedMs = (name: string) => {
    const newest = states.get(name)?.targets[0]?.newest;
    return newest === undefined ? Number.POSITIVE_INFINITY : Math.max(newest.slotMs, newest.finishedMs);
  };
  return [...ended, ...gone]
    .map((name) => ({ name, endedMs: endedMs(name) }))
    .toSorted((a, b) => b.endedMs - a.endedMs);
}

/** Reads the newest outcomes: by hand, and of the few policies whose tasks ended last. */
export async function readNewestOutcomes(
  { store, view }: QueryContext,
  lines: readonly PolicyLine[],
  count: number,
): Promise<readonly Outcome[]> {
  const newest = lowest(lines, count, ({ endedMs = Number.NEGATIVE_INFINITY }) => -endedMs);
  const named = newest.flatMap(({ policy, endedMs }) => (endedMs === undefined ? [] : [policy.name]));
  const byHand = view.isNarrowed ? [] : [runByHand, deletionByHand];
  const history = new History(store);
  const places = await history.newestPlaces(count, [...named, ...byHand]);
  return (await history.read(places)).filter(view.sees).map((outcome) => seenOutcome(outcome, view));
}

/** The time of Redis. */
export function readNowMs({ store }: QueryContext): Promise<number> {
  return redisTimeMs(store);
}

/** Reads how one policy is now. */
export async function readLine(
  { store, readStates, view = wholeView }: StateContext & Partial<Pick<QueryContext, "view">>,
  policy: Policy,
): Promise<PolicyLine> {
  const nowMs = await redisTimeMs(store);
  const pauses = await readPauses(store);
  const services = [{ service: policy.service, ...(await readLimiterStatus(store, policy.service)) }];
  const [line] = await readPolicyLines([policy], store, { nowMs, pauses, services, readStates });
  if (line === undefined) throw new Error(`no line for ${policy.name}`);
  return seenLine(line, view);
}

/** How long runs of a sync job that end well usually take, and of how many that is the median. */
export interface UsualRun {
  readonly usualMs: number | undefined;
  readonly of: number;
}

/** Reads that of each sync job of a policy. */
export async function readUsualRuns(
  { readStates }: Pick<QueryContext, "readStates">,
  policy: string,
): Promise<ReadonlyMap<string, UsualRun>> {
  const { targets = [] } = (await readStates([policy])).get(policy) ?? {};
  return new Map(targets.map(({ target, runs }) => [target, { usualMs: usualMsOf(runs), of: runs.length }]));
}

/** Reads the failed tasks, newest first. `isAll`: the list has no older ones. */
export async function readFailedTasks({ failedTasks, view }: QueryContext): Promise<FailedTaskList> {
  const [all, isCut] = await Promise.all([failedTasks.all(), failedTasks.isCut()]);
  const seen = all.filter(({ outcome }) => view.sees(outcome));
  return { tasks: seen.map((task) => ({ ...task, outcome: seenOutcome(task.outcome, view) })), isAll: !isCut };
}

/** What was read of the failed list. */
export interface FailedTaskList {
  readonly tasks: readonly FailedTask[];
  readonly isAll: boolean;
}

/** What was looked at where it is not all. */
export const failedLookedAt = `the newest ${failedMax.toLocaleString("en")} failed tasks of all`;

/** Where a failed task stands in the list: the newest first, and of one instant the last id. */
export function placeOfFailed({ outcome }: FailedTask): NonNullable<OutcomePage["after"]> {
  return { atMs: outcomePlaceMs(outcome), id: outcome.taskId };
}

/**
 * Reads which tasks of a story are on the failed list, which others were replayed as which, and
 * whether the caller may see who did.
 */
export async function readFailedOf({ failedTasks, store, view }: QueryContext, { tasks }: SlotStory) {
  const failed = await failedTasks.listed(tasks.map(({ taskId }) => taskId));
  const gone = tasks.filter(({ taskId, outcome }) => outcome !== null && isReplayable(outcome) && !failed.has(taskId));
  const changes = gone.length === 0 ? [] : await new Changes(store).newest(changesReadMax);
  const replays = new Map(
    gone.flatMap(({ taskId }) => {
      const change = changes.find(
        ({ what, before }) => what === "replay" && JSON.stringify(before).includes(`"${taskId}"`),
      );
      const own = taskId.slice(0, taskId.lastIndexOf("__") + 2);
      const into = change && taskIdsIn(change).find((id) => id.startsWith(own));
      return into === undefined ? [] : [[taskId, into] as const];
    }),
  );
  return { failed, replays, seesChanges: !view.isNarrowed };
}

/** Reads the newest changes by hand; none for a caller who may not see all. */
export async function readChanges({ store, view }: QueryContext, count: number): Promise<readonly Change[]> {
  return view.isNarrowed ? [] : new Changes(store).newest(count);
}

/** Finds what a caller has changed by a request, among the newest changes. */
export async function readChangeOf(
  { store }: QueryContext,
  caller: string,
  requestId: string,
): Promise<Change | undefined> {
  const newest = await new Changes(store).newest(ownSoughtMax);
  return newest.find(({ actor, from }) => actor === caller && from?.requestId === requestId);
}

/** How many of the newest changes, of all callers, are looked through for a request's. */
export const ownSoughtMax = 50;

/** Reads what was changed by hand about one policy, newest first; none for a narrowed view. */
export async function readChangesOf({ store, view }: QueryContext, policy: Policy): Promise<readonly Change[]> {
  if (view.isNarrowed) return [];
  const newest = await new Changes(store).newest(changesMax);
  return newest.filter((change) => isChangeAbout(change, policy));
}

/** Whether a change is about a policy, its tasks, its service, a label that it has, or all. */
export function isChangeAbout(change: Change, policy: Policy): boolean {
  const { subject } = change;
  const [, scope, name = ""] = /^(policy|service|label|task) (.+)$/.exec(subject) ?? [];
  if (scope === "policy" || scope === "service" || scope === "label") return isAbout({ scope, name }, policy);
  if (subject === showSubject({ scope: "all", name: "" }) || subject.endsWith(`(policy ${policy.name})`)) return true;
  // What was discarded stands in what was before.
  const text = change.what === "discard" ? JSON.stringify(change.before ?? null) : "";
  const discarded = text.match(/[\w.-]+__[^"]+__m?\d+(?=")/g) ?? [];
  return [name, ...taskIdsIn(change), ...discarded].some((id) => parseTaskId(id)?.policy === policy.name);
}

/** Reads the pauses and quarantines in force, the newest first. */
export async function readPausesInForce({ store, set, view }: QueryContext): Promise<readonly Pause[]> {
  const nowMs = await redisTimeMs(store);
  const all = await readPauses(store);
  const isSeen = (pause: Pause) => !view.isNarrowed || set.policies.some((policy) => isAbout(pause, policy));
  const seen = all.filter((pause) => isInForce(pause, nowMs) && isSeen(pause)).map((pause) => seenPause(pause, view));
  return seen.toSorted((a, b) => b.sinceMs - a.sinceMs);
}

/** Tells the story of the slot at an instant, or of the nearest one. */
export async function readStoryAt(context: QueryContext, policy: Policy, instantMs: number): Promise<SlotStory> {
  const asked = new Date(instantMs).toISOString();
  const around = slotsAround(policy, { text: asked, instants: [instantMs], nearMs: instantMs, widthMs: 1_000 });
  const nowMs = await redisTimeMs(context.store);
  const places = { ...taskStores(context), set: context.set };
  return ofView(await readSlotStory(policy, { asked, around, nowMs }, places), context);
}

/** The story without the tasks that the caller may not see, their names, and who asked for it. */
async function ofView(story: SlotStory, context: QueryContext): Promise<SlotStory> {
  const { store, set, allServices, view } = context;
  if (!view.isNarrowed) return story;
  const { policy } = story;
  const ids = story.tasks.map(({ taskId }) => taskId);
  const outcomes = await new History(store).outcomes(policy, ids);
  const services = allServices ?? [...set.services.keys()];
  const seen: TaskStory[] = [];
  for (const task of story.tasks) {
    // The policy may have had another service then.
    const inFlight = task.isInFlight ? await findTaskInFlight(store, services, task.taskId) : undefined;
    if (view.sees({ policy, service: (outcomes.get(task.taskId) ?? inFlight)?.service })) seen.push(task);
  }
  const tasks = seen.map((task) => ({
    ...task,
    waitsFor: task.waitsFor && withoutUnseen(task.waitsFor, view),
    // Who did it, and why, stand in the changes, which a narrowed view does not see.
    cancelled: task.cancelled && "cancelled by hand",
    outcome: task.outcome && seenOutcome(task.outcome, view),
  }));
  return {
    ...{ ...story, tasks, verdict: seenVerdict(story, context) },
    deadline: story.deadline && withoutUnseenNote(story.deadline, view),
    record: story.record && seenRecord(story.record, view),
    pauses: story.pauses.map((pause) => seenPause(pause, view)),
  };
}

function seenVerdict({ origin, policy, record, verdict }: SlotStory, { set, view }: QueryContext): string {
  if (origin === "manual") return "by hand";
  const own = set.policies.find(({ name }) => name === policy);
  return record === null || own === undefined ? verdict : describeRecord(own, seenRecord(record, view));
}

/** Tells the story of a task; undefined: nothing is known of it, or the caller may not see it. */
export async function readTaskAt(context: QueryContext, id: string): Promise<SlotStory | undefined> {
  const { store, set } = context;
  const places = { ...taskStores(context), set };
  const story = await readStoryOfTask(id, { set, nowMs: await redisTimeMs(store) }, places);
  const seen = story && (await ofView(story, context));
  return seen?.tasks.length === 0 ? undefined : seen;
}

/** Reads them, by policy in the order of the files. */
export async function readDeclared({ store, set }: QueryContext) {
  const applying = set.policies.filter(({ action }) => action.kind === "apply");
  const names = applying.map(({ name }) => name);
  const states = await readPolicyStates(store, names);
  return applying.flatMap(({ name: policy, service, repository = null, action }) => {
    const ended = new Map(states.get(policy)?.targets.map(({ target, last }) => [target, last]));
    return (targetsOf(action) ?? []).map((object) => {
      const last = ended.get(object);
      const told = last && { status: last.status, reason: last.reason, finished: toIso(last.finishedMs) };
      return { policy, service, repository, object, last: told ?? null };
    });
  });
}

/** A task that was started by hand. `outcome` undefined: it goes on. */
export interface HandRun {
  readonly id: string;
  readonly policy: string;
  readonly target: string;
  readonly kind: Outcome["kind"];
  readonly givenMs: number;
  readonly outcome: Outcome | undefined;
  /** Who asked for it, and why; undefined: that is no longer kept. */
  readonly by: { readonly actor: string; readonly reason: string | null } | undefined;
}

/**
 * Reads the newest runs by hand of a policy; undefined: those of sync jobs without one. `isAll`:
 * there are no older ones.
 */
export async function readHandRuns(
  { store, set, view }: QueryContext,
  policy: string | undefined,
  limit: number,
): Promise<{ readonly runs: readonly HandRun[]; readonly isAll: boolean }> {
  const policies = policy === undefined ? [runByHand, deletionByHand] : [policy];
  const services = [...set.services.keys()];
  const open = await Promise.all(policies.map((name) => readTasksInFlight(store, services, (one) => one === name)));
  const filter = { origin: "manual" as const, ...(view.isNarrowed && { sees: view.sees }) };
  const question = { policies, span: always, filter, limit: limit + 1 };
  const { outcomes, reach } = await findOutcomes(new History(store), question);
  const ended = new Map(outcomes.map((outcome) => [outcome.taskId, seenOutcome(outcome, view)]));
  const changes = view.isNarrowed ? [] : await new Changes(store).newest(changesReadMax);
  const by = new Map(changes.flatMap((change) => taskIdsIn(change).map((id) => [id, change])));
  const ids = [
    ...open.flatMap(({ tasks }) => tasks.flatMap(({ task }) => (view.sees(task) ? [task.id] : []))),
    ...outcomes.map(({ taskId }) => taskId),
  ];
  const runs = [...new Set(ids)].flatMap((id): HandRun[] => {
    const name = parseTaskId(id);
    if (name?.origin !== "manual") return [];
    const { policy: of, target, kind, slotMs: givenMs } = name;
    return [{ id, policy: of, target, kind, givenMs, outcome: ended.get(id), by: by.get(id) }];
  });
  const isCut = reach.isCut || open.some((one) => one.isCut) || runs.length > limit;
  return { runs: runs.toSorted((a, b) => b.givenMs - a.givenMs).slice(0, limit), isAll: !isCut };
}
