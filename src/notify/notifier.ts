// The notifier: reads events, evaluates alert states (evaluate.ts), and hands notices to the sinks'
// queues. One replica works at a time, the one with the lease, never one whose policies are older
// than a live worker's. It saves alert states and notices in one step and hands over after it: a
// crash repeats notices with the same ids, and loses none.
// Built by app/create-notifier.ts.
import type { Policy, PolicySet } from "../config/policy-set.ts";
import type { Clock } from "../core/clock.ts";
import type { Component } from "../core/component.ts";
import { errorText, stackOf } from "../core/errors.ts";
import { bugEveryMs, type EventLog } from "../core/event-log.ts";
import { isRedisOutage } from "../core/redis-outage.ts";
import type { JudgedDeadlines } from "../model/deadline.ts";
import type { AddressedNotice, EnqueueNotices, Notice } from "../model/notice.ts";
import {
  isNotified,
  leftToNewerMs,
  type MustWait,
  type NotifyBatch,
  type NotifyChanges,
  type NotifyEvent,
  type NotifyPart,
  type NotifyTexts,
} from "../model/notify-event.ts";
import { lastEventMs, parsePolicyAlert, parseServiceAlert, policyText } from "./alert-state.ts";
import { type Breaker, Evaluation, notifiedServices, policyOf } from "./evaluate.ts";
import {
  isMuted,
  readWaiting,
  releaseWaiting,
  sortNotices,
  type UnreadableText,
  waitingFields,
  waitingText,
} from "./mute.ts";
import { withContext } from "./notices.ts";

/** Where notices wait: for the hand-over after a save, or for the end of mute timing. */
type Waiting = Extract<NotifyPart, "outbox" | "muted">;

/** What the notifier needs of its store (store/notify-store.ts). */
export interface NotifyStorePort {
  nowMs(): Promise<number>;
  take(owner: string, durationMs: number): Promise<"prolonged" | "taken" | "refused">;
  leave(owner: string): Promise<void>;
  read(count: number, mustWait: MustWait): Promise<NotifyBatch>;
  texts(part: NotifyPart, fields?: readonly string[]): Promise<Map<string, string>>;
  save(owner: string, batch: Pick<NotifyBatch, "cursor" | "passed">, changes: NotifyChanges): Promise<boolean>;
  remove(owner: string, part: NotifyPart, fields: readonly string[]): Promise<boolean>;
  noteLost(count: number): Promise<void>;
}

/** One digest that is due: its sinks, and how it is made, which may take seconds. */
interface DueDigest {
  readonly to: readonly string[];
  readonly make: () => Promise<Notice>;
}

/** Says which digests are due, and their states after it. Built by app/create-notifier.ts. */
export interface DigestPort {
  due(
    states: ReadonlyMap<string, string>,
    nowMs: number,
  ): { readonly due: readonly DueDigest[]; readonly changes: NotifyTexts };
}

/** What a notifier needs. */
export interface NotifierOptions {
  readonly notifyStore: NotifyStorePort;
  /** Unique over all replicas and restarts. */
  readonly owner: string;
  readonly set: () => PolicySet;
  readonly policy: (name: string) => Policy | undefined;
  /** Whether others notify, such as a worker with newer policies; they do not unless given. */
  readonly isLeftToOthers?: () => Promise<boolean>;
  readonly enqueueNotices: EnqueueNotices;
  readonly breaker: (service: string) => Promise<Breaker>;
  /** The stale policies, and since when; `outageEnds`: the end of each service's last outage. */
  readonly stalePolicies: (
    policies: readonly Policy[],
    outageEnds: ReadonlyMap<string, number>,
  ) => Promise<ReadonlyMap<string, number>>;
  /** Judges deadlines by their states, which it is given; default: none. */
  readonly judgeDeadlines?: (
    policies: readonly Policy[],
    facts: { readonly texts: ReadonlyMap<string, string>; readonly nowMs: number },
  ) => Promise<ReadonlyMap<string, JudgedDeadlines>>;
  /** Tokens that expire soon and cannot be renewed: service → instant. */
  readonly tokens: () => ReadonlyMap<string, number>;
  readonly digests?: DigestPort;
  /** Called at each status round of the replica that has the lease. */
  readonly onStatusRound?: () => void;
  readonly clock: Clock;
  readonly log: EventLog;
}

