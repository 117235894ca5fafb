// The notifier: reads events, decides who is notified (evaluate.ts), hands the notices to the
// sinks' queues, then saves its progress. One replica works at a time, the one with the lease. It
// hands over before it saves: a crash in between repeats notices with the same ids, and loses none.
// Built by app/create-notifier.ts.
import type { PolicySet } from "../config/policy-set.ts";
import type { Component } from "../core/component.ts";
import { errorText, stackOf } from "../core/errors.ts";
import { isRedisOutage } from "../core/redis-outage.ts";
import type { NotifyEvent } from "../model/notify-event.ts";
import { type PolicyAlertState, parsePolicyState, parseServiceState, policyText } from "./alert-state.ts";
import type { AlertStateChanges, NotifierOptions, Texts } from "./contracts.ts";
import {
  type Evaluation,
  evaluateEvents,
  evaluateReleased,
  evaluateServices,
  evaluateStale,
  evaluateTokens,
  notifiedServices,
  tellRemoved,
} from "./evaluate.ts";
import { isMuted, type MutedNotice, mutedField, mutedText, parseMuted, releaseMuted, sortNotices } from "./mute.ts";
import type { AddressedNotice } from "./notices.ts";

const batchMax = 500;
const leaseMs = 15_000;
const pollMs = 1_000;
const tickMs = 5_000;
const silenceMs = 10_000;
/**
 * Longer than replicas need to adopt new policies: alert states of policies unknown here are kept
 * meanwhile.
 */
const tidyMs = 120_000;
const forgetMs = 86_400_000;
const nothing: Texts = new Map();
const none: AlertStateChanges = { policies: nothing, services: nothing, held: nothing, heartbeats: nothing };

/** The notifier. Any number of replicas may run one. */
export class Notifier implements Component {
  readonly name = "notifier";
  readonly #options: NotifierOptions;
  readonly #stopping = new AbortController();
  #loop: Promise<void> | undefined;
  #failing = false;
  /** Whether notices may wait for the end of mute timing. */
  #mayHold = true;
  #next = { tickMs: 0, silenceMs: 0, tidyMs: 0 };
  /** The policy set of the last tick. */
  #contentHash: string | undefined;

  constructor(options: NotifierOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    this.#loop = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
    await this.#options.notifyStore.leave(this.#options.owner).catch(() => {});
  }

