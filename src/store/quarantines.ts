// Quarantines in Redis: how many slots of a policy failed in a row, and until when its slots are
// skipped for it. Workers count at the end of each task (tasks/quarantine-watch.ts); the scheduler
// reads quarantines as pauses. Only policies that have failed have an entry.
//
//   well ──a slot fails──▶ counting ──N in a row──▶ quarantined ──time is up──▶ on trial
//    ▲───── a success, or by hand ───────┴──────────────────┴───────────────────────┘
//
// On trial, one more failure quarantines the policy again.
import * as z from "zod";
import type { Pause } from "../model/pause.ts";
import { createScript, type Store } from "./redis.ts";

/** When a policy is quarantined, and for how long. */
export interface QuarantineRule {
  /** Slots in a row that must fail. */
  readonly after: number;
  readonly forMs: number;
}

/** The ending of one task, for the count of its policy. */
export interface CountedEnding {
  readonly policy: string;
  readonly slotMs: number;
  readonly isGood: boolean;
  /** The reason, for the record of each skipped slot; cut to 150 characters. */
  readonly note: string;
}

const entrySchema = z.object({
  v: z.literal(1),
  failures: z.int(),
  sinceMs: z.int().nullable(),
  untilMs: z.int().nullable(),
  note: z.string(),
  endedBy: z.string().nullable(),
});

const now = `local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)`;

// Counts an ending. A slot counts once, however many of its tasks failed, and not at all when one
// of them succeeded. A success older than the first failure of the row ends nothing.
// KEYS: quarantines.
// ARGV: policy, slot, 1 for a good ending, after, for, note.
// Answers 'quarantined', 'released' or ''.
const countScript = createScript(`${now}
local text = redis.call('HGET', KEYS[1], ARGV[1])
local slot = tonumber(ARGV[2])
local entry = text and cjson.decode(text)
  or { v = 1, failures = 0, badMs = 0, goodMs = 0, sinceMs = cjson.null, untilMs = cjson.null, note = '', endedBy = cjson.null }
local inForce = entry.untilMs ~= cjson.null and entry.untilMs > now
local word = ''
if ARGV[3] == '1' then
  if not text or slot < (entry.rowFromMs or 0) then return '' end
  entry.failures = 0
  entry.rowFromMs = nil
  entry.goodMs = math.max(entry.goodMs, slot)
  if inForce then
    entry.untilMs = now
    entry.endedBy = ARGV[6]
    word = 'released'
  end
else
  if inForce or slot == entry.goodMs or slot <= entry.badMs then return '' end
  entry.failures = entry.failures + 1
  if entry.failures == 1 then entry.rowFromMs = slot end
  entry.badMs = slot
  if entry.failures >= tonumber(ARGV[4]) then
    entry.sinceMs = now
    entry.untilMs = now + tonumber(ARGV[5])
    entry.endedBy = cjson.null
    local count = entry.failures == 1 and '1 slot' or entry.failures .. ' slots in a row'
    entry.note = count .. ' failed; ' .. ARGV[6]
    word = 'quarantined'
  end
end
redis.call('HSET', KEYS[1], ARGV[1], cjson.encode(entry))
return word`);

// Ends a quarantine by hand.
// KEYS: quarantines.
// ARGV: policy, actor.
// Answers the ended entry, or nothing.
const releaseScript = createScript(`${now}
local text = redis.call('HGET', KEYS[1], ARGV[1])
if not text then return false end
local entry = cjson.decode(text)
local inForce = entry.untilMs ~= cjson.null and entry.untilMs > now
entry.failures = 0
if inForce then
  entry.untilMs = now
  entry.endedBy = ARGV[2]
end
text = cjson.encode(entry)
redis.call('HSET', KEYS[1], ARGV[1], text)
return inForce and text or false`);

/** The quarantines in Redis. */
export class Quarantines {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Counts an ending. Idempotent: only one caller gets the change that it caused. */
  async count(ending: CountedEnding, rule: QuarantineRule): Promise<"quarantined" | "released" | "nothing"> {
    const { policy, slotMs, isGood, note } = ending;
    const args = [policy, slotMs, isGood ? 1 : 0, rule.after, rule.forMs, note.slice(0, 150)];
    const word = await countScript(this.#store, [this.#key()], args);
    return word === "quarantined" || word === "released" ? word : "nothing";
  }

  /** Returns the last quarantine of each policy, in force or over, as a pause. */
  async all(): Promise<Pause[]> {
    const entries = Object.entries(await this.#store.redis.hgetall(this.#key()));
    return entries.flatMap(([policy, text]) => toPause(policy, text) ?? []);
  }

  /**
   * Ends a policy's quarantine by hand and forgets its failures. Answers the ended one; undefined
   * when none was in force.
   */
  async release(policy: string, actor: string): Promise<Pause | undefined> {
    const text = await releaseScript(this.#store, [this.#key()], [policy, actor]);
    return typeof text === "string" ? toPause(policy, text) : undefined;
  }

  #key(): string {
    return this.#store.key("quarantines");
  }
}

function toPause(policy: string, text: string): Pause | undefined {
  const { sinceMs, untilMs, note, endedBy } = entrySchema.parse(JSON.parse(text));
  if (sinceMs === null) return undefined;
  return {
    v: 1,
    scope: "policy",
    name: policy,
    cause: "quarantine",
    note,
    actor: "syncline",
    sinceMs,
    untilMs,
    endedBy,
  };
}
