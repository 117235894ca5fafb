// The history: one outcome per task, the newest of each policy. tasks/recorder.ts writes it, the
// command line reads it.
//
// A policy has a hash of its outcomes, an index of them by time, and an index of the failed ones
// (failed-tasks.ts). `outcomes-kept` holds the policies with outcomes and since when theirs are
// complete. The step that drops an outcome moves that instant.
import { type OutcomeLimits, outcomeLimitsDefault } from "../config/settings.ts";
import { type Outcome, parseOutcome } from "../model/outcome.ts";
import { replayable, weightOf } from "../model/outcome-weight.ts";
import type { Task } from "../model/task.ts";
import { countOutcomeLua } from "./chain-scripts.ts";
import { feedWaitersKey } from "./feed-keys.ts";
import { lastSuccessKey, noteSuccessLua, successKeptMs } from "./last-successes.ts";
import { leaseKey, releaseLua } from "./leases.ts";
import { noteOutcomeLua } from "./notify-scripts.ts";
import { notifyStreamKey } from "./notify-store.ts";
import { type PollNote, pollMemoryKey, pollMemoryLua, pollNoteArgs } from "./poll-store.ts";
import { createScript, type Store } from "./redis.ts";
import { tallyKey } from "./slot-ledger.ts";
import { entryKey, inFlightKey, type StartState } from "./start-entry.ts";
import { entryRetentionMs } from "./start-journal.ts";
import { noteTroublesLua, troubleChanges, troublesKey } from "./troubles.ts";

/**
 * How long the outcomes of a removed policy stay: longer than its slot records, which `audit`
 * compares with them when the policy comes back.
 */
const removedKeptMs = 32 * 86_400_000;

/** Outcomes read by one command, and commands sent at a time. */
const batchMax = 500;

/** The lists that a start may wait for. */
const waitedFor = ["activities", "conflictDetails", "approvals"] as const;

/** How long the recorder has to publish an outcome before another worker may. */
const publishWithinMs = 5_000;

const now = `local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)`;

/**
 * An ended start may still leave an activity. It stays in flight while its request is younger than
 * `endedKeptMs`, counted back from the oldest open start or from now; at most `endedKeptMsMax`.
 */
const endedKeptMs = 60_000;
const endedKeptMsMax = 600_000;

// A start that ends before its activity was seen stays among those in flight, marked "e": else
// another start would get its activity. So does a start that ends beside others, which may have got
// its own.
const leaveFlightLua = `local flight, since, isAlone, sent = redis.call('HGETALL', KEYS[5]), now, true, nil
  for i = 2, #flight, 2 do
    if flight[i - 1] == ARGV[1] then
      sent = flight[i]
    elseif string.sub(flight[i], 1, 1) ~= 'e' then
      isAlone, since = false, math.min(since, tonumber(string.match(flight[i], '%d+')))
    end
  end
  local isSeen = ARGV[10] ~= 'accepted' and ARGV[10] ~= 'unknown' and ARGV[10] ~= 'timed-out' and ARGV[10] ~= 'blocked'
  local isNothing = ARGV[10] == 'not-started' or ARGV[10] == 'skipped' or ARGV[10] == 'missed'
  if sent and not isNothing and not (isSeen and isAlone) then
    redis.call('HSET', KEYS[5], ARGV[1], 'e' .. string.match(sent, '%d+') .. '+')
  elseif sent then
    redis.call('HDEL', KEYS[5], ARGV[1])
  end
  since = math.max(since - ${endedKeptMs}, now - ${endedKeptMsMax})
  for i = 2, #flight, 2 do
    local isOther, isEnded = flight[i - 1] ~= ARGV[1], string.sub(flight[i], 1, 1) == 'e'
    if isOther and isEnded and tonumber(string.sub(flight[i], 2, -2)) < since then redis.call('HDEL', KEYS[5], flight[i - 1]) end
  end`;