  /** Runs one tick; returns how long to wait for the next. Called by the loop, and by tests. */
  async runOnce(): Promise<number> {
    const { notifyStore: book, owner, set: current } = this.#options;
    const set = current();
    this.#noteSet(set);
    if (!(await book.take(owner, leaseMs))) {
      this.#mayHold = true;
      return tickMs;
    }
    const nowMs = await book.nowMs();
    if (this.#mayHold && !isMuted(set.notifications.muteTiming, nowMs) && (await this.#release())) return 0;
    const batch = await book.read(batchMax);
    await this.#countLost(batch.lost);
    const isTick = this.#isDue("tickMs", tickMs);
    if (isTick) this.#options.onTick?.();
    if (batch.passed === 0 && !isTick) return pollMs;
    const isDrained = batch.passed < batchMax;
    const { notices, changes } = await this.#decide({
      set,
      nowMs,
      events: batch.events,
      isTick: isTick && isDrained,
    });
    const { now, held } = await this.#sort(notices, set, nowMs);
    await this.#handOver(now);
    if (!(await book.save(owner, batch, { ...changes, held }))) return pollMs;
    this.#logTold(now);
    if (batch.unreadable > 0) this.#options.log.error("notifier.dropped", { count: batch.unreadable });
    return isDrained ? pollMs : 0;
  }

  async #run(): Promise<void> {
    const { clock, log, notifyStore: book, owner } = this.#options;
    while (!this.#stopping.signal.aborted) {
      let waitMs = tickMs;
      try {
        waitMs = await this.runOnce();
        if (this.#failing) log.info("notifier.recovered");
        this.#failing = false;
      } catch (error) {
        if (!this.#failing) {
          log.warn("notifier.failing", { message: errorText(error) });
          if (!isRedisOutage(error)) log.error("bug.caught", { stack: stackOf(error) });
        }
        this.#failing = true;
        // Gives the lease up: another replica may be newer, or have a better connection to Redis.
        await book.leave(owner).catch(() => {});
      }
      await clock.sleep(waitMs, this.#stopping.signal);
    }
  }

  async #decide(moment: { set: PolicySet; nowMs: number; events: readonly NotifyEvent[]; isTick: boolean }) {
    const { notifyStore: book, policy, breaker, tokens } = this.#options;
    const { set, nowMs, events, isTick } = moment;
    const told = notifiedServices(set);
    const texts = new Map<string, string | undefined>();
    const policies: Evaluation["policies"] = new Map();
    const load = async (names: readonly string[]) => {
      const missing = [...new Set(names)].filter((name) => !policies.has(name));
      const found = await book.states("policies", missing);
      for (const name of missing) {
        texts.set(name, found.get(name));
        policies.set(name, parsePolicyState(found.get(name)));
      }
    };
    await load(events.map((event) => (event.kind === "outcome" ? event.outcome.policy : event.policy)));
    const serviceTexts = await book.states("services", told);
    const services = new Map(told.map((name) => [name, parseServiceState(serviceTexts.get(name))]));
    const breakers = new Map(await Promise.all(told.map(async (name) => [name, await breaker(name)] as const)));
    const state: Evaluation = { set, nowMs, policies, services, breakers, policy };
    const { notices, heartbeats } = evaluateEvents(state, events);
    if (isTick) {
      const { notices: ofServices, release } = evaluateServices(state);
      await load(release.map(({ policy: name }) => name));
      notices.push(...ofServices, ...evaluateReleased(state, release), ...evaluateTokens(state, tokens()));
      const silences = await this.#silences(state);
      await load([...silences.keys()]);
      notices.push(...evaluateStale(state, silences));
      if (this.#isDue("tidyMs", tidyMs)) {
        const [told, untold] = await this.#known(nowMs);
        await load([...told, ...untold]);
        notices.push(...tellRemoved(state, told));
        for (const name of untold) policies.delete(name);
      }
    }
    const changes: AlertStateChanges = {
      policies: changed(new Map([...texts.keys()].map((name) => [name, textOf(policies.get(name))])), texts),
      services: changed(new Map([...services].map(([name, one]) => [name, JSON.stringify(one)])), serviceTexts),
      heartbeats: new Map(heartbeats.map((name) => [name, String(nowMs)])),
      held: nothing,
    };
    return { notices, changes };
  }

  async #silences({ set, services }: Evaluation): Promise<ReadonlyMap<string, number>> {
    const watched = set.policies.filter(({ notify = [] }) => notify.some(({ stale }) => stale));
    if (watched.length === 0 || !this.#isDue("silenceMs", silenceMs)) return new Map();
    const floors = new Map(
      [...services].flatMap(([name, { endedMs }]) => (endedMs === null ? [] : [[name, endedMs] as const])),
    );
    return this.#options.silences(watched, floors);
  }

  async #sort(notices: readonly AddressedNotice[], { notifications }: PolicySet, nowMs: number) {
    if (!isMuted(notifications.muteTiming, nowMs)) return { now: notices, held: nothing };
    const fields = [...new Set(notices.map(mutedField))];
    const texts = await this.#options.notifyStore.states("held", fields);
    const known = new Map([...texts].map(([field, text]) => [field, parseMuted(text)]));
    const { now, held } = sortNotices(notices, notifications.muteTiming, known);
    this.#mayHold ||= held.size > 0;
    return { now, held: new Map([...held].map(([field, one]) => [field, one && mutedText(one)])) };
  }

  /** Hands over what waited, oldest first, before anything newer. Returns whether anything did. */
  async #release(): Promise<boolean> {
    const { notifyStore: book, owner } = this.#options;
    const waiting = [...(await book.states("held"))].map(([field, text]) => ({ field, held: parseMuted(text) }));
    const at = ({ held }: { held: MutedNotice }) => held.notice.at;
    const batch = waiting.sort((a, b) => (at(a) < at(b) ? -1 : 1)).slice(0, batchMax);
    const now = batch.map(({ held }) => releaseMuted(held));
    await this.#handOver(now);
    const held = new Map(batch.map(({ field }) => [field, undefined]));
    if (held.size > 0 && (await book.save(owner, { cursor: "", passed: 0 }, { ...none, held }))) this.#logTold(now);
    if (held.size === 0) this.#mayHold = false;
    return held.size > 0;
  }

  async #handOver(notices: readonly AddressedNotice[]): Promise<void> {
    for (let from = 0; from < notices.length; from += batchMax)
      await this.#options.deliver(notices.slice(from, from + batchMax));
  }

  #logTold(notices: readonly AddressedNotice[]): void {
    for (const { sink, notice } of notices) {
      const { id, kind, policy, service, title } = notice;
      this.#options.log.info("notice.told", { sink, kind, policy, service, title, id });
    }
  }

  async #countLost(lost: number): Promise<void> {
    if (lost === 0) return;
    // A smaller number means that Redis started anew: no event was dropped here.
    if (lost > 0) this.#options.log.error("notifier.dropped", { count: lost });
    await this.#options.notifyStore.noteLost(lost);
  }

  /**
   * The policies with an alert state: those that sinks are told of, and others a day after their
   * last bad ending.
   */
  async #known(nowMs: number): Promise<readonly [readonly string[], readonly string[]]> {
    const { notifyStore: book, policy } = this.#options;
    const all = [...(await book.states("policies"))];
    const isTold = (name: string) => policy(name)?.notify !== undefined;
    const untold = all.filter(([name, text]) => {
      const ends = Object.values(parsePolicyState(text).targets).map(({ brief }) => Date.parse(brief.at));
      return !isTold(name) && nowMs - Math.max(0, ...ends) > forgetMs;
    });
    return [all.map(([name]) => name).filter(isTold), untold.map(([name]) => name)];
  }

  /** Notes a change of the policies: nothing is forgotten for a while after it. */
  #noteSet({ contentHash }: PolicySet): void {
    if (contentHash === this.#contentHash) return;
    this.#contentHash = contentHash;
    this.#next.tidyMs = this.#options.clock.monotonicMs() + tidyMs;
  }

  #isDue(what: "tickMs" | "silenceMs" | "tidyMs", everyMs: number): boolean {
    const nowMs = this.#options.clock.monotonicMs();
    if (nowMs < this.#next[what]) return false;
    this.#next[what] = nowMs + everyMs;
    return true;
  }
}

function textOf(alertState: PolicyAlertState | undefined): string | undefined {
  return alertState === undefined ? undefined : policyText(alertState);
}

function changed(after: Texts, before: Texts): Texts {
  return new Map([...after].filter(([name, text]) => text !== before.get(name)));
}
