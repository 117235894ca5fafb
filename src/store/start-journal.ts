// The start journal: what is known about the one request that a task may send. Called by work/ around every POST.
//
//   (none) ──claim──▶ claimed ──beginSending──▶ sending ──answered──▶ answered ──settle──▶ settled
//                        ▲ └─ claimed again by a redelivery        └────────settle───────────▲
//
// Only `claimed → sending` permits the request, and it succeeds at most once per task: for the newest claimant, and
// not after the task's start-by time. A task that is found `sending` without an answer is never sent again.
import { isJsonObject } from "../core/json.ts";
import { createScript, type Store } from "./redis.ts";

/** The states of a start, in order. */
type StartState = "claimed" | "sending" | "answered" | "settled";

/** What the journal holds of one start. Instants are milliseconds UTC by Redis. */
export interface StartEntry {
  readonly state: StartState;
  /** Who claimed last. */
  readonly owner: string;
  /** When it was claimed for the first time. */
  readonly claimedAtMs: number;
  /** When the request was permitted; undefined before. */
  readonly sentAtMs: number | undefined;
  /** When the service answered that it accepted; undefined when no answer came. */
  readonly answeredAtMs: number | undefined;
  /** What was known before the request, as JSON of the claimant; undefined when nothing was. */
  readonly baseline: string | undefined;
  /** Why the answer is missing, as the first one to notice wrote it; undefined when it is not. */
  readonly lost: AnswerLoss | undefined;
  /** When the run was first seen finished in its feed. */
  readonly finishSeenAtMs: number | undefined;
}

/** Why an answer is missing: the service said that it failed (`server`), it never came (`unknown`), or the worker died (`crash`). */
export interface AnswerLoss {
  readonly kind: "server" | "unknown" | "crash";
  readonly detail: string;
}

/** Whether the request may go out now, and if not, why. */
export type Permission = "permitted" | "lost-claim" | "too-late";

const retentionMs = 30 * 86_400_000;
const now = `local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)`;

const claimScript = createScript(`${now}
local state = redis.call('HGET', KEYS[1], 'state')
if state and state ~= 'claimed' then return redis.call('HGETALL', KEYS[1]) end
redis.call('HSET', KEYS[1], 'v', 1, 'state', 'claimed', 'owner', ARGV[1])
redis.call('HSETNX', KEYS[1], 'claimedAtMs', now)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.call('HGETALL', KEYS[1])`);

const sendScript = createScript(`${now}
local entry = redis.call('HMGET', KEYS[1], 'state', 'owner')
if entry[1] ~= 'claimed' or entry[2] ~= ARGV[1] then return 'lost-claim' end
if now > tonumber(ARGV[2]) then return 'too-late' end
redis.call('HSET', KEYS[1], 'state', 'sending', 'sentAtMs', now, 'baseline', ARGV[3])
return 'permitted'`);

const noteScript = createScript(`${now}
local value = ARGV[2] == '' and now or ARGV[2]
redis.call('HSETNX', KEYS[1], ARGV[1], value)
return redis.call('HGET', KEYS[1], ARGV[1])`);

const advanceScript = createScript(`${now}
if redis.call('HGET', KEYS[1], 'state') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'state', ARGV[2], ARGV[3], now)
return 1`);