/**
 * Outcomes between two trims of a policy: a trim at each outcome would cost each start. So Redis
 * keeps up to 15 more.
 */
const trimEvery = 16;

// Drops what is too many or older than `oldest`, at most a thousand outcomes in one step.
const trimLua = `
local function trim(outcomes, index, untold, kept, failed, policy, most, oldest)
  local count = redis.call('ZCARD', index)
  if count == 1 then redis.call('HSETNX', kept, policy, '') end
  if count % ${trimEvery} ~= 0 then return end
  local extra = math.max(count - tonumber(most), redis.call('ZCOUNT', index, '-inf', '(' .. oldest))
  if extra <= 0 then return end
  local old, names = redis.call('ZPOPMIN', index, math.min(extra, 1000)), {}
  for i = 1, #old, 2 do names[#names + 1] = old[i] end
  redis.call('HDEL', outcomes, unpack(names))
  redis.call('ZREM', untold, unpack(names))
  local newest, since = old[#old], redis.call('HGET', kept, policy)
  redis.call('ZREMRANGEBYSCORE', failed, '-inf', newest)
  if (tonumber(since) or 0) < tonumber(newest) then redis.call('HSET', kept, policy, newest) end
end`;

// Records an outcome and settles its start.
// KEYS: 1 outcomes of the policy, 2 their index, 3 unpublished, 4 journal entry, 5 starts in
// flight, 6 lease, 7 last success of the policy, 8 to 10 waiters of its three feeds, 11
// outcomes-kept, 12 failed tasks of the policy, 13 troubles; from 14 on the keys that ARGV[13]
// names.
// ARGV: 1 task, 2 outcome, 3 end, 4 outcomes to keep, 5 and 6 the state and owner that the journal
// must show ('' for any), 7 retention of the entry, 8 time to publish, 9 target, 10 status, 11 '1'
// when the outcome brings the answer, 12 retention of a last success ('' when this is none), 13 a
// letter for each further key (t join counter, s event stream, p the policy's polls), 14 policy, 15
// place in the index, 16 place before which an outcome is too old, 17 '1' when doing it over may
// help, 18 changes of the troubles, 19 on: the arguments of a poll (poll-store.ts).
const recordScript =
  createScript(`${countOutcomeLua} ${releaseLua} ${noteSuccessLua} ${noteOutcomeLua} ${pollMemoryLua} ${noteTroublesLua} ${trimLua}
local further, place = {}, 13
for letter in string.gmatch(ARGV[13], '.') do
  place = place + 1
  further[letter] = KEYS[place]
end
${now}
if further.p and pollMoved(further.p, 19) and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 'superseded' end
local function letGo()
  release(KEYS[6], ARGV[1])
  for feed = 8, 10 do redis.call('ZREM', KEYS[feed], ARGV[1]) end
end
local entry = redis.call('HMGET', KEYS[4], 'state', 'owner')
local answered
if ARGV[11] == '1' and (entry[1] == 'sending' or not entry[1]) then
  -- The answer is true even if the worker had no time to note it, or Redis forgot the request.
  if not entry[1] then redis.call('HSET', KEYS[4], 'v', 1) end
  entry[1], answered = 'answered', math.min(now, tonumber(ARGV[3]))
end
if entry[1] == 'settled' and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  letGo()
  return 'already-recorded'
end
if entry[1] ~= 'settled' and ARGV[5] ~= '' and (entry[1] ~= ARGV[5] or (ARGV[6] ~= '' and entry[2] ~= ARGV[6])) then
  return 'superseded'
end
letGo()
if entry[1] then
  if answered then redis.call('HSET', KEYS[4], 'state', 'settled', 'answeredAtMs', answered) else redis.call('HSET', KEYS[4], 'state', 'settled') end
  redis.call('PEXPIRE', KEYS[4], ARGV[7])
  ${leaveFlightLua}
end
if redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2]) == 0 then return 'already-recorded' end
if further.p then notePoll(further.p, 19) end
redis.call('ZADD', KEYS[3], now + ARGV[8], ARGV[1])
if ARGV[12] ~= '' then noteSuccess(KEYS[7], tonumber(ARGV[3]), ARGV[12]) end
noteTroubles(KEYS[13], tonumber(ARGV[3]), ARGV[18])
local isAwaited = further.t and redis.call('EXISTS', further.t) == 1
if isAwaited then note(further.t, ARGV[9], ARGV[10], ARGV[3]) end
-- The notifier reports a broken stream. It must not change how a task ends.
if further.s then pcall(tell, further.s, ARGV[2]) end
redis.call('ZADD', KEYS[2], ARGV[15], ARGV[1])
if ARGV[17] == '1' then redis.call('ZADD', KEYS[12], ARGV[15], ARGV[1]) end
trim(KEYS[1], KEYS[2], KEYS[3], KEYS[11], KEYS[12], ARGV[14], ARGV[4], ARGV[16])
return isAwaited and 'recorded-awaited' or 'recorded'`);

