// A notifier over a book in memory and a clock that stands still until a test moves it: for tests
// of the rules. What Redis adds (the lease, the stream, the one step of saving) is tested in
// test/redis/notify/.
import type { NotificationSettings, NotifyRule, Policy, PolicySet } from "../../src/config/policy-set.ts";
import type { JudgedDeadlines } from "../../src/model/deadline.ts";
import type { Notice } from "../../src/model/notice.ts";
import { type NotifyEvent, notifyParts } from "../../src/model/notify-event.ts";
import type { Outcome } from "../../src/model/outcome.ts";
import { Notifier, type NotifierOptions, type NotifyStorePort } from "../../src/notify/notifier.ts";
import { testOutcome } from "./outcomes.ts";
import { testPolicy } from "./policies.ts";
import { TestLog } from "./test-log.ts";

/** What a bare name of a sink means. */
export const changeRule: NotifyRule = {
  sink: "ops",
  every: false,
  change: true,
  failuresInRow: 1,
  conflicts: "judged",
  blocked: true,
  unknown: true,
  missed: true,
  drift: true,
  unusual: true,
  recovery: true,
  stale: false,
  late: true,
  tokenExpiring: false,
};

/** A rule that tells nothing; a test says what it is about. */
export const silentRule: NotifyRule = {
  ...changeRule,
  change: false,
  failuresInRow: undefined,
  conflicts: undefined,
  blocked: false,
  unknown: false,
  missed: false,
  drift: false,
  late: false,
  unusual: false,
  recovery: false,
};

/** A policy of which `ops` hears every change. */
export function notifiedPolicy(
  name: string,
  notify: readonly NotifyRule[] = [changeRule],
  action: Policy["action"] = { kind: "run", syncJobs: [42] },
): Policy {
  return testPolicy({ name, notify, action });
}

/** A policy over these sync jobs. */
export function policyOver(name: string, ...syncJobs: readonly number[]): Policy {
  return notifiedPolicy(name, [changeRule], { kind: "run", syncJobs });
}

/** When a fixture begins. */
export const beginMs = Date.parse("2026-11-21T12:00:00.000Z");

/** A notifier, and the world that it sees. */
export class NotifyFixture {
  nowMs = beginMs;
  notifications: NotificationSettings = { groupWaitMs: 30_000, muteTiming: undefined };
  policies: readonly Policy[];
  sinkNames: readonly string[] = [];
  /** Since when the breaker of `main` is open. */
  breakerMs: number | undefined;
  stale: ReadonlyMap<string, number> = new Map();
  tokens: ReadonlyMap<string, number> = new Map();
  /** What the next look finds of deadlines. */
  judged: ReadonlyMap<string, JudgedDeadlines> = new Map();
  /** What the next save does instead: the process dies before it. */
  diesBeforeSave = false;
  /** The process dies right after the next hand-over. */
  diesAfterHandOver = false;
  readonly delivered: { readonly sink: string; readonly notice: Notice }[] = [];
  readonly log = new TestLog();
  readonly parts = {
    policies: new Map<string, string>(),
    services: new Map<string, string>(),
    muted: new Map<string, string>(),
    outbox: new Map<string, string>(),
    heartbeats: new Map<string, string>(),
    deadlines: new Map<string, string>(),
    digests: new Map<string, string>(),
  };
  #events: NotifyEvent[] = [];
  #count = 0;
  #sleep = async (_durationMs: number) => {};
  #notifier: Notifier;

  constructor(policies: readonly Policy[]) {
    this.policies = policies;
    this.#notifier = this.#newNotifier();
  }

  /** Something ended: it is in the stream, now. */
  ended(policy: string, changes: Partial<Outcome> = {}): void {
    this.#count += 1;
    const at = new Date(this.nowMs).toISOString();
    const taskId = `${policy}__run__42__${this.#count}`;
    const outcome = testOutcome({ taskId, policy, slot: at, finishedAt: at, ...changes });
    this.#events.push({ id: this.#id(), kind: "outcome", outcome });
  }

  /** A slot was missed. */
  missed(policy: string): void {
    this.#count += 1;
    this.#events.push({ id: this.#id(), kind: "slot-missed", policy, slotMs: this.nowMs, detail: "catch-up-window" });
  }

