// The teller: reads what happened, decides who is told what (pass.ts), hands it over, and then saves how far it has come. One works at a
// time over all replicas: whoever has the lease. It hands over before it saves, so a death in between repeats notices, with the same ids, and
// loses none. Built by app/create-telling.ts. Never sends anything itself: that is the sinks' business.
import type { PolicySet } from "../config/policy-set.ts";
import type { Component } from "../core/component.ts";
import { errorText } from "../core/errors.ts";
import type { TellingEvent } from "../tasks/telling-event.ts";
import type { Telling } from "./notices.ts";
import {
  type PassState,
  tellEvents,
  tellReleased,
  tellServices,
  tellSilence,
  tellTokens,
  toldServices,
} from "./pass.ts";
import { type Held, heldField, heldText, isQuiet, parseHeld, releaseHeld, sortTellings } from "./quiet.ts";
import { parsePolicyStanding, parseServiceStanding, policyText } from "./standing.ts";
import type { Changes, TellerOptions, Texts } from "./teller-options.ts";

const portionMax = 500;
const leaseMs = 15_000;
const pollMs = 1_000;
const beatMs = 5_000;
const silenceMs = 10_000;
const tidyMs = 3_600_000;
const forgetMs = 86_400_000;
const nothing: Texts = new Map();
const none: Changes = { policies: nothing, services: nothing, held: nothing, heartbeats: nothing };

/** The teller. Any number of replicas may run one. */
export class Teller implements Component {
  readonly name = "teller";
  readonly #options: TellerOptions;
  readonly #stopping = new AbortController();
  #loop: Promise<void> | undefined;
  #failing = false;
  /** Whether something may wait for the end of quiet hours. */
  #mayHold = true;
  #next = { beatMs: 0, silenceMs: 0, tidyMs: tidyMs };

  constructor(options: TellerOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    this.#loop = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
    await this.#options.book.leave(this.#options.owner).catch(() => {});
  }

  /** One pass; answers how long to wait for the next. Called by the loop; tests call it by hand. */
  async pass(): Promise<number> {
    const { book, owner, set: current } = this.#options;
    if (!(await book.take(owner, leaseMs))) {
      this.#mayHold = true;
      return beatMs;
    }
    const nowMs = await book.nowMs();
    const set = current();
    if (this.#mayHold && !isQuiet(set.telling.quietHours, nowMs) && (await this.#release())) return 0;
    const portion = await book.read(portionMax);
    await this.#countLost(portion.lost);
    const isBeat = this.#isDue("beatMs", beatMs);
    if (isBeat) this.#options.onBeat?.();
    if (portion.passed === 0 && !isBeat) return pollMs;
    const isDrained = portion.passed < portionMax;
    const { tellings, changes } = await this.#decide({
      set,
      nowMs,
      events: portion.events,
      isBeat: isBeat && isDrained,
    });
    const { now, held } = await this.#sort(tellings, set, nowMs);
    await this.#handOver(now);
    if (!(await book.save(owner, portion, { ...changes, held }))) return pollMs;
    this.#logTold(now);
    if (portion.unreadable > 0) this.#options.log.error("telling.dropped", { count: portion.unreadable });
    if (isBeat && this.#isDue("tidyMs", tidyMs)) await this.#tidy(nowMs);
    return isDrained ? pollMs : 0;
  }

