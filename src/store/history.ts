// The history: one outcome a task; of each policy the newest are kept. Each policy has a hash of
// outcomes and an index by time; one index has those of all policies that may be done over (the
// failed list). `outcomes-kept` tells since when they are complete.
import { type OutcomeLimits, outcomeLimitsDefault } from "../config/settings.ts";
import { always, type Interval } from "../core/instant.ts";
import { awaitedLists } from "../model/feed.ts";
import { isReplayable, type Outcome, parseOutcome, weightOf } from "../model/outcome.ts";
import { isByHand, isFromMasks, parseTaskId, type Task } from "../model/task.ts";
import { outcomeDay } from "./day-summaries.ts";
import { feedWaitersKey } from "./feed-store.ts";
import { leaseKey } from "./leases.ts";
import { notifyStreamKey } from "./notify-store.ts";
import { changedPoliciesKey, lastSuccessKey, policyStateKey, stateArguments, successKeptMs } from "./policy-states.ts";
import { type PollNote, pollMemoryKey, pollNoteArgs } from "./poll-store.ts";
import { redisTimeMs, type Store, scanPairs } from "./redis.ts";
import { asFlag, asList, asNothing, asOptional, asText, asWord, batchesOf, createScript, pairsOf } from "./script.ts";
import { joinCounterKey } from "./slot-ledger.ts";
import { entryKey, inFlightKey, type StartState } from "./start-entry.ts";
import { entryRetentionMs } from "./start-journal.ts";
import { troubleChanges, troublesKey } from "./troubles.ts";

/** Longer than slot records, which `audit` compares with outcomes when a policy comes back. */
const removedKeptMs = 32 * 86_400_000;
/** A failed job is kept a day less (queue/queues.ts). */
const unpublishedKeptMs = 8 * 86_400_000;

/** Outcomes read by one command, and commands sent at a time. */
const batchMax = 500;
/** Half a millisecond of Redis at 500: starts wait for that long. */
const scanCount = 100;

/** From so many tasks on, one reading of all kept names finds them, unless there are too many. */
const [manyMin, keptNamesMax] = [100, 2_000];

/** How long the recorder has to publish an outcome before another worker may. */
const publishWithinMs = 5_000;

const recordScript = createScript(
  "outcome/record",
  asWord("recorded", "recorded-awaited", "already-recorded", "superseded"),
);
const recordAloneScript = createScript("outcome/record-alone", asFlag);
const claimUnpublishedScript = createScript(
  "outcome/claim-unpublished",
  asOptional((answer) => (typeof answer === "number" ? answer : parseOutcome(JSON.parse(asText(answer))))),
);
const whichHaveScript = createScript("outcome/which-have", asList);
const tidyScript = createScript("outcome/tidy", asNothing);

/** The name of an outcome: its task. */
export type OutcomeName = Pick<Task, "policy" | "id">;

/** Options of a history. */
export interface HistoryOptions {
  /** Whether sinks want a policy's outcomes: then the same step writes the notifier's event. */
  readonly isNotified?: (policy: string) => boolean;
  /** The zone of a policy's days; UTC without one. */
  readonly timezoneOf?: (policy: string) => string | undefined;
  readonly limits?: OutcomeLimits;
}

/**
 * What the journal must still show for an outcome to be recorded, with no request more than the
 * outcome tells; else it is superseded.
 */
export interface SettleFrom {
  readonly state: Exclude<StartState, "settled">;
  readonly claimant?: string;
  /**
   * The outcome is the service's answer: the same step confirms a start that is still `sending`,
   * or that Redis has forgotten.
   */
  readonly isAnswer?: true;
}

/**
 * What became of an outcome. `recorded-awaited`: a chain waits. `already-recorded`: the task has an
 * outcome, or was settled without one. `superseded`: its start, or another poll, went further than
 * this outcome knows, or whether Redis lost a start is not known yet (tasks/finish.ts).
 */
export type RecordResult = "recorded" | "recorded-awaited" | "already-recorded" | "superseded";

