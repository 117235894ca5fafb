// A teller over a book in memory and a clock that stands still until a test moves it: for tests of the rules. What Redis adds (the lease,
// the stream, the one step of saving) is tested in test/redis/telling.
import type { NotifyRule, Policy, PolicySet, TellingSettings } from "../../src/config/policy-set.ts";
import type { Notice } from "../../src/tasks/notice.ts";
import type { Outcome } from "../../src/tasks/outcome.ts";
import type { TellingEvent } from "../../src/tasks/telling-event.ts";
import { Teller } from "../../src/telling/teller.ts";
import type { Book, TellerOptions } from "../../src/telling/teller-options.ts";
import { testOutcome } from "./outcomes.ts";
import { testPolicy } from "./policies.ts";
import { TestLog } from "./test-log.ts";

/** What a bare name of a sink means. */
export const changeRule: NotifyRule = {
  sink: "ops",
  every: false,
  failuresInRow: 1,
  conflicts: "judged",
  blocked: true,
  unknown: true,
  missed: true,
  drift: true,
  recovery: true,
  silence: false,
  tokenExpiring: false,
};

/** A rule that tells nothing; a test says what it is about. */
export const silentRule: NotifyRule = {
  ...changeRule,
  failuresInRow: undefined,
  conflicts: undefined,
  blocked: false,
  unknown: false,
  missed: false,
  drift: false,
  recovery: false,
};

/** A policy of which `ops` hears every change. */
export function toldPolicy(name: string, notify: readonly NotifyRule[] = [changeRule]): Policy {
  return testPolicy({ name, notify });
}

/** When a house begins. */
export const beginMs = Date.parse("2026-11-21T12:00:00.000Z");

/** A teller, and the world that it sees. */
export class TellingHouse {
  nowMs = beginMs;
  telling: TellingSettings = { groupForMs: 30_000, quietHours: undefined };
  policies: readonly Policy[];
  /** Since when the breaker of `main` is open. */
  breakerMs: number | undefined;
  silences: ReadonlyMap<string, number> = new Map();
  tokens: ReadonlyMap<string, number> = new Map();
  /** What the next save does instead: the process dies before it. */
  diesBeforeSave = false;
  readonly delivered: { readonly sink: string; readonly notice: Notice }[] = [];
  readonly log = new TestLog();
  readonly parts = {
    policies: new Map(),
    services: new Map(),
    sinks: new Map(),
    held: new Map(),
    heartbeats: new Map(),
  };
  #events: TellingEvent[] = [];
  #count = 0;
  #teller: Teller;

  constructor(policies: readonly Policy[]) {
    this.policies = policies;
    this.#teller = this.#newTeller();
  }

  /** Something ended: it is in the stream, now. */
  ended(policy: string, changes: Partial<Outcome> = {}): void {
    this.#count += 1;
    const at = new Date(this.nowMs).toISOString();
    const taskId = `${policy}-${this.#count}`;
    const outcome = testOutcome({ taskId, policy, slot: at, finishedAt: at, ...changes });
    this.#events.push({ id: this.#id(), kind: "outcome", outcome });
  }

  /** A slot was missed. */
  missed(policy: string): void {
    this.#count += 1;
    this.#events.push({ id: this.#id(), kind: "slot-missed", policy, slotMs: this.nowMs, detail: "catch-up-window" });
  }

  /** Time passes, and the teller looks until it has nothing more to do. */
  async after(durationMs: number): Promise<void> {
    this.nowMs += durationMs;
    while ((await this.#teller.pass()) === 0);
  }

  /** The process died and another one begins. */
  restart(): void {
    this.#teller = this.#newTeller();
  }

  /** What was told so far, in short: `ops failing nightly`. */
  told(): string[] {
    return this.delivered.map(({ sink, notice: { kind, orderKey } }) => `${sink} ${kind} ${orderKey}`);
  }

  #id(): string {
    return `${this.nowMs}-${this.#count}`;
  }

  #newTeller(): Teller {
    const book: Book = {
      nowMs: async () => this.nowMs,
      take: async () => true,
      leave: async () => {},
      read: async (count) => {
        const events = this.#events.slice(0, count);
        return { events, cursor: events.at(-1)?.id ?? "", passed: events.length, lost: 0, unreadable: 0 };
      },
      standing: async (part, fields) =>
        new Map([...this.parts[part]].filter(([field]) => fields === undefined || fields.includes(field))),
      save: async (_owner, { passed }, changes) => {
        if (this.diesBeforeSave) {
          this.diesBeforeSave = false;
          throw new Error("died before the save");
        }
        this.#events = this.#events.slice(passed);
        for (const part of ["policies", "services", "held", "heartbeats"] as const)
          for (const [field, text] of changes[part])
            if (text === undefined) this.parts[part].delete(field);
            else this.parts[part].set(field, text);
        return true;
      },
      noteLost: async () => {},
    };
    const options: TellerOptions = {
      book,
      owner: "one",
      set: () => this.#set(),
      policy: (name) => this.policies.find((policy) => policy.name === name),
      deliver: async (deliveries) => void this.delivered.push(...deliveries),
      breaker: async () => (this.breakerMs === undefined ? undefined : { sinceMs: this.breakerMs, failure: "server" }),
      silences: async () => this.silences,
      tokens: () => this.tokens,
      clock: { nowMs: () => this.nowMs, monotonicMs: () => this.nowMs, sleep: async () => {}, every: () => () => {} },
      log: this.log,
    };
    return new Teller(options);
  }

  #set(): PolicySet {
    const { policies, telling } = this;
    return { services: new Map(), sinks: new Map(), policies, telling, contentHash: "", files: [] };
  }
}
