// Tasks in flight as data: the step of each, since when, what it waits for, and until when. Reads
// only, in batches.
import type { Policy, PolicySet } from "../config/policy-set.ts";
import { showClock, toIso } from "../core/instant.ts";
import type { ListName } from "../model/feed.ts";
import { runByHand, type Task } from "../model/task.ts";
import { usualMsOf } from "../model/unusual.ts";
import { readTasksInFlight, type TaskInFlight } from "../queue/tasks-in-flight.ts";
import { FeedStore } from "../store/feed-store.ts";
import { Leases } from "../store/leases.ts";
import { readRuns } from "../store/policy-states.ts";
import { redisTimeMs, type Store } from "../store/redis.ts";
import { batchesOf } from "../store/script.ts";
import { readLimiterStatus } from "../store/service-limiter.ts";
import type { StartEntry } from "../store/start-entry.ts";
import { StartJournal } from "../store/start-journal.ts";
import type { QueryContext } from "./query-context.ts";
import { describeDeniedBy, doctorSaysMore } from "./service-words.ts";
import { endWords, takesLease, taskWords } from "./task-words.ts";

/** The steps of a task in flight, as people say them; those of a sent request first. */
const taskSteps = [
  "sending",
  "verifying",
  "following",
  "cancelling",
  "working",
  "preparing",
  "held back",
  "waits for sync job",
  "queued",
] as const;

/** One of these steps. `following`: the service took the start, and Syncline watches the lists. */
type TaskStepName = (typeof taskSteps)[number];

/** The steps whose `waitsFor` is what keeps the request from going out. */
const obstacles: ReadonlySet<TaskStepName> = new Set(["held back", "waits for sync job", "cancelling"]);

/** What must be known of the policies. */
export type RunningSet = Pick<PolicySet, "policies" | "services" | "byHand">;

/** What must be known of a task to say where it is. `state`: BullMQ's word. */
export interface TaskLookedAt extends Pick<TaskInFlight, "queuedAtMs"> {
  readonly task: Pick<Task, "id" | "policy" | "kind" | "target" | "slotMs" | "origin" | "service" | "repository"> &
    Partial<Pick<Task, "startByMs">>;
  readonly state: string;
}

/** A task in flight. Instants are ISO 8601. */
export interface RunningTask
  extends Pick<Task, "id" | "policy" | "kind" | "target" | "service" | "repository" | "origin"> {
  /** As people say it: `sync job 4, slot 02:30 CET`. */
  readonly name: string;
  readonly slot: string | null;
  /** When its request was permitted. */
  readonly sent: string | null;
  readonly step: TaskStepName;
  /** Since when it is in this step; before its request: in the queue. */
  readonly since: string | null;
  /** What showed that the service took the start: its answer, or an activity; null until then. */
  readonly shownBy: "answer" | "evidence" | null;
  /** What it waits for, in words; null when it waits for its turn alone. */
  readonly waitsFor: string | null;
  /** How long such runs usually take, and when this one would end then. */
  readonly usualMs: number | null;
  readonly endsAbout: string | null;
  /** Before the request: by when it must be sent. After a run's: by when it must be settled. */
  readonly deadline: string | null;
}

/** Says of each task where it is, in the order of the steps, the longest first. */
export async function readRunning(
  tasks: readonly TaskLookedAt[],
  set: RunningSet,
  store: Store,
): Promise<readonly RunningTask[]> {
  const nowMs = await redisTimeMs(store);
  const policies = new Map(set.policies.map((policy) => [policy.name, policy]));
  const facts = readFacts(store, set);
  const journal = new StartJournal(store);
  const running: RunningTask[] = [];
  for (const batch of batchesOf(tasks)) {
    const places = batch.map(async ({ task, state, queuedAtMs }): Promise<RunningTask> => {
      const policy = task.policy === runByHand ? set.byHand : policies.get(task.policy);
      const entry = await journal.entry(task.id);
      const isFollowed = task.kind === "run" && policy?.follow.until !== "accepted" && entry?.sentAtMs !== undefined;
      const usualMs = isFollowed ? await facts.usualMs(task.policy, task.target) : undefined;
      const where = { task, state, queuedAtMs, policy, entry, usualMs };
      return toRunning(where, await readStep(where, facts, nowMs), nowMs);
    });
    running.push(...(await Promise.all(places)));
  }
  const sinceMs = ({ since }: RunningTask) => (since === null ? 0 : Date.parse(since));
  return running.toSorted((a, b) => taskSteps.indexOf(a.step) - taskSteps.indexOf(b.step) || sinceMs(a) - sinceMs(b));
}