/** The history in Redis. */
export class History {
  readonly #store: Store;
  readonly #isNotified: (policy: string) => boolean;
  readonly #timezoneOf: (policy: string) => string | undefined;
  readonly #limits: OutcomeLimits;

  constructor(store: Store, options: HistoryOptions = {}) {
    const { isNotified = () => false, timezoneOf = () => undefined, limits = outcomeLimitsDefault } = options;
    this.#store = store;
    this.#isNotified = isNotified;
    this.#timezoneOf = timezoneOf;
    this.#limits = limits;
  }

  /**
   * Writes an outcome in one step with all that depends on it. A task that has one keeps it: then
   * only its start is settled, and its lease and its places in feeds are released. Changes nothing
   * where the start has left `from` or been sent more often than the outcome's `sends`, or another
   * poll was recorded meanwhile.
   */
  async record(outcome: Outcome, from?: SettleFrom, poll?: PollNote): Promise<RecordResult> {
    const { taskId, policy, target, status, origin, sends = 1 } = outcome;
    const store = this.#store;
    const placeMs = outcomePlaceMs(outcome);
    const { count, forMs } = this.#limits;
    const day = outcomeDay(store, outcome, this.#timezoneOf(policy));
    const keys = [
      ...[outcomesKey(store, policy), indexKey(store, policy), failedKey(store), store.key("outcomes-kept")],
      ...[store.key("unpublished"), entryKey(store, taskId), inFlightKey(store, outcome), leaseKey(store, outcome)],
      ...[lastSuccessKey(store, policy), troublesKey(store), joinCounterKey(store, policy, Date.parse(outcome.slot))],
      ...[
        notifyStreamKey(store),
        pollMemoryKey(store, policy),
        policyStateKey(store, policy),
        changedPoliciesKey(store),
        day.key,
      ],
      ...awaitedLists.map((list) => feedWaitersKey(store, { ...outcome, list })),
    ];
    const args = [
      ...[taskId, JSON.stringify(outcome), Date.parse(outcome.finishedAt), target, status, policy, placeMs],
      isReplayable(outcome) ? 1 : 0,
      ...[from?.state ?? "", from?.claimant ?? "", from?.isAnswer === true ? 1 : 0, sends],
      ...[entryRetentionMs, publishWithinMs, weightOf(outcome) === "success" ? successKeptMs : ""],
      ...[count, placeMs - forMs, troubleChanges(outcome)],
      // No chain follows a run by hand, even at the instant of a slot.
      ...[origin === "schedule" ? 1 : 0, this.#isNotified(policy) ? 1 : 0],
      ...[...stateArguments(outcome), day.change],
      ...(poll === undefined ? [] : pollNoteArgs(poll)),
    ];
    return recordScript(store, keys, args);
  }

  /** Writes an outcome without its start and its poll, unless the task has one; answers whether. */
  async recordAlone(outcome: Outcome): Promise<boolean> {
    const { taskId, policy } = outcome;
    const store = this.#store;
    const indexes = [outcomesKey(store, policy), indexKey(store, policy), failedKey(store)];
    const written = [taskId, JSON.stringify(outcome), outcomePlaceMs(outcome), policy];
    const isFailed = isReplayable(outcome) ? 1 : 0;
    const day = outcomeDay(store, outcome, this.#timezoneOf(policy));
    const noted = [policyStateKey(store, policy), changedPoliciesKey(store), day.key, notifyStreamKey(store)];
    const keys = [...indexes, store.key("outcomes-kept"), ...noted];
    const state = [Date.parse(outcome.finishedAt), ...stateArguments(outcome), day.change];
    const args = [...written, isFailed, ...state, this.#isNotified(policy) ? 1 : 0];
    return recordAloneScript(store, keys, args);
  }

  /** Notes that these outcomes are published. */
  async markPublished(taskIds: readonly string[]): Promise<void> {
    if (taskIds.length > 0) await this.#store.redis.zrem(this.#store.key("unpublished"), ...taskIds);
  }

  /**
   * Claims an outcome whose recorder died before publishing it; an instant: that recorder may still
   * publish it; undefined: it is published.
   */
  async claimUnpublished({ policy, id }: OutcomeName): Promise<Outcome | number | undefined> {
    const keys = [outcomesKey(this.#store, policy), this.#store.key("unpublished")];
    return claimUnpublishedScript(this.#store, keys, [id, publishWithinMs]);
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

  /** Which of these tasks of a policy have an outcome; cheaper than to read them. */
  async withOutcome(policy: string, taskIds: readonly string[]): Promise<ReadonlySet<string>> {
    const key = outcomesKey(this.#store, policy);
    // Reading all kept names costs less than asking for hundreds.
    if (taskIds.length >= manyMin && (await this.#store.redis.hlen(key)) <= keptNamesMax) {
      const kept = new Set(await this.#store.redis.hkeys(key));
      return new Set(taskIds.filter((id) => kept.has(id)));
    }
    const found = new Set<string>();
    for (const batch of batchesOf(taskIds)) {
      const has = await whichHaveScript(this.#store, [key], batch);
      for (const [index, id] of batch.entries()) if (has[index] === 1) found.add(id);
    }
    return found;
  }

  /**
   * Outcomes of slots after this instant are complete; undefined: all are. Read it after the
   * outcomes.
   */
  async keptSinceMs(policy: string): Promise<number | undefined> {
    return toSince((await this.#store.redis.hget(this.#store.key("outcomes-kept"), policy)) ?? "");
  }

  /** The same of a few policies, in their order. */
  async keptSinceOf(policies: readonly string[]): Promise<readonly (number | undefined)[]> {
    const found = await this.#store.redis.hmget(this.#store.key("outcomes-kept"), ...policies);
    return found.map((since) => toSince(since ?? ""));
  }

  /** The same for all policies with outcomes. */
  async keptSince(): Promise<ReadonlyMap<string, number | undefined>> {
    const kept = new Map<string, number | undefined>();
    const { redis, key } = this.#store;
    const read = (cursor: string) => redis.hscan(key("outcomes-kept"), cursor, "COUNT", scanCount);
    for await (const page of scanPairs(read)) for (const [policy, since] of page) kept.set(policy, toSince(since));
    return kept;
  }

  /** Returns at most `count` outcomes of one policy or all, newest first. */
  async newest(count: number, policy?: string): Promise<Outcome[]> {
    return this.read(await this.newestPlaces(count, policy === undefined ? undefined : [policy]));
  }

  /**
   * Returns the places of at most `count` outcomes of these policies or all, newest first: in one
   * millisecond by id. Both ends are inside. `after`: only those behind this place.
   */
  async newestPlaces(
    count: number,
    policies?: readonly string[],
    { fromMs, toMs, after }: Interval & { readonly after?: Place } = always,
  ): Promise<readonly OutcomePlace[]> {
    const span = { fromMs, toMs: Math.min(toMs, after?.atMs ?? toMs) };
    // Indexes move during the reading, so an outcome may turn up twice.
    const found = new Map<string, OutcomePlace>();
    let newest: readonly OutcomePlace[] = [];
    const names = policies ?? [...(await this.keptSince()).keys()];
    let open: readonly OpenIndex[] = names.map((policy) => ({ policy, read: 0 }));
    // Each round reads a longer page of each index that may still hold one of the newest.
    let size = names.length === 1 ? batchMax : 1;
    while (open.length > 0) {
      const pages: (readonly OutcomePlace[])[] = [];
      for (const batch of batchesOf(open)) {
        pages.push(
          ...(await Promise.all(batch.map(({ policy, read: from }) => this.places(policy, from, size, span)))),
        );
      }
      for (const place of pages.flat())
        if (after === undefined || inOrder(after, place) < 0) found.set(place.id, place);
      newest = [...found.values()].toSorted(inOrder).slice(0, count);
      const last = newest.length < count ? undefined : newest.at(-1);
      open = open.flatMap(({ policy, read }, index) => {
        const page = pages[index] ?? [];
        const end = page.length === size ? page.at(-1) : undefined;
        const mayGoOn = end !== undefined && (last === undefined || inOrder(end, last) < 0);
        return mayGoOn ? [{ policy, read: read + size }] : [];
      });
      size = Math.min(size * 8, batchMax);
    }
    return newest;
  }

  /**
   * Returns the places of `size` outcomes of a policy, newest first, after the `from` newest. Both
   * ends of the span are inside, and may be infinitely far.
   */
  async places(policy: string, from: number, size: number, span: Interval = always): Promise<readonly OutcomePlace[]> {
    const [max = "+inf", min = "-inf"] = [span.toMs, span.fromMs].map((atMs) =>
      Number.isFinite(atMs) ? atMs : atMs > 0 ? "+inf" : "-inf",
    );
    const key = indexKey(this.#store, policy);
    const flat = await this.#store.redis.zrevrangebyscore(key, max, min, "WITHSCORES", "LIMIT", from, size);
    return pairsOf(flat).map(([id, atMs]) => ({ policy, id, atMs: Number(atMs) }));
  }

  /** Reads outcomes; those dropped since their place was read are left out. */
  async read(places: readonly OutcomePlace[]): Promise<Outcome[]> {
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
    const isKnown = (policy: string) => known.has(policy) || isByHand(policy);
    for (const batch of batchesOf(policies)) {
      const ordered = batch.toSorted((a, b) => Number(isKnown(b)) - Number(isKnown(a)));
      const keys = ordered.flatMap((policy) =>
        [outcomesKey, indexKey, policyStateKey].map((keyOf) => keyOf(this.#store, policy)),
      );
      const count = ordered.filter(isKnown).length;
      const shared = [this.#store.key("outcomes-kept"), changedPoliciesKey(this.#store)];
      await tidyScript(this.#store, [...shared, ...keys], [removedKeptMs, count, ...ordered]);
    }
    await this.#tidyFailed();
    // By then it has no job any more, unless all workers were away for so long.
    const oldestMs = (await redisTimeMs(this.#store)) - unpublishedKeptMs;
    await this.#store.redis.zremrangebyscore(this.#store.key("unpublished"), "-inf", oldestMs);
  }

  /** Takes the tasks of policies without outcomes off the failed list. */
  async #tidyFailed(): Promise<void> {
    const { redis } = this.#store;
    const listed = new Set<string>();
    const read = (cursor: string) => redis.zscan(failedKey(this.#store), cursor, "COUNT", batchMax);
    for await (const page of scanPairs(read)) for (const [id] of page) listed.add(id);
    // Read after the list: the outcome of each task listed by then is kept, or gone for ever.
    const kept = await this.keptSince();
    const gone = [...listed].filter((id) => !kept.has(parseTaskId(id)?.policy ?? ""));
    for (const batch of batchesOf(gone)) await redis.zrem(failedKey(this.#store), ...batch);
  }
}

/**
 * Up to which slot all traces of such a task may have been dropped. `keptSinceMs`: of its policy.
 * What replaces a task over masks is known as long as the journal keeps its entry.
 */
export function droppedToMs(task: Pick<Task, "kind" | "target">, nowMs: number, keptSinceMs = 0): number {
  return isFromMasks(task) ? Math.max(keptSinceMs, nowMs - entryRetentionMs) : keptSinceMs;
}

/** The place of an outcome in its index. */
export interface OutcomePlace {
  readonly policy: string;
  readonly id: string;
  readonly atMs: number;
}

/** Where an outcome stands among those of all policies. */
export type Place = Pick<OutcomePlace, "atMs" | "id">;

/** The newest first, as Redis orders each index: in one millisecond by id, the last first. */
function inOrder(a: Place, b: Place): number {
  return b.atMs - a.atMs || Number(a.id < b.id) - Number(a.id > b.id);
}

/** The place of an outcome in its index: with a late clock it ends before its slot. */
export function outcomePlaceMs({ slot, finishedAt }: Pick<Outcome, "slot" | "finishedAt">): number {
  return Math.max(Date.parse(slot), Date.parse(finishedAt));
}

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

/** Key of the failed tasks of all policies, ordered like their indexes. */
export function failedKey({ key }: Pick<Store, "key">): string {
  return key("failed");
}

function toSince(text: string): number | undefined {
  return text === "" ? undefined : Number(text);
}
