// Collects all that is known of one slot, run by hand or task: its record, who asked for it, its
// tasks (task-story.ts), and the pauses in force. Reads only. Called by
// `syncline explain` and the pages.

import type { Policy, PolicySet } from "../config/policy-set.ts";
import { toIso } from "../core/instant.ts";
import { type Change, describeReason } from "../model/change.ts";
import type { Outcome } from "../model/outcome.ts";
import { isAbout, isInForce, type Pause } from "../model/pause.ts";
import { type SlotRecord, tasksOfSlot } from "../model/slot-record.ts";
import { parseTaskId } from "../model/task.ts";
import { findTaskInFlight, readTasksInFlight } from "../queue/tasks-in-flight.ts";
import { describeNoRecord, describeRecord, type SlotsAround, slotsUpTo } from "../schedule/explain-slot.ts";
import { ChainStore } from "../store/chain-store.ts";
import { Changes, changesReadMax } from "../store/changes.ts";
import { History } from "../store/history.ts";
import { readPauses } from "../store/pauses.ts";
import { type Presence, readPresence, type Store } from "../store/redis.ts";
import { readLimiterStatus } from "../store/service-limiter.ts";
import { describeDeadline } from "./deadlines.ts";
import { describeDeniedBy } from "./service-words.ts";
import { readTaskStories, type StoryStores, type StoryTask, type TaskStory } from "./task-story.ts";

const outcomesReadMax = 1_000;

/** The story of one slot, or of a run by hand: then `slot` is when it was given. */
export interface SlotStory {
  readonly policy: string;
  /** Who to call about it. */
  readonly owner: string | null;
  readonly origin: Outcome["origin"];
  readonly asked: string | null;
  /** False: no slot is at `asked`; `previous` and `next` lie around it. */
  readonly isSlot: boolean;
  readonly reasons: readonly string[];
  readonly previous: string | null;
  readonly next: string | null;
  readonly slot: string | null;
  /** What became of it, in one sentence. */
  readonly verdict: string;
  /** What its deadline came to, in one sentence; null without one. */
  readonly deadline: string | null;
  readonly record: SlotRecord | null;
  /** Older slots that this one covers. */
  readonly covers: readonly string[];
  readonly tasks: readonly TaskStory[];
  readonly pauses: readonly Pause[];
  /** Why the limiter denies all requests of tasks without an outcome; null when it does not. */
  readonly held: string | null;
  /** How many processes with each role are alive now. */
  readonly processes: Presence;
}

/** What is asked of a slot. `task`: only this one of its tasks. */
interface SlotQuestion {
  readonly asked: string | null;
  readonly around: SlotsAround;
  readonly nowMs: number;
  readonly task?: string;
}

/** Tells the story of a slot. */
export async function readSlotStory(
  policy: Policy,
  { asked, around, nowMs, task }: SlotQuestion,
  places: StoryStores,
): Promise<SlotStory> {
  const { slotMs } = around;
  // Watermark, waiting slots, records: in this order (audit-policy.ts says why).
  const watermarkMs = (await places.ledger.plannedUpTo([policy.name])).get(policy.name);
  const waits = slotMs === undefined ? [] : await new ChainStore(places.store).find([{ policy: policy.name, slotMs }]);
  const holdings = { ...(await places.ledger.holdings(policy.name)), watermarkMs };
  const record = holdings.records.find((one) => one.slotMs === slotMs);
  const ids = task === undefined ? taskIdsOf(policy.name, record, holdings.records) : [task];
  const told = ids.flatMap((id) => toldTask(id, policy) ?? []);
  const tasks = await readTaskStories(told, places);
  const surroundings = await readSurroundings(policy, { tasks, nowMs }, places.store);
  const verdict = () => {
    if (slotMs === undefined) return "its schedule has no slots around this time";
    if (record !== undefined) return describeRecord(policy, record);
    const [wait] = waits;
    if (wait !== undefined) return `waits for the same slot of ${wait.after} to end`;
    return describeNoRecord({ slotMs, nowMs, hasScheduler: surroundings.processes.schedulers > 0, ...holdings });
  };
  return {
    policy: policy.name,
    owner: policy.owner ?? null,
    origin: "schedule",
    asked,
    isSlot: around.isSlot,
    reasons: around.reasons,
    previous: toIso(around.previousMs),
    next: toIso(around.nextMs),
    slot: toIso(slotMs),
    verdict: verdict(),
    deadline: (slotMs !== undefined && (await describeDeadline(policy, { slotMs, nowMs }, places.store))) || null,
    record: record ?? null,
    covers: holdings.records
      .filter(({ state, detail }) => state === "coalesced" && detail === toIso(slotMs))
      .map((one) => new Date(one.slotMs).toISOString()),
    tasks,
    ...surroundings,
  };
}