  async #run(): Promise<void> {
    const { clock, log, book, owner } = this.#options;
    while (!this.#stopping.signal.aborted) {
      let waitMs = beatMs;
      try {
        waitMs = await this.pass();
        if (this.#failing) log.info("telling.recovered");
        this.#failing = false;
      } catch (error) {
        if (!this.#failing) log.warn("telling.failing", { message: errorText(error) });
        this.#failing = true;
        // Another replica may be able to: one of a newer version, or with a better way to Redis.
        await book.leave(owner).catch(() => {});
      }
      await clock.sleep(waitMs, this.#stopping.signal);
    }
  }

  async #decide(moment: { set: PolicySet; nowMs: number; events: readonly TellingEvent[]; isBeat: boolean }) {
    const { book, policy, breaker, tokens } = this.#options;
    const { set, nowMs, events, isBeat } = moment;
    const told = toldServices(set);
    const texts = new Map<string, string | undefined>();
    const policies: PassState["policies"] = new Map();
    const load = async (names: readonly string[]) => {
      const missing = [...new Set(names)].filter((name) => !policies.has(name));
      const found = await book.standing("policies", missing);
      for (const name of missing) {
        texts.set(name, found.get(name));
        policies.set(name, parsePolicyStanding(found.get(name)));
      }
    };
    await load(events.map((event) => (event.kind === "outcome" ? event.outcome.policy : event.policy)));
    const serviceTexts = await book.standing("services", told);
    const services = new Map(told.map((name) => [name, parseServiceStanding(serviceTexts.get(name))]));
    const breakers = new Map(await Promise.all(told.map(async (name) => [name, await breaker(name)] as const)));
    const state: PassState = { set, nowMs, policies, services, breakers, policy };
    const { tellings, beats } = tellEvents(state, events);
    if (isBeat) {
      const { tellings: ofServices, release } = tellServices(state);
      await load(release.map(({ policy: name }) => name));
      tellings.push(...ofServices, ...tellReleased(state, release), ...tellTokens(state, tokens()));
      const silences = await this.#silences(state);
      await load([...silences.keys()]);
      tellings.push(...tellSilence(state, silences));
    }
    const changes: Changes = {
      policies: changed(new Map([...policies].map(([name, one]) => [name, policyText(one)])), texts),
      services: changed(new Map([...services].map(([name, one]) => [name, JSON.stringify(one)])), serviceTexts),
      heartbeats: new Map(beats.map((name) => [name, String(nowMs)])),
      held: nothing,
    };
    return { tellings, changes };
  }

  async #silences({ set, services }: PassState): Promise<ReadonlyMap<string, number>> {
    const watched = set.policies.filter(({ notify = [] }) => notify.some(({ silence }) => silence));
    if (watched.length === 0 || !this.#isDue("silenceMs", silenceMs)) return new Map();
    const floors = new Map(
      [...services].flatMap(([name, { endedMs }]) => (endedMs === null ? [] : [[name, endedMs] as const])),
    );
    return this.#options.silences(watched, floors);
  }

  async #sort(tellings: readonly Telling[], { telling }: PolicySet, nowMs: number) {
    if (!isQuiet(telling.quietHours, nowMs)) return { now: tellings, held: nothing };
    const fields = [...new Set(tellings.map(heldField))];
    const texts = await this.#options.book.standing("held", fields);
    const known = new Map([...texts].map(([field, text]) => [field, parseHeld(text)]));
    const { now, held } = sortTellings(tellings, telling.quietHours, known);
    this.#mayHold ||= held.size > 0;
    return { now, held: new Map([...held].map(([field, one]) => [field, one && heldText(one)])) };
  }

  /** Hands over what waited, oldest first, before anything newer. Answers whether anything did. */
  async #release(): Promise<boolean> {
    const { book, owner } = this.#options;
    const waiting = [...(await book.standing("held"))].map(([field, text]) => ({ field, held: parseHeld(text) }));
    const at = ({ held }: { held: Held }) => held.notice.at;
    const portion = waiting.sort((a, b) => (at(a) < at(b) ? -1 : 1)).slice(0, portionMax);
    const now = portion.map(({ held }) => releaseHeld(held));
    await this.#handOver(now);
    const held = new Map(portion.map(({ field }) => [field, undefined]));
    if (held.size > 0 && (await book.save(owner, { cursor: "", passed: 0 }, { ...none, held }))) this.#logTold(now);
    if (held.size === 0) this.#mayHold = false;
    return held.size > 0;
  }

  async #handOver(tellings: readonly Telling[]): Promise<void> {
    for (let from = 0; from < tellings.length; from += portionMax)
      await this.#options.deliver(tellings.slice(from, from + portionMax));
  }

  #logTold(tellings: readonly Telling[]): void {
    for (const { sink, notice } of tellings) {
      const { id, kind, policy, service, title } = notice;
      this.#options.log.info("notice.told", { sink, kind, policy, service, title, id });
    }
  }

  async #countLost(lost: number): Promise<void> {
    if (lost === 0) return;
    // Fewer than were told means that Redis has begun anew: nothing was dropped by us.
    if (lost > 0) this.#options.log.error("telling.dropped", { count: lost });
    await this.#options.book.noteLost(lost);
  }

  /** Forgets policies that nobody is told of any more, a day after their last bad ending. */
  async #tidy(nowMs: number): Promise<void> {
    const { book, owner, policy } = this.#options;
    const gone = [...(await book.standing("policies"))].filter(([name, text]) => {
      const { last } = parsePolicyStanding(text);
      return policy(name)?.notify === undefined && nowMs - Date.parse(last?.at ?? "1970-01-01") > forgetMs;
    });
    await book.save(
      owner,
      { cursor: "", passed: 0 },
      { ...none, policies: new Map(gone.map(([name]) => [name, undefined])) },
    );
  }

  #isDue(what: "beatMs" | "silenceMs" | "tidyMs", everyMs: number): boolean {
    const nowMs = this.#options.clock.monotonicMs();
    if (nowMs < this.#next[what]) return false;
    this.#next[what] = nowMs + everyMs;
    return true;
  }
}

function changed(after: Texts, before: Texts): Texts {
  return new Map([...after].filter(([name, text]) => text !== before.get(name)));
}
