// Whose the activities of a sync job are: decided once for all tasks, in Redis, since several starts may be in flight. Called by
// start-journal.ts; how sure that is, is said by work/attribution.ts.
import { attributeScript } from "./journal-scripts.ts";
import type { Store } from "./redis.ts";
import { inFlightKey, type JournalTask } from "./start-entry.ts";

/** How long a start may be in flight, and how long it is known whose an activity is. */
export const inFlightMs = 7 * 86_400_000;
/** Of how many activities of one sync job it is remembered whose they are; the oldest are forgotten first. */
const givenMax = 1_000;

/** An activity that could be of one of the starts in flight. */
export interface Attributable {
  readonly id: string;
  readonly startedAtMs: number | undefined;
}

/** Whose activities are. */
export interface Attributed {
  /** The task of each activity, by its id; undefined where no start in flight could have made it. */
  readonly taskOf: ReadonlyMap<string, string>;
  /** All starts of the sync job that are in flight: task id → when it was sent. */
  readonly inFlight: ReadonlyMap<string, number>;
  /** What Redis has forgotten of late: whoever was started then may not be in flight here. */
  readonly losses: readonly { readonly fromMs: number; readonly untilMs: number }[];
}

/** Gives each of these activities of the task's sync job, oldest first, to one start at most. */
export async function attributeActivities(
  store: Store,
  task: JournalTask,
  activities: readonly Attributable[],
): Promise<Attributed> {
  const { key } = store;
  const subject = [task.service, task.repository ?? "", task.target];
  const keys = [key("given", ...subject), inFlightKey(store, task), key("given-order", ...subject), key("losses")];
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
