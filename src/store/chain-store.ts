// Slots that wait for the end of another policy's slot. slot-ledger.ts opens them,
// schedule/chains.ts ends them.
import { isJsonObject } from "../core/json.ts";
import { outcomeStatuses } from "../model/outcome.ts";
import {
  type PredecessorState,
  readSlotRecord,
  readWaitingSlot,
  type WaitingSlot,
  type WaitingSlotEnd,
} from "../model/slot-record.ts";
import { type Task, taskKinds } from "../model/task.ts";
import { slotDay } from "./day-summaries.ts";
import { notifyStreamKey } from "./notify-store.ts";
import { type Store, scanPairs } from "./redis.ts";
import {
  asFlag,
  asList,
  asNothing,
  asNumber,
  asOptional,
  asText,
  asTexts,
  asWord,
  createScript,
  pairsOf,
} from "./script.ts";
import { joinCounterKey, slotRecordsForMs, slotRecordsMax } from "./slot-ledger.ts";
import { troublesKey } from "./troubles.ts";

const scanCount = 1_000;

const fanOutScript = createScript("chain/fan-out", asNothing);
const taskOverScript = createScript("chain/task-over", asFlag);
const viewScript = createScript("chain/view", (answer) => {
  const [word, found] = asList(answer);
  const state = asWord("open", "nothing", "record", "ended")(word);
  if (state === "record") return { state, record: asText(found) };
  return state === "ended" ? { state, counter: new Map(pairsOf(asTexts(found))) } : { state };
});
const endWaitingScript = createScript("chain/end-waiting", asOptional(asNumber));

/** Waiting slots and join counters in Redis. */
export class ChainStore {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Replaces a task by those that it fanned out into. Call it before `taskOver`. Idempotent. */
  async fannedOut(task: Task, targets: readonly string[]): Promise<void> {
    if (task.origin === "manual") return;
    await fanOutScript(this.#store, [joinCounterKey(this.#store, task.policy, task.slotMs)], [task.target, ...targets]);
  }

  /** Counts a task that has released its lease; true: the last one of a slot with followers. */
  async taskOver(task: Task): Promise<boolean> {
    if (task.origin === "manual") return false;
    const outcomes = this.#store.key("outcomes", task.policy);
    const keys = [joinCounterKey(this.#store, task.policy, task.slotMs), outcomes];
    return taskOverScript(this.#store, keys, [task.target, task.id]);
  }

  /** Returns those of these slots that wait. */
  async find(slots: readonly Pick<WaitingSlot, "policy" | "slotMs">[]): Promise<WaitingSlot[]> {
    if (slots.length === 0) return [];
    const texts = await this.#store.redis.hmget(this.#waiting, ...slots.map(fieldOf));
    return slots.flatMap((slot, index) => readableSlot(fieldOf(slot), texts[index] ?? null));
  }

  /** Reads about a thousand waiting slots, and the next cursor; "0" after the last ones. */
  async scan(cursor: string): Promise<{ readonly slots: readonly WaitingSlot[]; readonly cursor: string }> {
    const [next, found] = await this.#store.redis.hscan(this.#waiting, cursor, "COUNT", scanCount);
    return { slots: pairsOf(found).flatMap(([field, text]) => readableSlot(field, text)), cursor: next };
  }

  /** Returns the waiting slots of one policy. @throws NewerVersionError or ZodError. */
  async waitingOf(policy: string): Promise<WaitingSlot[]> {
    const slots: WaitingSlot[] = [];
    const read = (cursor: string) =>
      this.#store.redis.hscan(this.#waiting, cursor, "MATCH", `${policy}/*`, "COUNT", scanCount);
    for await (const page of scanPairs(read)) slots.push(...page.map(([field, text]) => toWaiting(field, text)));
    return slots;
  }

  /** Reads the state of the predecessor's slot. @throws NewerVersionError */
  async predecessorOf({ after, slotMs }: WaitingSlot): Promise<PredecessorState> {
    const { key } = this.#store;
    const keys = [joinCounterKey(this.#store, after, slotMs), key("slots", after), this.#waiting];
    const answer = await viewScript(this.#store, keys, [slotMs, fieldOf({ policy: after, slotMs })]);
    if (answer.state === "ended") return toEnded(answer.counter);
    if (answer.state !== "record") return answer;
    const fields: unknown = JSON.parse(answer.record);
    const record = isJsonObject(fields) ? readSlotRecord({ ...fields, slotMs }) : undefined;
    // Started, without a join counter: it had no follower, or the counter expired.
    return record === undefined || record.state === "started" ? { state: "nothing" } : { state: "not-started", record };
  }

  /**
   * Ends the waiting of a slot; answers the watermark of its tasks, or undefined: it waits no more.
   */
  async endWaiting(
    { slot, record, tasks, isNotified, timezone }: WaitingSlotEnd,
    nowMs: number,
  ): Promise<number | undefined> {
    const { key } = this.#store;
    const { policy, slotMs, after, followers, isLeftOut = false } = slot;
    const { slotMs: _, ...fields } = record;
    const day = slotDay(this.#store, { policy, timezone, slotMs, state: record.state });
    const counters = [joinCounterKey(this.#store, policy, slotMs), joinCounterKey(this.#store, after, slotMs)];
    const keys = [
      key("outbox"),
      key("kept-since"),
      key("slots", policy),
      key("slot-index", policy),
      ...counters,
      notifyStreamKey(this.#store),
      troublesKey(this.#store),
      key("watermarks"),
      ...(day === undefined ? [] : [day.key]),
    ];
    const kept = [slotRecordsMax, slotRecordsForMs];
    const written = [JSON.stringify(fields), nowMs, JSON.stringify(tasks), followers, isNotified === true ? 1 : 0];
    const args = [...kept, policy, fieldOf(slot), slotMs, ...written, day?.change ?? "", isLeftOut ? 1 : 0];
    return endWaitingScript(this.#store, [this.#waiting, ...keys], args);
  }

  get #waiting(): string {
    return this.#store.key("waiting");
  }
}

function fieldOf({ policy, slotMs }: Pick<WaitingSlot, "policy" | "slotMs">): string {
  return `${policy}/${slotMs}`;
}

function toWaiting(field: string, text: string): WaitingSlot {
  const [policy = "", slot = ""] = field.split("/");
  return readWaitingSlot(policy, Number(slot), text);
}

/** One that cannot be read stays for a newer replica: it must not stop the chains of others. */
function readableSlot(field: string, text: string | null): WaitingSlot[] {
  try {
    return text === null ? [] : [toWaiting(field, text)];
  } catch {
    return [];
  }
}

function toEnded(counter: ReadonlyMap<string, string>): PredecessorState {
  const kind = taskKinds.find((one) => one === counter.get("kind"));
  if (kind === undefined) return { state: "open" };
  const endings = [...counter].flatMap(([field, text]) => {
    const status = outcomeStatuses.find((one) => one === text);
    return field.startsWith("=") && status !== undefined ? [{ target: field.slice(1), status }] : [];
  });
  const isReleased = Number(counter.get("held")) <= 0;
  return { state: "ended", kind, endedMs: Number(counter.get("ended")), isReleased, endings };
}