const batchMax = 500;
const leaseMs = 15_000;
const pollMs = 1_000;
/** To make digests of thousands of policies takes seconds. */
const digestLeaseMs = 60_000;
const digestAgainMs = 60_000;
/** How often a round also looks at services, tokens and stale policies. */
const statusEveryMs = 5_000;
const staleEveryMs = 10_000;
const deadlinesEveryMs = 10_000;
/** Longer than replicas need to adopt new policies: alert states of unknown ones stay meanwhile. */
const tidyMs = 120_000;
/** An event of an unknown policy waits so long at most; its later events until the same instant. */
const unknownForMs = 120_000;
/** After this an event of that policy waits anew: it may have been added again. */
const unknownAgainMs = 3_600_000;
const forgetMs = 86_400_000;

/** The notifier. Any number of replicas may run one. */
export class Notifier implements Component {
  readonly name = "notifier";
  readonly #options: NotifierOptions;
  readonly #stopping = new AbortController();
  /** The parts that may hold notices: others are not read. */
  readonly #mayContain = new Set<Waiting>(["outbox", "muted"]);
  /** Unknown policies that had an event, and when the first one was met, by the monotonic clock. */
  readonly #unknown = new Map<string, number>();
  /** A waiting notice that cannot be read, and when it was met, by the monotonic clock. */
  #unreadable: { readonly text: string; readonly metMs: number } | undefined;
  /** When each is due next, by the monotonic clock. */
  readonly #nextAtMs = { others: 0, status: 0, stale: 0, deadline: 0, tidy: 0, digest: 0, bug: 0 };
  #loop: Promise<void> | undefined;
  #failing = false;
  /** The policy set of the last round, and whether that is left to others. */
  #contentHash: string | undefined;
  #isLeft = false;

  constructor(options: NotifierOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    this.#loop = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
    await this.#leave().catch(() => {});
  }

