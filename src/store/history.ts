// The history: one outcome per task, newest first. Written by outcome/recorder.ts, read by the command line.
import { type Outcome, parseOutcome } from "../tasks/outcome.ts";
import { weightOf } from "../tasks/outcome-weight.ts";
import { tallyOutcomeLua } from "./chain-scripts.ts";
import { feedWaitersKey } from "./feed-keys.ts";
import { lastSuccessKey, noteSuccessLua, successKeptMs } from "./last-successes.ts";
import { leaseKey, releaseLua } from "./leases.ts";
import { type PollNote, pollMemoryKey, pollMemoryLua, pollNoteArgs } from "./poll-memories.ts";
import { createScript, type Store } from "./redis.ts";
import { tallyKey } from "./slot-ledger.ts";
import { entryKey, inFlightKey, type StartState } from "./start-entry.ts";
import { entryRetentionMs } from "./start-journal.ts";
import { tellingStreamKey } from "./telling-book.ts";
import { noteOutcomeLua } from "./telling-scripts.ts";

/** How many outcomes are kept; older ones are dropped. About 800 bytes each. */
const outcomesMax = 20_000;

/** The lists that a start may wait for. */
const waitedFor = ["activities", "conflictDetails", "approvals"] as const;

/** How long whoever recorded an outcome has for telling it, before somebody else does. */
const tellWithinMs = 5_000;

const now = `local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)`;

/** What ended that lately, or since a start began that is in flight still, may yet leave an activity; no longer than the second. */
const endedKeptMs = 60_000;
const endedKeptMsMax = 600_000;

// A start that ended before its activity was seen stays beside those in flight, as "e": else its activity would be taken for another's. So does
// one that ended while others go on, which may have been given theirs: else what is left would be surely theirs.
const leaveFlightLua = `local sent = redis.call('HGET', KEYS[5], ARGV[1])
  redis.call('HDEL', KEYS[5], ARGV[1])
  local flight, since, isAlone = redis.call('HGETALL', KEYS[5]), now, true
  for i = 2, #flight, 2 do
    if string.sub(flight[i], 1, 1) ~= 'e' then
      isAlone, since = false, math.min(since, tonumber(string.match(flight[i], '%d+')))
    end
  end
  local isSeen = ARGV[10] ~= 'accepted' and ARGV[10] ~= 'unknown' and ARGV[10] ~= 'timed-out' and ARGV[10] ~= 'blocked'
  local isNothing = ARGV[10] == 'not-started' or ARGV[10] == 'skipped' or ARGV[10] == 'missed'
  if sent and not isNothing and not (isSeen and isAlone) then
    redis.call('HSET', KEYS[5], ARGV[1], 'e' .. string.match(sent, '%d+') .. '+')
  end
  since = math.max(since - ${endedKeptMs}, now - ${endedKeptMsMax})
  for i = 2, #flight, 2 do
    if string.sub(flight[i], 1, 1) == 'e' and tonumber(string.sub(flight[i], 2, -2)) < since then redis.call('HDEL', KEYS[5], flight[i - 1]) end
  end`;

