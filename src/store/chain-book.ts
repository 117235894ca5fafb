// The chain book: which slots wait for the end of another policy's, and how far that has come. Slots begin to wait in the step that
// records the chain's first slot (slot-ledger.ts); here they are looked at and ended. Read by `audit` and `explain`, too.
import { isJsonObject } from "../core/json.ts";
import { outcomeStatuses } from "../tasks/outcome.ts";
import { readSlotRecord } from "../tasks/slot-record.ts";
import type { Task } from "../tasks/task.ts";
import { taskKinds } from "../tasks/task.ts";
import { type FollowStep, type PredecessorState, readWaitingSlot, type WaitingSlot } from "../tasks/waiting-slot.ts";
import { expandScript, followScript, lookScript, releaseScript } from "./chain-scripts.ts";
import type { Store } from "./redis.ts";
import { slotRecordsForMs, slotRecordsMax, tallyKey } from "./slot-ledger.ts";
import { tellingStreamKey } from "./telling-book.ts";

const scanCount = 1_000;

/** The chain book in Redis. */
export class ChainBook {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Notes that other tasks stand for one, before it is released. Doing so twice changes nothing. */
  async expanded(task: Task, targets: readonly string[]): Promise<void> {
    if (task.origin === "manual") return;
    await expandScript(this.#store, [tallyKey(this.#store, task.policy, task.slotMs)], [task.target, ...targets]);
  }

  /** Notes that a task has ended and holds nothing any more. Answers whether it was the last one of a slot for which others wait. */
  async released(task: Task): Promise<boolean> {
    if (task.origin === "manual") return false;
    const key = tallyKey(this.#store, task.policy, task.slotMs);
    return (await releaseScript(this.#store, [key], [task.target])) === 1;
  }

  /** Those of these slots that wait. */
  async find(slots: readonly Pick<WaitingSlot, "policy" | "slotMs">[]): Promise<WaitingSlot[]> {
    if (slots.length === 0) return [];
    const texts = await this.#store.redis.hmget(this.#waiting, ...slots.map(fieldOf));
    return slots.flatMap((slot, index) => toWaiting(fieldOf(slot), texts[index] ?? null));
  }

  /** About a thousand slots that wait, and where to go on; "0" when that was all. */
  async scan(cursor: string): Promise<{ readonly slots: readonly WaitingSlot[]; readonly cursor: string }> {
    const [next, found] = await this.#store.redis.hscan(this.#waiting, cursor, "COUNT", scanCount);
    return { slots: pairsOf(found).flatMap(([field, text]) => toWaiting(field, text)), cursor: next };
  }

  /** The slots of one policy that wait. */
  async waitingOf(policy: string): Promise<WaitingSlot[]> {
    const slots: WaitingSlot[] = [];
    let cursor = "0";
    do {
      const page = await this.#store.redis.hscan(this.#waiting, cursor, "MATCH", `${policy}/*`, "COUNT", scanCount);
      slots.push(...pairsOf(page[1]).flatMap(([field, text]) => toWaiting(field, text)));
      cursor = page[0];
    } while (cursor !== "0");
    return slots;
  }

  /** How far the predecessor's slot has come. */
  async look({ after, slotMs }: WaitingSlot): Promise<PredecessorState> {
    const { key } = this.#store;
    const keys = [tallyKey(this.#store, after, slotMs), key("slots", after), this.#waiting];
    const answer = await lookScript(this.#store, keys, [slotMs, fieldOf({ policy: after, slotMs })]);
    if (answer === "open" || answer === "nothing") return { state: answer };
    if (Array.isArray(answer)) return toEnded(new Map(pairsOf(answer.map(String))));
    const fields: unknown = JSON.parse(String(answer));
    const record = isJsonObject(fields) ? readSlotRecord({ ...fields, slotMs }) : undefined;
    // A started slot whose tasks nobody counts: it ended so long ago that they are forgotten.
    return record === undefined || record.state === "started" ? { state: "nothing" } : { state: "not-started", record };
  }

  /**
   * Ends the waiting of a slot with its record, and puts its tasks into the outbox, in one step. Answers under which mark they stand
   * there, for `SlotLedger.confirmQueued`; undefined, and nothing is changed, when the slot waits no more.
   */
  async follow({ slot, record, tasks, isTold }: FollowStep, nowMs: number): Promise<number | undefined> {
    const { key } = this.#store;
    const { policy, slotMs, after, followers } = slot;
    const { slotMs: _, ...fields } = record;
    const tallies = [tallyKey(this.#store, policy, slotMs), tallyKey(this.#store, after, slotMs)];
    const keys = [
      key("outbox"),
      key("kept-since"),
      key("slots", policy),
      key("slot-index", policy),
      ...tallies,
      tellingStreamKey(this.#store),
    ];
    const kept = [slotRecordsMax, slotMs - slotRecordsForMs];
    const written = [JSON.stringify(fields), nowMs, JSON.stringify(tasks), followers, isTold === true ? 1 : 0];
    const args = [...kept, policy, fieldOf(slot), slotMs, ...written];
    const answer = await followScript(this.#store, [this.#waiting, ...keys], args);
    return answer === "" ? undefined : Number(answer);
  }

  get #waiting(): string {
    return this.#store.key("waiting");
  }
}

function fieldOf({ policy, slotMs }: Pick<WaitingSlot, "policy" | "slotMs">): string {
  return `${policy}/${slotMs}`;
}

function toWaiting(field: string, text: string | null): WaitingSlot[] {
  const [policy = "", slot = ""] = field.split("/");
  const waiting = text === null ? undefined : readWaitingSlot(policy, Number(slot), text);
  return waiting === undefined ? [] : [waiting];
}

function toEnded(tally: ReadonlyMap<string, string>): PredecessorState {
  const kind = taskKinds.find((one) => one === tally.get("kind"));
  if (kind === undefined) return { state: "open" };
  const endings = [...tally].flatMap(([field, text]) => {
    const status = outcomeStatuses.find((one) => one === text);
    return field.startsWith("=") && status !== undefined ? [{ target: field.slice(1), status }] : [];
  });
  const isReleased = Number(tally.get("held")) <= 0;
  return { state: "ended", kind, endedMs: Number(tally.get("ended")), isReleased, endings };
}

function pairsOf(flat: readonly string[]): [string, string][] {
  const pairs: [string, string][] = [];
  for (let index = 0; index + 1 < flat.length; index += 2) pairs.push([flat[index] ?? "", flat[index + 1] ?? ""]);
  return pairs;
}