/** Tells the newest run by hand of a policy after an instant; undefined when none is known. */
export async function readHandStory(
  policy: Policy,
  { afterMs, nowMs }: { readonly afterMs: number; readonly nowMs: number },
  places: StoryStores,
): Promise<SlotStory | undefined> {
  const changes = await new Changes(places.store).newest(changesReadMax);
  // The record names a hundred tasks. Before the outcomes: what ends in between is found there.
  const { tasks: open } = await readTasksInFlight(places.store, [policy.service], (name) => name === policy.name);
  const ended = await new History(places.store).newestPlaces(outcomesReadMax, [policy.name]);
  const known = [...changes.flatMap(taskIdsIn), ...open.map(({ task }) => task.id), ...ended.map(({ id }) => id)];
  const byHand = known.flatMap((id) => {
    const name = parseTaskId(id);
    return name?.origin === "manual" && name.policy === policy.name ? [{ id, slotMs: name.slotMs }] : [];
  });
  const newestMs = byHand.reduce((latest, { slotMs }) => Math.max(latest, slotMs), afterMs);
  const ids = new Set(byHand.filter(({ slotMs }) => slotMs === newestMs && slotMs > afterMs).map(({ id }) => id));
  const tasks = [...ids].flatMap((id) => toldTask(id, policy) ?? []);
  return tasks.length === 0 ? undefined : looseStory(tasks, { policy, changes, nowMs }, places);
}

/** Tells the story of one task by its id; undefined when nothing is known of it. */
export async function readStoryOfTask(
  id: string,
  { set, nowMs }: { readonly set: PolicySet; readonly nowMs: number },
  places: StoryStores,
): Promise<SlotStory | undefined> {
  const name = parseTaskId(id);
  if (name === undefined) return undefined;
  const policy = set.policies.find((one) => one.name === name.policy);
  if (policy !== undefined && name.origin === "schedule") {
    const around = { ...slotsUpTo(policy, name.slotMs), slotMs: name.slotMs };
    const story = await readSlotStory(policy, { asked: null, around, nowMs, task: id }, places);
    return story.record?.targets?.includes(name.target) || story.tasks.some(hasTraces) ? story : undefined;
  }
  const outcome = await places.history.outcome({ policy: name.policy, id });
  const about = policy ?? outcome ?? (await findTaskInFlight(places.store, [...set.services.keys()], id));
  const task = about && toldTask(id, about);
  if (task === undefined) return undefined;
  const changes = await new Changes(places.store).newest(changesReadMax);
  const story = await looseStory([task], { policy, changes, nowMs }, places);
  return story.tasks.some(hasTraces) || changes.some((change) => taskIdsIn(change).includes(id)) ? story : undefined;
}

function hasTraces({ outcome, isInFlight, journal }: TaskStory): boolean {
  return outcome !== null || isInFlight || journal !== "none";
}

/** Tasks apart from a slot: by hand, or of a policy that is gone. */
async function looseStory(
  tasks: readonly StoryTask[],
  { policy, changes, nowMs }: { policy: Policy | undefined; changes: readonly Change[]; nowMs: number },
  places: StoryStores,
): Promise<SlotStory> {
  const [first] = tasks;
  const { origin, slotMs = 0, policy: name = "", service = "" } = first ?? {};
  const change = changes.find((one) => taskIdsIn(one).some((id) => tasks.some((task) => task.id === id)));
  const stories = await readTaskStories(tasks, places);
  const slots = policy === undefined ? undefined : slotsUpTo(policy, nowMs);
  const why = change === undefined ? "" : describeReason(change);
  const by =
    change === undefined
      ? `; the newest ${changesReadMax} changes do not say by whom`
      : ` (${change.what}) by ${change.actor}`;
  return {
    policy: name,
    owner: policy?.owner ?? null,
    origin: origin ?? "manual",
    asked: null,
    isSlot: true,
    reasons: [],
    previous: toIso(slots?.previousMs),
    next: toIso(slots?.nextMs),
    slot: toIso(slotMs),
    verdict:
      origin === "manual"
        ? `by hand${by}${why === "" ? "" : `: ${why}`}`
        : "started; its policy is not configured any more",
    deadline: null,
    record: null,
    covers: [],
    tasks: stories,
    ...(await readSurroundings(policy ?? { name, service }, { tasks: stories, nowMs }, places.store)),
  };
}

async function readSurroundings(
  policy: Pick<Policy, "name" | "service">,
  { tasks, nowMs }: { readonly tasks: readonly TaskStory[]; readonly nowMs: number },
  store: Store,
): Promise<Pick<SlotStory, "pauses" | "held" | "processes">> {
  const pauses = (await readPauses(store)).filter((pause) => isInForce(pause, nowMs) && isAbout(pause, policy));
  const isOpen = tasks.some(({ isInFlight }) => isInFlight);
  const limiter = isOpen ? await readLimiterStatus(store, policy.service) : undefined;
  const held = (limiter && describeDeniedBy(policy.service, limiter, nowMs)) ?? null;
  return { pauses, held, processes: await readPresence(store) };
}

/** The tasks of the slot itself, or of the slot that covers it. */
function taskIdsOf(policy: string, record: SlotRecord | undefined, records: readonly SlotRecord[]): string[] {
  const started =
    record?.state === "coalesced" ? records.find(({ slotMs }) => toIso(slotMs) === record.detail) : record;
  return started === undefined ? [] : tasksOfSlot(policy, started).map(({ id }) => id);
}

/** The tasks that a change by hand has queued: their ids stand in what it left. */
export function taskIdsIn({ after }: Change): string[] {
  return (JSON.stringify(after ?? null).match(/"[\w.-]+__[^"]+__m\d+"/g) ?? []).map((text) => text.slice(1, -1));
}

function toldTask(
  id: string,
  about: Pick<Policy, "service"> &
    Partial<Pick<Policy, "overlap">> & { readonly repository?: string | null | undefined },
): StoryTask | undefined {
  const name = parseTaskId(id);
  const { service, overlap, repository = null } = about;
  return name && { ...name, id, service, overlap, repository };
}