/** The start journal in Redis. */
export class StartJournal {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Claims a start for this owner, unless it has gone further already; answers what stands there now. */
  async claim(taskId: string, owner: string): Promise<StartEntry> {
    const fields = await claimScript(this.#store, [this.#key(taskId)], [owner, retentionMs]);
    return toEntry(fields);
  }

  /** What stands there; undefined when nobody has claimed the start, or it was forgotten (30 days after its last step). */
  async entry(taskId: string): Promise<StartEntry | undefined> {
    const fields = Object.entries(await this.#store.redis.hgetall(this.#key(taskId))).flat();
    return fields.length === 0 ? undefined : toEntry(fields);
  }

  /** Asks for the one permission to send. The intent and the baseline are written in the same step. */
  async beginSending(
    taskId: string,
    owner: string,
    intent: { startByMs: number; baseline: string },
  ): Promise<Permission> {
    const answer = await sendScript(this.#store, [this.#key(taskId)], [owner, intent.startByMs, intent.baseline]);
    return answer === "permitted" || answer === "too-late" ? answer : "lost-claim";
  }

  /** Notes that the service accepted the start. */
  async answered(taskId: string): Promise<void> {
    await advanceScript(this.#store, [this.#key(taskId)], ["sending", "answered", "answeredAtMs"]);
  }

  /** Takes the permission back: the request surely did not reach the service. The task may claim and send again. */
  async notSent(taskId: string): Promise<void> {
    await advanceScript(this.#store, [this.#key(taskId)], ["sending", "claimed", "notSentAtMs"]);
  }

  /** Notes why the answer is missing. The first note stays; answers the one that stands. */
  async answerLost(taskId: string, loss: AnswerLoss): Promise<AnswerLoss> {
    return toLoss(await noteScript(this.#store, [this.#key(taskId)], ["lost", JSON.stringify(loss)]));
  }

  /** Notes that nothing stands in the way of the start any more; answers when that was so first. */
  async ready(taskId: string): Promise<number> {
    return Number(await noteScript(this.#store, [this.#key(taskId)], ["readyAtMs", ""]));
  }

  /** Takes that back: so much time has passed that what was known then is of no use. */
  async notReady(taskId: string): Promise<void> {
    await this.#store.redis.hdel(this.#key(taskId), "readyAtMs");
  }

  /** Notes that the run was seen finished now; answers when that was seen first. */
  async finishSeen(taskId: string): Promise<number> {
    return Number(await noteScript(this.#store, [this.#key(taskId)], ["finishSeenAtMs", ""]));
  }

  /** Notes that the outcome is recorded: nothing may happen any more. */
  async settle(taskId: string): Promise<void> {
    const { redis } = this.#store;
    await redis.hset(this.#key(taskId), "v", "1", "state", "settled");
    await redis.pexpire(this.#key(taskId), retentionMs);
  }

  /** Notes that other tasks stand for this one. */
  async expanded(taskId: string, into: readonly string[]): Promise<void> {
    await this.#store.redis.hset(this.#key(taskId), "expanded", JSON.stringify(into));
    await this.settle(taskId);
  }

  /** The ids of the tasks that stand for this one; undefined when there are none, or not yet. */
  async expandedInto(taskId: string): Promise<string[] | undefined> {
    const text = await this.#store.redis.hget(this.#key(taskId), "expanded");
    if (text === null) return undefined;
    const ids: unknown = JSON.parse(text);
    return Array.isArray(ids) ? ids.map(String) : undefined;
  }

  #key(taskId: string): string {
    return this.#store.key("start", taskId);
  }
}

function toEntry(fields: unknown): StartEntry {
  const entry = new Map<string, string>();
  const flat = Array.isArray(fields) ? fields.map(String) : [];
  for (let index = 0; index + 1 < flat.length; index += 2) entry.set(flat[index] ?? "", flat[index + 1] ?? "");
  const instant = (name: string) => (entry.has(name) ? Number(entry.get(name)) : undefined);
  return {
    state: toState(entry.get("state")),
    owner: entry.get("owner") ?? "",
    claimedAtMs: instant("claimedAtMs") ?? 0,
    sentAtMs: instant("sentAtMs"),
    answeredAtMs: instant("answeredAtMs"),
    baseline: entry.get("baseline"),
    lost: entry.has("lost") ? toLoss(entry.get("lost")) : undefined,
    finishSeenAtMs: instant("finishSeenAtMs"),
  };
}

function toLoss(text: unknown): AnswerLoss {
  const loss: unknown = JSON.parse(String(text));
  if (!isJsonObject(loss)) return { kind: "unknown", detail: "" };
  const { kind, detail } = loss;
  return { kind: kind === "server" || kind === "crash" ? kind : "unknown", detail: String(detail) };
}

function toState(text: string | undefined): StartState {
  switch (text) {
    case "claimed":
    case "answered":
    case "settled":
      return text;
    default:
      // An unknown state (a newer version's) is treated as the one that never permits a request.
      return "sending";
  }
}