// KEYS: outcomes, index, untold, journal entry, starts in flight, its lease, the last success of its policy, who waits for its three feeds, then those that ARGV[13] names.
// ARGV: task, outcome, when it ended, how many are kept, the state and owner that the journal must show ('' for any), its retention, time for
// telling, target, status, whether the outcome brings the answer, how long a last success is kept ('' for an outcome that is none), a letter for
// each further key: t the tally of its slot, if it can have one, s the events to be told, if anybody is told of its policy, p its policy's polls; then the arguments of a poll (poll-memories.ts).
const recordScript = createScript(`${tallyOutcomeLua} ${releaseLua} ${noteSuccessLua} ${noteOutcomeLua} ${pollMemoryLua}
local further, place = {}, 10
for letter in string.gmatch(ARGV[13], '.') do
  place = place + 1
  further[letter] = KEYS[place]
end
${now}
if further.p and pollMoved(further.p, 14) and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 'moved-on' end
local function letGo()
  release(KEYS[6], ARGV[1])
  for feed = 8, 10 do redis.call('ZREM', KEYS[feed], ARGV[1]) end
end
local entry = redis.call('HMGET', KEYS[4], 'state', 'owner')
local answered
if ARGV[11] == '1' and (entry[1] == 'sending' or not entry[1]) then
  -- The answer came before anybody could say when all was over; or Redis has forgotten the request, which is true all the same.
  if not entry[1] then redis.call('HSET', KEYS[4], 'v', 1) end
  entry[1], answered = 'answered', math.min(now, tonumber(ARGV[3]))
end
if entry[1] == 'settled' and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  letGo()
  return 'over'
end
if entry[1] ~= 'settled' and ARGV[5] ~= '' and (entry[1] ~= ARGV[5] or (ARGV[6] ~= '' and entry[2] ~= ARGV[6])) then
  return 'moved-on'
end
letGo()
if entry[1] then
  if answered then redis.call('HSET', KEYS[4], 'state', 'settled', 'answeredAtMs', answered) else redis.call('HSET', KEYS[4], 'state', 'settled') end
  redis.call('PEXPIRE', KEYS[4], ARGV[7])
  ${leaveFlightLua}
end
if redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2]) == 0 then return 'stands' end
if further.p then notePoll(further.p, 14) end
redis.call('ZADD', KEYS[3], now + ARGV[8], ARGV[1])
if ARGV[12] ~= '' then noteSuccess(KEYS[7], tonumber(ARGV[3]), ARGV[12]) end
local isAwaited = further.t and redis.call('EXISTS', further.t) == 1
if isAwaited then note(further.t, ARGV[9], ARGV[10], ARGV[3]) end
if further.s then tell(further.s, ARGV[2]) end
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
local extra = redis.call('ZCARD', KEYS[2]) - tonumber(ARGV[4])
if extra > 0 then
  local old = redis.call('ZPOPMIN', KEYS[2], extra)
  for i = 1, #old, 2 do redis.call('HDEL', KEYS[1], old[i]) redis.call('ZREM', KEYS[3], old[i]) end
end
return isAwaited and 'recorded-awaited' or 'recorded'`);

// KEYS: outcomes, untold. ARGV: task, time for telling. Answers nothing when it is told, when somebody else has time for it until then
// (an instant), or the outcome to tell.
const untoldScript = createScript(`${now}
local until_ = redis.call('ZSCORE', KEYS[2], ARGV[1])
if not until_ then return false end
if tonumber(until_) > now then return tonumber(until_) end
redis.call('ZADD', KEYS[2], now + ARGV[2], ARGV[1])
return redis.call('HGET', KEYS[1], ARGV[1])`);

/** What the start journal must show for an outcome to be true still: the state, and who claimed it where that matters. */
export interface SettleFrom {
  readonly state: Exclude<StartState, "settled">;
  readonly owner?: string;
  /** The service's answer is the outcome: a start that is still `sending`, or that Redis has forgotten, is answered in the same step. With `state: "answered"` and no owner only. */
  readonly isAnswer?: true;
}

/**
 * What became of an outcome. `recorded`: it stands, tell it; no chain waits for its slot. `recorded-awaited`: the same, and one does.
 * `stands`: the task has one already, or is over without one. `moved-on`: the start, or the memory of a
 * poll, has gone further than this outcome knows, so it is not true and was not recorded.
 */
export type Recorded = "recorded" | "recorded-awaited" | "stands" | "moved-on";

/** The history in Redis. */
export class History {
  readonly #store: Store;
  readonly #keys: readonly string[];
  readonly #isTold: (policy: string) => boolean;

  /** @param isTold whether somebody wants to hear of a policy's outcomes: then they are noted for the teller in the same step. */
  constructor(store: Store, isTold: (policy: string) => boolean = () => false) {
    this.#store = store;
    this.#keys = ["outcomes", "outcome-index", "untold"].map((name) => store.key(name));
    this.#isTold = isTold;
  }