  /** Runs one round; returns how long to wait for the next. */
  async runOnce(): Promise<number> {
    const { notifyStore, owner, log, isLeftToOthers, onStatusRound } = this.#options;
    const set = this.#options.set();
    this.#noteSet(set);
    if (this.#isDue("others", statusEveryMs)) this.#isLeft = (await isLeftToOthers?.()) === true;
    if (this.#isLeft) {
      // They may be away for a moment only: this replica's policies may not know what they know.
      this.#nextAtMs.tidy = this.#options.clock.monotonicMs() + tidyMs;
      await this.#leave();
      return statusEveryMs;
    }
    const lease = await notifyStore.take(owner, leaseMs);
    // Another one may have left notices.
    if (lease !== "prolonged") this.#mayContain.add("outbox").add("muted");
    if (lease === "refused") return statusEveryMs;
    const nowMs = await notifyStore.nowMs();
    if (await this.#handOver("outbox")) return 0;
    if (!isMuted(set.notifications.muteTiming, nowMs) && (await this.#handOver("muted"))) return 0;
    const batch = await notifyStore.read(batchMax, (event, ageMs) => this.#mustWait(policyOf(event), ageMs));
    await this.#countLost(batch.lost);
    const isStatusRound = this.#isDue("status", statusEveryMs);
    if (isStatusRound) onStatusRound?.();
    if (batch.passed === 0 && !isStatusRound) return this.#restAfter(batch);
    const isDrained = batch.passed < batchMax && !batch.isNextWaiting;
    const { notices, changes } = await this.#evaluate(set, nowMs, {
      events: batch.events,
      isStatusRound: isStatusRound && isDrained,
    });
    const digests = isStatusRound ? await this.#makeDigests(set, nowMs) : { notices: [], changes: new Map() };
    const waiting = await this.#splitMuted([...notices, ...digests.notices], set, nowMs);
    // Policies that were read anew meanwhile may have other services than `set` names.
    if (this.#options.set().contentHash !== set.contentHash) return 0;
    if (!(await notifyStore.save(owner, batch, { ...changes, digests: digests.changes, ...waiting }))) return pollMs;
    if (batch.unreadable > 0) log.error("notifier.dropped", { count: batch.unreadable });
    while (await this.#handOver("outbox"));
    return this.#restAfter(batch);
  }

  /** How long to wait for the next round. A replica that knows the policy may work meanwhile. */
  async #restAfter({ passed, isNextWaiting }: NotifyBatch): Promise<number> {
    if (!isNextWaiting) return passed < batchMax ? pollMs : 0;
    await this.#leave();
    return statusEveryMs;
  }

  /** Whether an event waits: its policy may be new, and this replica has not loaded it yet. */
  #mustWait(name: string, ageMs: number): boolean {
    if (this.#options.policy(name) !== undefined) return false;
    const nowMs = this.#options.clock.monotonicMs();
    const metMs = this.#unknown.get(name) ?? Number.NEGATIVE_INFINITY;
    const sinceMs = nowMs - metMs < unknownAgainMs ? metMs : nowMs;
    this.#unknown.set(name, sinceMs);
    return ageMs < unknownForMs && nowMs - sinceMs < unknownForMs;
  }

  async #leave(): Promise<void> {
    this.#mayContain.add("outbox").add("muted");
    await this.#options.notifyStore.leave(this.#options.owner);
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#options;
    while (!this.#stopping.signal.aborted) {
      let waitMs = statusEveryMs;
      try {
        waitMs = await this.runOnce();
        if (this.#failing) log.info("notifier.recovered");
        this.#failing = false;
      } catch (error) {
        if (!this.#failing) log.warn("notifier.failing", { message: errorText(error) });
        if (!isRedisOutage(error) && (this.#isDue("bug", bugEveryMs) || !this.#failing))
          log.error("bug.caught", { stack: stackOf(error) });
        this.#failing = true;
        // Gives the lease up: another replica may be newer, or have a better connection to Redis.
        await this.#leave().catch(() => {});
      }
      await clock.sleep(waitMs, this.#stopping.signal);
    }
  }

  async #evaluate(
    set: PolicySet,
    nowMs: number,
    { events, isStatusRound }: { readonly events: readonly NotifyEvent[]; readonly isStatusRound: boolean },
  ) {
    const { notifyStore, policy, breaker, tokens } = this.#options;
    const names = notifiedServices(set);
    const serviceTexts = await notifyStore.texts("services", names);
    const services = new Map(names.map((name) => [name, parseServiceAlert(serviceTexts.get(name))]));
    const breakers = new Map(await Promise.all(names.map(async (name) => [name, await breaker(name)] as const)));
    const evaluation = new Evaluation({ set, nowMs, services, breakers, policy });
    const { policies } = evaluation;
    const policyTexts = new Map<string, string | undefined>();
    const load = async (wanted: readonly string[]) => {
      const missing = [...new Set(wanted)].filter((name) => !policyTexts.has(name));
      const found = await notifyStore.texts("policies", missing);
      for (const name of missing) {
        policyTexts.set(name, found.get(name));
        policies.set(name, parsePolicyAlert(found.get(name)));
      }
    };
    await load(events.map(policyOf));
    for (const event of events) evaluation.onEvent(event);
    if (isStatusRound) {
      const ownFailures = evaluation.onServices();
      await load(ownFailures.map((one) => one.policy));
      evaluation.onOwnFailures(ownFailures);
      evaluation.onTokens(tokens());
      const stale = await this.#readStale(evaluation);
      await load([...stale.keys()]);
      evaluation.onStale(stale);
      evaluation.onDeadlines(await this.#judgeDeadlines(set, nowMs));
      if (this.#isDue("tidy", tidyMs)) await this.#tidy(evaluation, load, serviceTexts);
    }
    const changes: NotifyChanges = {
      policies: changed([...policyTexts.keys()], (name) => policyText(policies.get(name)), policyTexts),
      services: changed([...names, ...serviceTexts.keys()], (name) => JSON.stringify(services.get(name)), serviceTexts),
      deadlines: evaluation.deadlines,
      heartbeats: evaluation.heartbeats,
    };
    const notices = evaluation.notices.map(({ sink, notice }) => {
      return { sink, notice: withContext(notice, set, policy(notice.policy ?? "")) };
    });
    return { notices, changes };
  }

  /** Ends the alert states of what is in no policy file any more, and forgets old ones. */
  async #tidy(
    evaluation: Evaluation,
    load: (policies: readonly string[]) => Promise<void>,
    serviceTexts: Map<string, string>,
  ): Promise<void> {
    const { notifyStore, policy } = this.#options;
    const { services, nowMs } = evaluation.world;
    const { notified, forgotten } = await this.#known(nowMs);
    await load([...notified, ...forgotten]);
    evaluation.onRemoved(notified);
    for (const name of forgotten) evaluation.policies.delete(name);
    for (const [name, text] of await notifyStore.texts("services")) {
      if (services.has(name)) continue;
      const state = evaluation.onUnwatched(name, parseServiceAlert(text));
      serviceTexts.set(name, text);
      if (nowMs - lastEventMs(state) <= forgetMs) services.set(name, state);
    }
    for (const name of (await notifyStore.texts("deadlines")).keys())
      if (policy(name)?.expect === undefined) evaluation.deadlines.set(name, undefined);
  }

  async #judgeDeadlines({ policies }: PolicySet, nowMs: number): Promise<ReadonlyMap<string, JudgedDeadlines>> {
    const { notifyStore, judgeDeadlines } = this.#options;
    const watched = policies.filter(({ expect }) => expect !== undefined);
    if (judgeDeadlines === undefined || watched.length === 0 || !this.#isDue("deadline", deadlinesEveryMs))
      return new Map();
    const names = watched.map(({ name }) => name);
    return judgeDeadlines(watched, { texts: await notifyStore.texts("deadlines", names), nowMs });
  }

  /** Makes the digests that are due. Without them, all else goes on: they are tried in a minute. */
  async #makeDigests(set: PolicySet, nowMs: number) {
    const { notifyStore, owner, digests, log } = this.#options;
    const none = { notices: [] as AddressedNotice[], changes: new Map() as NotifyTexts };
    const isAwaited = this.#options.clock.monotonicMs() < this.#nextAtMs.digest;
    if (digests === undefined || set.notifications.digests === undefined || isAwaited) return none;
    try {
      const { due, changes } = digests.due(await notifyStore.texts("digests"), nowMs);
      if (due.length > 0 && (await notifyStore.take(owner, digestLeaseMs)) !== "prolonged") {
        // Another one may have changed what this round has read. So it must not save.
        await this.#leave();
        return none;
      }
      const notices: AddressedNotice[] = [];
      for (const { to, make } of due) {
        const notice = withContext(await make(), set);
        notices.push(...to.map((sink) => ({ sink, notice })));
      }
      return { notices, changes };
    } catch (error) {
      if (isRedisOutage(error)) throw error;
      this.#nextAtMs.digest = this.#options.clock.monotonicMs() + digestAgainMs;
      log.error("digest.failed", { message: errorText(error), stack: stackOf(error) });
      return none;
    }
  }

  async #readStale({ world: { set, services } }: Evaluation): Promise<ReadonlyMap<string, number>> {
    const watched = set.policies.filter(({ notify = [] }) => notify.some(({ stale }) => stale));
    if (watched.length === 0 || !this.#isDue("stale", staleEveryMs)) return new Map();
    const outageEnds = [...services].flatMap(([name, { endedMs }]) =>
      endedMs === null ? [] : [[name, endedMs] as const],
    );
    return this.#options.stalePolicies(watched, new Map(outageEnds));
  }

  /** Splits notices into those that go out now and those that mute timing lets wait. */
  async #splitMuted(notices: readonly AddressedNotice[], { notifications: { muteTiming } }: PolicySet, nowMs: number) {
    let [now, muted]: [readonly AddressedNotice[], NotifyTexts] = [notices, new Map()];
    if (isMuted(muteTiming, nowMs)) {
      const known = await this.#options.notifyStore.texts("muted", [...new Set(notices.flatMap(waitingFields))]);
      ({ now, muted } = sortNotices(notices, muteTiming, known));
    }
    // Noted before the save: it may work although its answer is lost.
    if (now.length > 0) this.#mayContain.add("outbox");
    if (muted.size > 0) this.#mayContain.add("muted");
    const outbox = new Map(
      now.map((one, index) => [String(index).padStart(6, "0"), waitingText({ ...one, leftOut: 0 })]),
    );
    return { outbox, muted };
  }

  /** Hands over what waits, oldest first, and removes it. Returns whether it did. */
  async #handOver(part: Waiting): Promise<boolean> {
    const { notifyStore, owner, enqueueNotices } = this.#options;
    if (!this.#mayContain.has(part)) return false;
    const { waiting, unreadable } = readWaiting(await notifyStore.texts(part));
    if (!(await this.#dropUnreadable(part, unreadable))) return false;
    if (waiting.length === 0) this.#mayContain.delete(part);
    const order = (one: (typeof waiting)[number]) => (part === "outbox" ? one.field : one.notice.at);
    const batch = waiting.sort((a, b) => (order(a) < order(b) ? -1 : 1)).slice(0, batchMax);
    if (batch.length === 0) return false;
    await enqueueNotices(batch.map(releaseWaiting));
    const fields = batch.map(({ field }) => field);
    return notifyStore.remove(owner, part, fields);
  }

  /** Drops what no notifier could read in ten minutes. Throws until then: a newer one may. */
  async #dropUnreadable(part: Waiting, unreadable: readonly UnreadableText[]): Promise<boolean> {
    const { notifyStore, owner, clock, log } = this.#options;
    const [first] = unreadable;
    if (first === undefined) return true;
    const nowMs = clock.monotonicMs();
    if (this.#unreadable?.text !== first.text) this.#unreadable = { text: first.text, metMs: nowMs };
    if (nowMs - this.#unreadable.metMs < leftToNewerMs) throw first.error;
    const fields = unreadable.map(({ field }) => field);
    if (!(await notifyStore.remove(owner, part, fields))) return false;
    log.error("notifier.dropped", { count: unreadable.length });
    return true;
  }

  async #countLost(lost: number): Promise<void> {
    if (lost === 0) return;
    // Negative: Redis forgot events that were handled. None was dropped here.
    if (lost > 0) this.#options.log.error("notifier.dropped", { count: lost });
    await this.#options.notifyStore.noteLost(lost);
  }

  /** The policies with an alert state; without sinks or a heartbeat they are forgotten in a day. */
  async #known(nowMs: number) {
    const { notifyStore, policy } = this.#options;
    const all = [...(await notifyStore.texts("policies"))];
    const isWatched = (name: string) => isNotified(policy(name));
    const isForgotten = ([name, text]: readonly [string, string]) => {
      const ends = Object.values(parsePolicyAlert(text).targets).map(({ brief }) => Date.parse(brief.at));
      return !isWatched(name) && nowMs - Math.max(0, ...ends) > forgetMs;
    };
    const names = (entries: readonly (readonly [string, string])[]) => entries.map(([name]) => name);
    return { notified: names(all).filter(isWatched), forgotten: names(all.filter(isForgotten)) };
  }

  /** Notes a change of the policies: nothing is forgotten for a while after it. */
  #noteSet({ contentHash }: PolicySet): void {
    if (contentHash === this.#contentHash) return;
    this.#contentHash = contentHash;
    this.#nextAtMs.others = 0;
    this.#nextAtMs.tidy = this.#options.clock.monotonicMs() + tidyMs;
  }

  #isDue(what: "others" | "status" | "stale" | "deadline" | "tidy" | "bug", everyMs: number): boolean {
    const nowMs = this.#options.clock.monotonicMs();
    if (nowMs < this.#nextAtMs[what]) return false;
    this.#nextAtMs[what] = nowMs + everyMs;
    return true;
  }
}

function changed(
  names: readonly string[],
  textOf: (name: string) => string | undefined,
  before: NotifyTexts,
): NotifyTexts {
  const texts = names.map((name) => [name, textOf(name)] as const);
  return new Map(texts.filter(([name, text]) => text !== before.get(name)));
}
