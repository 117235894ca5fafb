// Attributes the activities of a sync job to tasks. Several starts may be in flight, so Redis
// decides once for all of them. Called by start-journal.ts; tasks/attribution.ts adds the
// confidence.
import { attributeScript } from "./journal-scripts.ts";
import type { Store } from "./redis.ts";
import { inFlightKey, type JournalTask } from "./start-entry.ts";

/** How long a start may be in flight, and how long Redis remembers an attribution. */
export const inFlightMs = 7 * 86_400_000;
/** Attributions that Redis remembers for one sync job; the oldest go first. */
const givenMax = 1_000;

/** An activity to attribute. */
export interface Attributable {
  readonly id: string;
  readonly startedAtMs: number | undefined;
}

/** The answer of an attribution. */
export interface Attributed {
  /** Activity id → task id; no entry where no start in flight could have made the activity. */
  readonly taskOf: ReadonlyMap<string, string>;
  /** All starts of the sync job that are in flight: task id → when its request was sent. */
  readonly inFlight: ReadonlyMap<string, number>;
  /** Intervals that Redis lost lately: starts from them may be missing in `inFlight`. */
  readonly losses: readonly { readonly fromMs: number; readonly untilMs: number }[];
}

/** Attributes each activity, oldest first, to at most one start of the task's sync job. */
export async function attributeActivities(
  store: Store,
  task: JournalTask,
  activities: readonly Attributable[],
): Promise<Attributed> {
  const { key } = store;
  const syncJob = [task.service, task.repository ?? "", task.target];
  const keys = [key("given", ...syncJob), inFlightKey(store, task), key("given-order", ...syncJob), key("losses")];
  const pairs = activities.flatMap(({ id, startedAtMs }) => [id, startedAtMs ?? ""]);
  const answer = await attributeScript(store, keys, [inFlightMs, givenMax, ...pairs]);
  const [texts = [], lost = []] = (Array.isArray(answer) ? answer : []).map(toTextList);
  const losses = lost.map((text) => text.split(":").map(Number));
  const owners = activities.map(({ id }, index) => [id, texts[index] ?? ""] as const);
  const inFlight = new Map<string, number>();
  for (let index = activities.length; index + 1 < texts.length; index += 2)
    inFlight.set(texts[index] ?? "", Number(texts[index + 1]));
  return {
    taskOf: new Map(owners.filter(([, owner]) => owner !== "")),
    inFlight,
    losses: losses.map(([fromMs = 0, untilMs = 0]) => ({ fromMs, untilMs })),
  };
}

function toTextList(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(String) : [];
}