// Records an outcome and nothing else.
// KEYS: outcomes, index, outcomes-kept, failed tasks.
// ARGV: task, outcome, place in the index, policy, '1' when doing it over may help.
const aloneScript = createScript(`
if redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2]) == 0 then return 0 end
redis.call('HSETNX', KEYS[3], ARGV[4], '')
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
if ARGV[5] == '1' then redis.call('ZADD', KEYS[4], ARGV[3], ARGV[1]) end
return 1`);

// Claims an unpublished outcome.
// KEYS: outcomes, unpublished.
// ARGV: task, time to publish.
// Answers the outcome to publish, the instant until which another worker may publish it, or nothing
// when it is published.
const claimUnpublishedScript = createScript(`${now}
local until_ = redis.call('ZSCORE', KEYS[2], ARGV[1])
if not until_ then return false end
if tonumber(until_) > now then return tonumber(until_) end
redis.call('ZADD', KEYS[2], now + ARGV[2], ARGV[1])
return redis.call('HGET', KEYS[1], ARGV[1])`);

// Gives the outcomes of removed policies an end, and keeps those of known ones.
// KEYS: outcomes-kept, then outcomes, index and failed tasks of each policy.
// ARGV: how long those of a removed policy stay, the number of known policies, the known policies,
// the others.
const tidyScript = createScript(`
for i = 3, #ARGV do
  local isGone = redis.call('EXISTS', KEYS[3 * i - 6]) == 0
  for n = 3 * i - 7, 3 * i - 5 do
    if i - 2 <= tonumber(ARGV[2]) then
      redis.call('PERSIST', KEYS[n])
    elseif redis.call('PTTL', KEYS[n]) == -1 then
      redis.call('PEXPIRE', KEYS[n], ARGV[1])
    end
  end
  if isGone then redis.call('HDEL', KEYS[1], ARGV[i]) end
end
return 'ok'`);

/** The name of an outcome: its task. */
export type OutcomeName = Pick<Task, "policy" | "id">;

/** Options of a history. */
export interface HistoryOptions {
  /**
   * Whether sinks want a policy's outcomes: then the same step adds them to the notifier's stream.
   */
  readonly isTold?: (policy: string) => boolean;
  readonly limits?: OutcomeLimits;
}

/**
 * The journal state, and the claimant where that matters, without which an outcome is superseded.
 */
export interface SettleFrom {
  readonly state: Exclude<StartState, "settled">;
  readonly owner?: string;
  /**
   * The outcome is the service's answer: the same step answers a start that is still `sending`, or
   * that Redis has forgotten. Only with `state: "answered"` and no owner.
   */
  readonly isAnswer?: true;
}

