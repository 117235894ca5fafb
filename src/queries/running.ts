// Tasks in flight as data: the step of each, since when, what it waits for, and until when. Called
// by `syncline running` and `run --wait`. Reads only, in batches.
import type { Policy, PolicySet } from "../config/policy-set.ts";
import { showInstant, toIso } from "../core/instant.ts";
import type { Task } from "../model/task.ts";
import type { QueueState, TaskInFlight } from "../queue/tasks-in-flight.ts";
import { batchesOf } from "../store/batches.ts";
import { FeedStore } from "../store/feed-store.ts";
import { Leases } from "../store/leases.ts";
import { redisTimeMs, type Store } from "../store/redis.ts";
import { readLimiterStatus } from "../store/service-limiter.ts";
import type { StartEntry } from "../store/start-entry.ts";
import { StartJournal } from "../store/start-journal.ts";
import { describeDeniedBy } from "./service-words.ts";

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

/** A task in flight. Instants are ISO 8601. */
export interface RunningTask
  extends Pick<Task, "id" | "policy" | "kind" | "target" | "service" | "repository" | "origin"> {
  readonly slot: string | null;
  readonly step: TaskStepName;
  /** Since when it is in this step. */
  readonly since: string | null;
  /** What it waits for, in words; null when it waits for its turn alone. */
  readonly waitsFor: string | null;
  /** Before the request: by when it must be sent. After it: by when it must be settled. */
  readonly deadline: string | null;
}

/** Says of each task where it is, in the order of the steps, the longest first. */
export async function readRunning(
  tasks: readonly TaskInFlight[],
  set: PolicySet,
  store: Store,
): Promise<readonly RunningTask[]> {
  const nowMs = await redisTimeMs(store);
  const policies = new Map(set.policies.map((policy) => [policy.name, policy]));
  const denied = await readDenied(tasks, store, nowMs);
  const journal = new StartJournal(store);
  const running: RunningTask[] = [];
  for (const batch of batchesOf(tasks)) {
    const places = batch.map(async (one): Promise<RunningTask> => {
      const entry = await journal.entry(one.task.id);
      const policy = policies.get(one.task.policy);
      const waitsFor = await readObstacle(one, { entry, policy, denied, store });
      return toRunning(one, { entry, policy, waitsFor });
    });
    running.push(...(await Promise.all(places)));
  }
  const rank = ({ step, since }: RunningTask) => `${taskSteps.indexOf(step)} ${since ?? ""}`;
  return running.toSorted((a, b) => (rank(a) < rank(b) ? -1 : 1));
}

/** Why nothing may be sent to each of these services now. */
async function readDenied(
  tasks: readonly TaskInFlight[],
  store: Store,
  nowMs: number,
): Promise<ReadonlyMap<string, string>> {
  const services = [...new Set(tasks.map(({ task }) => task.service))];
  const denied = services.map(async (service): Promise<[string, string][]> => {
    const why = describeDeniedBy(service, await readLimiterStatus(store, service), nowMs);
    return why === undefined ? [] : [[service, why]];
  });
  return new Map((await Promise.all(denied)).flat());
}

type Obstacle = readonly ["held back" | "waits for sync job" | "preparing", string];

/** What stands in the way of a request that is not sent. */
async function readObstacle(
  { task }: TaskInFlight,
  {
    entry,
    policy,
    denied,
    store,
  }: {
    readonly entry: StartEntry | undefined;
    readonly policy: Policy | undefined;
    readonly denied: ReadonlyMap<string, string>;
    readonly store: Store;
  },
): Promise<Obstacle | undefined> {
  if (entry !== undefined && entry.state !== "claimed") return undefined;
  const heldBack = denied.get(task.service);
  if (heldBack !== undefined) return ["held back", heldBack];
  const takesLease = task.kind === "delete" || (task.kind === "run" && policy?.overlap !== "allow");
  const holder = takesLease ? await new Leases(store).holder(task) : undefined;
  if (holder !== undefined && holder !== task.id) return ["waits for sync job", `${holder} holds it`];
  if (entry?.readyAtMs === undefined) return undefined;
  const { failure } = await new FeedStore(store).status({ ...task, list: "activities" });
  const list = "the activities are read before the start";
  return ["preparing", failure === undefined ? list : `${list}, and that fails: ${failure}`];
}

function toRunning(
  { task, state, queuedAtMs }: TaskInFlight,
  {
    entry,
    policy,
    waitsFor,
  }: {
    readonly entry: StartEntry | undefined;
    readonly policy: Policy | undefined;
    readonly waitsFor: Obstacle | undefined;
  },
): RunningTask {
  const { id, kind, target, service, repository, origin } = task;
  const sentAtMs = entry?.sentAtMs;
  const deadlineMs = policy === undefined || sentAtMs === undefined ? undefined : sentAtMs + policy.follow.deadlineMs;
  return {
    ...{ id, policy: task.policy, kind, target, service, repository, origin, slot: toIso(task.slotMs) },
    ...stepOf(task, { state, queuedAtMs, entry, waitsFor }),
    deadline: toIso(sentAtMs === undefined ? task.startByMs : deadlineMs),
  };
}

function stepOf(
  task: Task,
  {
    state,
    queuedAtMs,
    entry,
    waitsFor,
  }: {
    readonly state: QueueState;
    readonly queuedAtMs: number;
    readonly entry: StartEntry | undefined;
    readonly waitsFor: Obstacle | undefined;
  },
): Pick<RunningTask, "step" | "since" | "waitsFor"> {
  const queued = toIso(queuedAtMs);
  if (entry?.cancelled !== undefined) return { step: "cancelling", since: queued, waitsFor: entry.cancelled };
  switch (entry?.state) {
    case "answered":
    case "settled": {
      const seen = entry.finishSeenAtMs;
      const waits = seen === undefined ? "the end of its run" : `its last conflicts; finished ${showInstant(seen)}`;
      return { step: "following", since: toIso(entry.answeredAtMs), waitsFor: waits };
    }
    case "sending":
      return entry.doubt === undefined
        ? { step: "sending", since: toIso(entry.sentAtMs), waitsFor: "the service's answer" }
        : { step: "verifying", since: toIso(entry.sentAtMs), waitsFor: `proof of its start: ${entry.doubt.detail}` };
    case "claimed":
    case undefined: {
      if (waitsFor !== undefined) return { step: waitsFor[0], since: queued, waitsFor: waitsFor[1] };
      const hasStart = task.kind !== "poll" && task.kind !== "apply";
      const step = state === "waiting" ? "queued" : hasStart ? "preparing" : "working";
      return { step, since: queued, waitsFor: null };
    }
  }
}