  /** The masks of a policy were read for a slot of now. */
  masksRead(policy: string, syncJobs: readonly string[]): void {
    this.#count += 1;
    this.#events.push({ id: this.#id(), kind: "masks-read", policy, slotMs: this.nowMs, syncJobs });
  }

  /** Time passes, and the notifier looks until it has nothing more to do. */
  async after(durationMs: number): Promise<void> {
    this.nowMs += durationMs;
    while ((await this.#notifier.runOnce()) === 0);
  }

  /** The notifier runs by itself for so long. */
  async runsFor(durationMs: number): Promise<void> {
    const untilMs = this.nowMs + durationMs;
    const ended = new Promise<void>((resolve) => {
      this.#sleep = async (sleptMs) => {
        this.nowMs += sleptMs;
        if (this.nowMs >= untilMs) resolve(this.#notifier.stop());
      };
    });
    await this.#notifier.start();
    await ended;
  }

  /** The process died and another one begins. */
  restart(): void {
    this.#notifier = this.#newNotifier();
  }

  /** What was told so far, in short: `ops failing nightly`. */
  published(): string[] {
    return this.delivered.map(({ sink, notice: { kind, orderKey } }) => `${sink} ${kind} ${orderKey}`);
  }

  /** The titles of what was told so far. */
  titles(): string[] {
    return this.delivered.map(({ notice }) => notice.title);
  }

  #id(): string {
    return `${this.nowMs}-${this.#count}`;
  }

  #newNotifier(): Notifier {
    const book: NotifyStorePort = {
      nowMs: async () => this.nowMs,
      take: async () => "prolonged",
      leave: async () => {},
      read: async (count, mustWait) => {
        const ageOf = ({ id }: NotifyEvent) => this.nowMs - Number(id.split("-")[0]);
        const waiting = this.#events.findIndex((event) => mustWait(event, ageOf(event)));
        const events = this.#events.slice(0, waiting === -1 ? count : Math.min(waiting, count));
        const cursor = events.at(-1)?.id ?? "";
        return {
          events,
          cursor,
          passed: events.length,
          lost: 0,
          unreadable: 0,
          isNextWaiting: waiting !== -1 && waiting < count,
        };
      },
      texts: async (part, fields) =>
        new Map([...this.parts[part]].filter(([field]) => fields === undefined || fields.includes(field))),
      save: async (_owner, { passed }, changes) => {
        if (this.diesBeforeSave) {
          this.diesBeforeSave = false;
          throw new Error("died before the save");
        }
        this.#events = this.#events.slice(passed);
        for (const part of notifyParts)
          for (const [field, text] of changes[part] ?? [])
            if (text === undefined) this.parts[part].delete(field);
            else this.parts[part].set(field, text);
        return true;
      },
      remove: async (owner, part, fields) =>
        book.save(owner, { cursor: "", passed: 0 }, { [part]: new Map(fields.map((field) => [field, undefined])) }),
      noteLost: async () => {},
    };
    const options: NotifierOptions = {
      notifyStore: book,
      owner: "one",
      set: () => this.#set(),
      policy: (name) => this.policies.find((policy) => policy.name === name),
      enqueueNotices: async (deliveries) => {
        this.delivered.push(...deliveries);
        if (!this.diesAfterHandOver) return;
        this.diesAfterHandOver = false;
        throw new Error("died after the hand-over");
      },
      breaker: async () => (this.breakerMs === undefined ? undefined : { sinceMs: this.breakerMs, failure: "server" }),
      stalePolicies: async () => this.stale,
      judgeDeadlines: async () => {
        const { judged } = this;
        this.judged = new Map();
        return judged;
      },
      tokens: () => this.tokens,
      clock: {
        nowMs: () => this.nowMs,
        monotonicMs: () => this.nowMs,
        sleep: (durationMs) => this.#sleep(durationMs),
        every: () => () => {},
      },
      log: this.log,
    };
    return new Notifier(options);
  }

  #set(): PolicySet {
    const { policies, sinkNames, notifications } = this;
    const to = { kind: "file", path: "", bytesMax: 1, filesMax: 1 } as const;
    return {
      services: new Map(),
      sinks: new Map(sinkNames.map((name) => [name, { name, to, giveUpAfterMs: 1, queueMax: 1 }])),
      policies,
      byHand: testPolicy(),
      notifications,
      contentHash: JSON.stringify(policies),
      files: [],
    };
  }
}