  /**
   * Writes an outcome, settles the task's start, gives its lease back, waits for no feed any more, notes a success of its policy and keeps what a poll leaves in one
   * step: unless it has one already, or its start has moved on from `from`, or another poll of its policy was recorded meanwhile.
   */
  async record(outcome: Outcome, from?: SettleFrom, poll?: PollNote): Promise<Recorded> {
    const { taskId, policy, target, status, origin, finishedAt } = outcome;
    const store = this.#store;
    // No chain follows what somebody runs by hand, even at the very instant of a slot.
    const tally = origin === "schedule" ? [tallyKey(store, policy, Date.parse(outcome.slot))] : [];
    const events = this.#isTold(policy) ? [tellingStreamKey(store)] : [];
    const polls = poll === undefined ? [] : [pollMemoryKey(store, policy)];
    const journal = [entryKey(store, taskId), inFlightKey(store, outcome), leaseKey(store, outcome)];
    const waited = waitedFor.map((list) => feedWaitersKey(store, { ...outcome, list }));
    const answer = await recordScript(
      store,
      [...this.#keys, ...journal, lastSuccessKey(store, policy), ...waited, ...tally, ...events, ...polls],
      [
        ...[taskId, JSON.stringify(outcome), Date.parse(finishedAt), outcomesMax],
        ...[from?.state ?? "", from?.owner ?? "", entryRetentionMs, tellWithinMs],
        ...[target, status, from?.isAnswer === true ? 1 : 0],
        weightOf(outcome) === "good" ? successKeptMs : "",
        `${tally.length > 0 ? "t" : ""}${events.length > 0 ? "s" : ""}${polls.length > 0 ? "p" : ""}`,
        ...(poll === undefined ? [] : pollNoteArgs(poll)),
      ],
    );
    return answer === "recorded" || answer === "recorded-awaited" || answer === "moved-on" ? answer : "stands";
  }

  /** Notes that these outcomes were told to the world. */
  async told(taskIds: readonly string[]): Promise<void> {
    if (taskIds.length > 0) await this.#store.redis.zrem(this.#store.key("untold"), ...taskIds);
  }

  /** The outcome of a task whose recorder died before it told it; an instant while it may still do so; undefined when all is told. */
  async untold(taskId: string): Promise<Outcome | number | undefined> {
    const { key } = this.#store;
    const answer = await untoldScript(this.#store, [key("outcomes"), key("untold")], [taskId, tellWithinMs]);
    if (typeof answer === "number") return answer;
    return typeof answer === "string" ? parseOutcome(JSON.parse(answer)) : undefined;
  }

  /** The outcome of a task, if it has one. */
  async outcome(taskId: string): Promise<Outcome | undefined> {
    const text = await this.#store.redis.hget(this.#store.key("outcomes"), taskId);
    return text === null ? undefined : parseOutcome(JSON.parse(text));
  }

  /** The outcomes that these tasks have, by task id. */
  async outcomes(taskIds: readonly string[]): Promise<Map<string, Outcome>> {
    const found = new Map<string, Outcome>();
    const step = 500;
    for (let from = 0; from < taskIds.length; from += step) {
      const texts = await this.#store.redis.hmget(this.#store.key("outcomes"), ...taskIds.slice(from, from + step));
      for (const text of texts) {
        if (text === null) continue;
        const outcome = parseOutcome(JSON.parse(text));
        found.set(outcome.taskId, outcome);
      }
    }
    return found;
  }

  /** Since when (milliseconds UTC) every outcome is here; undefined when none was ever dropped. */
  async keptSinceMs(): Promise<number | undefined> {
    const { redis, key } = this.#store;
    if ((await redis.zcard(key("outcome-index"))) < outcomesMax) return undefined;
    const [, score] = await redis.zrange(key("outcome-index"), "0", "0", "WITHSCORES");
    return score === undefined ? undefined : Number(score);
  }

  /** The newest outcomes, newest first, of all policies or one; at most `count`. */
  async newest(count: number, policy?: string): Promise<Outcome[]> {
    const found: Outcome[] = [];
    const step = 500;
    for (let from = 0; from < outcomesMax && found.length < count; from += step) {
      const page = await this.#page(from, step);
      found.push(...page.filter((outcome) => policy === undefined || outcome.policy === policy));
      if (page.length < step) break;
    }
    return found.slice(0, count);
  }

  async #page(from: number, size: number): Promise<Outcome[]> {
    const { redis, key } = this.#store;
    const ids = await redis.zrevrange(key("outcome-index"), from, from + size - 1);
    if (ids.length === 0) return [];
    const texts = await redis.hmget(key("outcomes"), ...ids);
    return texts.filter((text) => text !== null).map((text) => parseOutcome(JSON.parse(text)));
  }
}