/**
 * What it does now, in one sentence: `answered at 02:30 CET; followed until 03:55 CET; waits for
 * the end of its run`, or `confirmed at` where an activity stands for a lost answer. A story tells
 * by itself what stands in the way of a start, and who cancelled it.
 */
export function stepWords(task: RunningTask, timezone: string | undefined, nowMs: number): string {
  const { step, since, shownBy, deadline } = task;
  if (obstacles.has(step)) return step;
  const at = (instant: string) => showClock(Date.parse(instant), timezone, nowMs);
  const until = deadline === null ? "" : ` until ${at(deadline)}`;
  const shown = shownBy === "evidence" ? "confirmed" : "answered";
  return waitWords(task, since === null ? step : `${shown} at ${at(since)}; followed${until}`);
}

/** A step and what it waits for; `shown` stands for `following`. */
export function waitWords({ step, waitsFor }: Pick<RunningTask, "step" | "waitsFor">, shown: string): string {
  if (waitsFor === null) return step;
  if (obstacles.has(step)) return `${step}: ${waitsFor}`;
  return `${step === "following" ? shown : step}; waits for ${waitsFor}`;
}

/** Says of each task of one policy that is in flight where it is. */
export async function readRunningOf(
  { store, set }: Pick<QueryContext, "store" | "set">,
  { name }: Pick<Policy, "name">,
): Promise<readonly RunningTask[]> {
  const { tasks } = await readTasksInFlight(store, [...set.services.keys()], (policy) => policy === name);
  return readRunning(tasks, set, store);
}

/** What many tasks share, read once: what services let through, and why lists cannot be read. */
function readFacts(store: Store, { services }: RunningSet) {
  const feeds = new FeedStore(store);
  const leases = new Leases(store);
  const listFailure = async (service: string, repository: string | null, lists: readonly ListName[]) => {
    for (const list of lists) {
      const { failure } = await feeds.status({ service, repository, list });
      if (failure !== undefined) return `; but ${list} cannot be read: ${failure}; ${doctorSaysMore}`;
    }
    return "";
  };
  return {
    baseUrl: (service: string) => services.get(service)?.baseUrl,
    limiter: once((service: string) => readLimiterStatus(store, service)),
    /** Why the first of these lists cannot be read; empty: all can. */
    listFailure: once(listFailure),
    holder: (task: TaskLookedAt["task"]) => leases.holder(task),
    usualMs: once(async (policy: string, target: string) => usualMsOf(await readRuns(store, { policy, target }))),
  };
}

function once<Args extends readonly unknown[], Fact>(
  read: (...args: Args) => Promise<Fact>,
): (...args: Args) => Promise<Fact> {
  const known = new Map<string, Promise<Fact>>();
  return (...args) => {
    const key = JSON.stringify(args);
    const fact = known.get(key) ?? read(...args);
    known.set(key, fact);
    return fact;
  };
}

type Facts = ReturnType<typeof readFacts>;

interface Where extends TaskLookedAt {
  readonly policy: Policy | undefined;
  readonly entry: StartEntry | undefined;
  /** Of a sent run, where it is known. */
  readonly usualMs: number | undefined;
}

type Step = Pick<RunningTask, "step" | "since" | "waitsFor">;

