// Some of the stories of test/unit/notify/stories.test.ts on a real Redis: outcomes through the
// history, the stream, the lease and the step that saves. `STORY=17` tells one again, with its
// steps; `REDIS_STORIES=200` tells more.
import { expect, it } from "vitest";
import type { NotificationSettings, Policy, PolicySet } from "../../../src/config/policy-set.ts";
import type { Notice } from "../../../src/model/notice.ts";
import type { NotifyEvent } from "../../../src/model/notify-event.ts";
import type { Outcome } from "../../../src/model/outcome.ts";
import { Notifier, type NotifyStorePort } from "../../../src/notify/notifier.ts";
import { History } from "../../../src/store/history.ts";
import { NotifyStore } from "../../../src/store/notify-store.ts";
import type { Store } from "../../../src/store/redis.ts";
import { checkStory, planStory, type StoryFixture, storyText } from "../../support/notice-stories.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { testPolicy } from "../../support/policies.ts";
import { storeForTest } from "../../support/redis.ts";
import { TestLog } from "../../support/test-log.ts";

const one = process.env["STORY"];
const count = Number(process.env["REDIS_STORIES"] ?? 25);
const seeds = one === undefined ? Array.from({ length: count }, (_, index) => 1_001 + index) : [Number(one)];

const opened = await storeForTest();

/** A notifier on a real Redis, whose clock the story moves. */
class RedisFixture implements StoryFixture {
  nowMs = 0;
  notifications: NotificationSettings = { groupWaitMs: 30_000, muteTiming: undefined };
  policies: readonly Policy[] = [];
  diesBeforeSave = false;
  readonly delivered: { readonly sink: string; readonly notice: Notice }[] = [];
  readonly log = new TestLog();
  readonly #store: Store;
  readonly #history: History;
  #owners = 0;
  #notifier: Notifier;

  constructor(store: Store) {
    this.#store = store;
    this.#history = new History(store, { isNotified: () => true });
    this.#notifier = this.#newNotifier();
  }

  async ended(policy: string, changes: Partial<Outcome>): Promise<void> {
    const finishedAt = new Date(this.nowMs).toISOString();
    await this.#history.record(testOutcome({ policy, finishedAt, ...changes }));
  }

  async missed(policy: string): Promise<void> {
    const record = JSON.stringify({ v: 1, state: "missed", detail: "catch-up-window" });
    await this.#note("p", policy, "s", this.nowMs, "r", record);
  }

  async masksRead(policy: string, syncJobs: readonly string[]): Promise<void> {
    await this.#note("p", policy, "s", this.nowMs, "m", JSON.stringify(syncJobs));
  }

  async after(durationMs: number): Promise<void> {
    this.nowMs += durationMs;
    while ((await this.#notifier.runOnce()) === 0);
  }

  restart(): void {
    this.#notifier = this.#newNotifier();
  }

  async #note(...fields: (string | number)[]): Promise<void> {
    await this.#store.redis.xadd(this.#store.key("outcome-events"), "*", ...fields);
  }

  #newNotifier(): Notifier {
    const book = new NotifyStore(this.#store);
    this.#owners += 1;
    const owner = `notifier-${this.#owners}`;
    // The lease of the one that died is run out by the time that the next one looks.
    const take: NotifyStorePort["take"] = async (...args) => {
      await book.leave(`notifier-${this.#owners - 1}`);
      return book.take(...args);
    };
    const wrapped: NotifyStorePort = {
      nowMs: async () => this.nowMs,
      take,
      leave: (name) => book.leave(name),
      // The stream has the time of Redis; this one has that of the story.
      read: async (...args) => {
        const batch = await book.read(...args);
        const toStory = (event: NotifyEvent) =>
          event.kind === "outcome" ? event : { ...event, id: `${event.slotMs}-0` };
        return { ...batch, events: batch.events.map(toStory) };
      },
      texts: (...args) => book.texts(...args),
      save: async (...args) => {
        if (this.diesBeforeSave) throw new Error("died before the save");
        return book.save(...args);
      },
      remove: async (...args) => {
        if (this.diesBeforeSave) throw new Error("died before the save");
        return book.remove(...args);
      },
      noteLost: (lost) => book.noteLost(lost),
    };
    return new Notifier({
      notifyStore: wrapped,
      owner,
      set: () => this.#set(),
      policy: (name) => this.policies.find((policy) => policy.name === name),
      enqueueNotices: async (deliveries) => void this.delivered.push(...deliveries),
      breaker: async () => undefined,
      stalePolicies: async () => new Map(),
      tokens: () => new Map(),
      clock: { nowMs: () => this.nowMs, monotonicMs: () => this.nowMs, sleep: async () => {}, every: () => () => {} },
      log: this.log,
    });
  }

  #set(): PolicySet {
    const { policies, notifications } = this;
    const contentHash = JSON.stringify(policies);
    return {
      services: new Map(),
      sinks: new Map(),
      policies,
      byHand: testPolicy(),
      notifications,
      contentHash,
      files: [],
    };
  }
}

it("stories of hanging, failing and recovering sync jobs reach Redis in time", async () => {
  const beginMs = Math.floor(Date.now() / 60_000) * 60_000;
  for (const seed of seeds) {
    const story = planStory(seed, beginMs);
    if (one !== undefined) process.stdout.write(`${storyText(story)}\n`);
    const fixture = new RedisFixture({ ...opened, key: (...parts) => opened.key(`story-${seed}`, ...parts) });
    expect(await checkStory(story, fixture)).toEqual([]);
    expect(fixture.log.named("notifier.dropped")).toEqual([]);
    expect(fixture.delivered.length).toBeGreaterThan(0);
  }
});