/**
 * What became of an outcome. `recorded`: publish it; no chain waits for its slot.
 * `recorded-awaited`: the same, and a chain waits. `already-recorded`: the task has one, or is over
 * without one. `superseded`: the start, or another poll, went further than this outcome knows, so
 * it was not recorded.
 */
export type Recorded = "recorded" | "recorded-awaited" | "already-recorded" | "superseded";

/** The history in Redis. */
export class History {
  readonly #store: Store;
  readonly #isTold: (policy: string) => boolean;
  readonly #limits: OutcomeLimits;

  constructor(store: Store, { isTold = () => false, limits = outcomeLimitsDefault }: HistoryOptions = {}) {
    this.#store = store;
    this.#isTold = isTold;
    this.#limits = limits;
  }

  /**
   * Writes an outcome in one step: settles the start, releases the lease, ends the waiting for
   * feeds, notes a success and keeps the note of a poll. Changes nothing when the task has an
   * outcome, its start has left `from`, or another poll of the policy was recorded meanwhile.
   */
  async record(outcome: Outcome, from?: SettleFrom, poll?: PollNote): Promise<Recorded> {
    const { taskId, policy, target, status, origin } = outcome;
    const store = this.#store;
    const placeMs = outcomePlaceMs(outcome);
    // No chain follows a run by hand, even at the instant of a slot.
    const counter = origin === "schedule" ? [tallyKey(store, policy, Date.parse(outcome.slot))] : [];
    const events = this.#isTold(policy) ? [notifyStreamKey(store)] : [];
    const polls = poll === undefined ? [] : [pollMemoryKey(store, policy)];
    const journal = [entryKey(store, taskId), inFlightKey(store, outcome), leaseKey(store, outcome)];
    const waited = waitedFor.map((list) => feedWaitersKey(store, { ...outcome, list }));
    const answer = await recordScript(
      store,
      [
        ...[outcomesKey(store, policy), indexKey(store, policy), store.key("untold"), ...journal],
        ...[lastSuccessKey(store, policy), ...waited, store.key("outcomes-kept"), failedKey(store, policy)],
        ...[troublesKey(store), ...counter, ...events, ...polls],
      ],
      [
        ...[taskId, JSON.stringify(outcome), Date.parse(outcome.finishedAt), this.#limits.count],
        ...[from?.state ?? "", from?.owner ?? "", entryRetentionMs, publishWithinMs],
        ...[target, status, from?.isAnswer === true ? 1 : 0],
        weightOf(outcome) === "good" ? successKeptMs : "",
        `${counter.length > 0 ? "t" : ""}${events.length > 0 ? "s" : ""}${polls.length > 0 ? "p" : ""}`,
        ...[policy, placeMs, placeMs - this.#limits.forMs, replayable[status] === undefined ? 0 : 1],
        troubleChanges(outcome),
        ...(poll === undefined ? [] : pollNoteArgs(poll)),
      ],
    );
    return answer === "recorded" || answer === "recorded-awaited" || answer === "superseded"
      ? answer
      : "already-recorded";
  }

  /** Writes an outcome alone, unless the task has one. Answers whether it did. */
  async recordAlone(outcome: Outcome): Promise<boolean> {
    const { taskId, policy, status } = outcome;
    const store = this.#store;
    const keys = [
      outcomesKey(store, policy),
      indexKey(store, policy),
      store.key("outcomes-kept"),
      failedKey(store, policy),
    ];
    const isReplayable = replayable[status] === undefined ? 0 : 1;
    const args = [taskId, JSON.stringify(outcome), outcomePlaceMs(outcome), policy, isReplayable];
    return (await aloneScript(store, keys, args)) === 1;
  }

  /** Notes that these outcomes are published. */
  async told(taskIds: readonly string[]): Promise<void> {
    if (taskIds.length > 0) await this.#store.redis.zrem(this.#store.key("untold"), ...taskIds);
  }

  /**
   * Claims an outcome whose recorder died before publishing it. Answers an instant while that
   * recorder may still publish it; undefined when it is published.
   */
  async untold({ policy, id }: OutcomeName): Promise<Outcome | number | undefined> {
    const keys = [outcomesKey(this.#store, policy), this.#store.key("untold")];
    const answer = await claimUnpublishedScript(this.#store, keys, [id, publishWithinMs]);
    if (typeof answer === "number") return answer;
    return typeof answer === "string" ? parseOutcome(JSON.parse(answer)) : undefined;
  }

  /** Reads the outcome of a task; undefined when it has none, or it was dropped. */
  async outcome({ policy, id }: OutcomeName): Promise<Outcome | undefined> {
    return (await this.outcomes(policy, [id])).get(id);
  }

  /** Reads the outcomes of these tasks of a policy, by task id. */
  async outcomes(policy: string, taskIds: readonly string[]): Promise<Map<string, Outcome>> {
    const found = new Map<string, Outcome>();
    for (const batch of batchesOf(taskIds)) {
      for (const text of await this.#store.redis.hmget(outcomesKey(this.#store, policy), ...batch)) {
        if (text === null) continue;
        const outcome = parseOutcome(JSON.parse(text));
        found.set(outcome.taskId, outcome);
      }
    }
    return found;
  }

  /**
   * Outcomes of slots after this instant (milliseconds UTC) are complete; undefined: Redis dropped
   * none. Read it after the outcomes: one dropped in between would look as if it had never been
   * there.
   */
  async keptSinceMs(policy: string): Promise<number | undefined> {
    return toSince((await this.#store.redis.hget(this.#store.key("outcomes-kept"), policy)) ?? "");
  }

  /** The same for all policies with outcomes. */
  async keptSince(): Promise<ReadonlyMap<string, number | undefined>> {
    const kept = await this.#store.redis.hgetall(this.#store.key("outcomes-kept"));
    return new Map(Object.entries(kept).map(([policy, since]) => [policy, toSince(since)]));
  }

  /** Returns at most `count` outcomes of one policy or all, newest first. */
  async newest(count: number, policy?: string): Promise<Outcome[]> {
    const policies = policy === undefined ? [...(await this.keptSince()).keys()] : [policy];
    return this.#read(await this.#newestPlaces(count, policies, indexKey));
  }

  /** Returns at most `count` failed tasks of all policies, newest first. */
  async newestFailed(count: number): Promise<Outcome[]> {
    return this.#read(await this.#newestPlaces(count, [...(await this.keptSince()).keys()], failedKey));
  }

  /** Returns the places of `size` outcomes of a policy, newest first, after the `from` newest. */
  places(policy: string, from: number, size: number): Promise<readonly OutcomePlace[]> {
    return this.#page(indexKey, { policy, from, size });
  }

  /** Reads outcomes; those dropped since their place was read are left out. */
  async #read(places: readonly OutcomePlace[]): Promise<Outcome[]> {
    const outcomes = new Map<string, Outcome>();
    const byPolicy = [...Map.groupBy(places, (place) => place.policy)];
    for (const batch of batchesOf(byPolicy)) {
      const read = batch.map(([name, group]) =>
        this.outcomes(
          name,
          group.map(({ id }) => id),
        ),
      );
      for (const group of await Promise.all(read)) for (const [id, outcome] of group) outcomes.set(id, outcome);
    }
    return places.flatMap(({ id }) => outcomes.get(id) ?? []);
  }

  /** Lets outcomes of unknown policies expire. A policy that is known again keeps its own. */
  async tidy(known: ReadonlySet<string>): Promise<void> {
    const policies = [...(await this.keptSince()).keys()];
    for (const batch of batchesOf(policies)) {
      const ordered = batch.toSorted((a, b) => Number(known.has(b)) - Number(known.has(a)));
      const keys = ordered.flatMap((policy) =>
        [outcomesKey, indexKey, failedKey].map((keyOf) => keyOf(this.#store, policy)),
      );
      const count = ordered.filter((policy) => known.has(policy)).length;
      await tidyScript(this.#store, [this.#store.key("outcomes-kept"), ...keys], [removedKeptMs, count, ...ordered]);
    }
  }

  /**
   * Finds the newest outcomes of these policies. Each round reads a longer page of each index that
   * may still hold one of them: far into a busy policy, once into ten thousand quiet ones.
   */
  async #newestPlaces(count: number, policies: readonly string[], keyOf: KeyOf): Promise<readonly OutcomePlace[]> {
    // Indexes move during the reading, so an outcome may turn up twice.
    const found = new Map<string, OutcomePlace>();
    let newest: readonly OutcomePlace[] = [];
    let open: readonly OpenIndex[] = policies.map((policy) => ({ policy, read: 0 }));
    let size = policies.length === 1 ? batchMax : 1;
    while (open.length > 0) {
      const pages: (readonly OutcomePlace[])[] = [];
      for (const batch of batchesOf(open)) {
        pages.push(
          ...(await Promise.all(batch.map(({ policy, read: from }) => this.#page(keyOf, { policy, from, size })))),
        );
      }
      for (const place of pages.flat()) found.set(place.id, place);
      newest = [...found.values()].toSorted((a, b) => b.atMs - a.atMs).slice(0, count);
      const lastMs = newest.length < count ? Number.NEGATIVE_INFINITY : (newest.at(-1)?.atMs ?? 0);
      open = open.flatMap(({ policy, read }, index) => {
        const page = pages[index] ?? [];
        const mayGoOn = page.length === size && (page.at(-1)?.atMs ?? 0) > lastMs;
        return mayGoOn ? [{ policy, read: read + size }] : [];
      });
      size = Math.min(size * 8, batchMax);
    }
    return newest;
  }

  async #page(
    keyOf: KeyOf,
    { policy, from, size }: { readonly policy: string; readonly from: number; readonly size: number },
  ): Promise<readonly OutcomePlace[]> {
    const key = keyOf(this.#store, policy);
    const flat = await this.#store.redis.zrevrange(key, from, from + size - 1, "WITHSCORES");
    const places: OutcomePlace[] = [];
    for (let at = 0; at + 1 < flat.length; at += 2)
      places.push({ policy, id: flat[at] ?? "", atMs: Number(flat[at + 1]) });
    return places;
  }
}

/** The place of an outcome in its index. */
export interface OutcomePlace {
  readonly policy: string;
  readonly id: string;
  readonly atMs: number;
}

/**
 * The instant of an outcome in its index. With a late clock an outcome ends before its slot, and
 * `audit` compares slots with what is kept: so the later instant counts.
 */
export function outcomePlaceMs({ slot, finishedAt }: Pick<Outcome, "slot" | "finishedAt">): number {
  return Math.max(Date.parse(slot), Date.parse(finishedAt));
}

type KeyOf = (store: Pick<Store, "key">, policy: string) => string;

/** How far an index has been read. */
interface OpenIndex {
  readonly policy: string;
  readonly read: number;
}

/** Key of a policy's outcomes, by task id. */
function outcomesKey({ key }: Pick<Store, "key">, policy: string): string {
  return key("outcomes", policy);
}

function indexKey({ key }: Pick<Store, "key">, policy: string): string {
  return key("outcome-index", policy);
}

/** Key of a policy's failed tasks, ordered like its index. */
export function failedKey({ key }: Pick<Store, "key">, policy: string): string {
  return key("failed", policy);
}

function toSince(text: string): number | undefined {
  return text === "" ? undefined : Number(text);
}

function* batchesOf<Item>(items: readonly Item[]): Generator<readonly Item[], void, void> {
  for (let start = 0; start < items.length; start += batchMax) yield items.slice(start, start + batchMax);
}