async function readStep(where: Where, facts: Facts, nowMs: number): Promise<Step> {
  const { task, entry, queuedAtMs } = where;
  const queued = toIso(queuedAtMs);
  if (entry?.cancelled !== undefined) return { step: "cancelling", since: queued, waitsFor: entry.cancelled };
  if (entry === undefined || entry.state === "claimed")
    return { since: queued, ...(await readObstacle(where, facts, nowMs)) };
  const { doubt } = entry;
  const sent = toIso(entry.sentAtMs);
  const isUnanswered = entry.state === "sending" && doubt === undefined;
  if (isUnanswered) return { step: "sending", since: sent, waitsFor: "an answer, or word of its worker" };
  const effect = effects[task.kind];
  if (effect !== undefined) {
    const reading = `a reading that shows whether sync job ${task.target} is ${effect}`;
    const waitsFor = doubt === undefined ? reading : `${reading}: ${doubt.detail}`;
    return { step: "verifying", since: toIso(entry.confirmedAtMs) ?? sent, waitsFor };
  }
  const lists: readonly ListName[] = entry.state === "sending" ? ["activities"] : listsOf(where.policy);
  const unread = await facts.listFailure(task.service, task.repository, lists);
  if (entry.state !== "sending") {
    const seen = entry.finishSeenAtMs;
    const clock = (instantMs: number) => showClock(instantMs, where.policy?.timezone, nowMs);
    const end = seen === undefined ? describeEnd(where, nowMs) : `its last conflicts; finished ${clock(seen)}`;
    return { step: "following", since: toIso(entry.confirmedAtMs), waitsFor: `${end}${unread}` };
  }
  const why = doubt === undefined ? "" : `: ${doubt.detail}`;
  return { step: "verifying", since: sent, waitsFor: `an activity that proves its start${why}${unread}` };
}

/** The lists that a start waits for, and a run until its end. */
function listsOf(policy: Policy | undefined): readonly ListName[] {
  return policy?.follow.until === "accepted" ? ["activities"] : ["activities", "conflictDetails"];
}

/** What a sync job that is read again shows, of tasks that no activity tells of. */
const effects: Readonly<Partial<Record<Task["kind"], string>>> = { activate: "active", delete: "gone" };

function describeEnd({ usualMs, entry, policy }: Where, nowMs: number): string {
  const endsMs = endOf(entry, usualMs);
  if (usualMs === undefined || endsMs === undefined) return "the end of its run";
  return `the end of its run; ${endWords({ usualMs, endsMs }, policy?.timezone, nowMs)}`;
}

function endOf(entry: StartEntry | undefined, usualMs: number | undefined): number | undefined {
  return usualMs === undefined || entry?.sentAtMs === undefined ? undefined : entry.sentAtMs + usualMs;
}

/** What stands in the way of a request that is not sent. */
async function readObstacle(
  { task, state, policy, entry }: Where,
  facts: Facts,
  nowMs: number,
): Promise<Pick<Step, "step" | "waitsFor">> {
  const limiter = await facts.limiter(task.service);
  const denied = describeDeniedBy(task.service, limiter, nowMs, facts.baseUrl(task.service));
  if (denied !== undefined) return { step: "held back", waitsFor: denied };
  const holder = takesLease(task, policy?.overlap) ? await facts.holder(task) : undefined;
  if (holder !== undefined && holder !== task.id) return { step: "waits for sync job", waitsFor: `${holder} holds it` };
  const hasStart = task.kind !== "poll" && task.kind !== "apply";
  const step = entry === undefined && state !== "active" ? "queued" : hasStart ? "preparing" : "working";
  if (entry?.readyAtMs !== undefined) {
    const unread = await facts.listFailure(task.service, task.repository, listsOf(policy));
    return { step, waitsFor: `the lists that are read before the start${unread}` };
  }
  if (limiter.failures === 0) return { step, waitsFor: null };
  const { failures, lastFailure } = limiter;
  const last = `${failures} failed in a row, the last one: ${lastFailure}; ${doctorSaysMore}`;
  return { step, waitsFor: `service ${task.service}: ${last}` };
}

function toRunning({ task, entry, policy, usualMs }: Where, step: Step, nowMs: number): RunningTask {
  const { id, kind, target, service, repository, origin } = task;
  const sentAtMs = entry?.sentAtMs;
  const isFollowed = policy !== undefined && kind === "run";
  const deadlineMs = isFollowed && sentAtMs !== undefined ? sentAtMs + policy.follow.deadlineMs : undefined;
  const isShown = step.step === "following" || (step.step === "verifying" && entry?.state === "confirmed");
  return {
    ...{ id, policy: task.policy, kind, target, service, repository, origin, slot: toIso(task.slotMs) },
    ...step,
    shownBy: (isShown ? entry?.confirmedBy : undefined) ?? null,
    name: taskWords(task, policy?.timezone, nowMs),
    sent: toIso(sentAtMs),
    usualMs: usualMs ?? null,
    endsAbout: toIso(endOf(entry, usualMs)),
    deadline: toIso(sentAtMs === undefined ? task.startByMs : deadlineMs),
  };
}
