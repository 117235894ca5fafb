// The notifier on a real Redis: what is recorded is published, whichever replica dies, and however
// many try at once.
import { beforeEach, describe, expect, it } from "vitest";
import type { PolicySet } from "../../../src/config/policy-set.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { NewerVersionError } from "../../../src/core/newer-version.ts";
import type { EnqueueNotices, Notice } from "../../../src/model/notice.ts";
import { waitingText } from "../../../src/notify/mute.ts";
import { type DigestPort, Notifier, type NotifyStorePort } from "../../../src/notify/notifier.ts";
import { ChainStore } from "../../../src/store/chain-store.ts";
import { History } from "../../../src/store/history.ts";
import { NotifyStore } from "../../../src/store/notify-store.ts";
import { lastSuccessKey } from "../../../src/store/policy-states.ts";
import type { Store } from "../../../src/store/redis.ts";
import { loadLua } from "../../../src/store/script.ts";
import { SlotLedger } from "../../../src/store/slot-ledger.ts";
import { changeRule, notifiedPolicy, silentRule } from "../../support/notify-fixture.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { testPolicy } from "../../support/policies.ts";
import { noticeOf } from "../../support/receiver.ts";
import { storeForTest } from "../../support/redis.ts";
import { TestLog } from "../../support/test-log.ts";

let round = 0;
let history: History;
let log: TestLog;
let delivered: { owner: string; sink: string; notice: Notice }[] = [];

const opened = await storeForTest();
const store: Store = { ...opened, key: (...parts) => opened.key(`round-${round}`, ...parts) };
beforeEach(() => {
  round += 1;
  history = new History(store, { isNotified: (policy) => policy !== "untold" });
  log = new TestLog();
  delivered = [];
});

const policies = [
  notifiedPolicy("a"),
  notifiedPolicy("b", [
    { ...silentRule, every: true },
    { ...changeRule, sink: "boss" },
  ]),
];
const set: PolicySet = {
  services: new Map(),
  sinks: new Map(),
  policies,
  byHand: testPolicy(),
  notifications: { groupWaitMs: 30_000, muteTiming: undefined, digests: [] },
  contentHash: "",
  files: [],
};

interface Changes {
  readonly deliver?: EnqueueNotices;
  readonly book?: Partial<NotifyStorePort>;
  readonly digests?: DigestPort;
  /** The policies that its replica has loaded. */
  readonly loaded?: readonly string[];
  /** Whether another replica has newer ones. */
  readonly isOutdated?: boolean;
}

function notifierOf(owner: string, changes: Changes = {}): Notifier {
  const book = new NotifyStore(store);
  const wrapped: NotifyStorePort = {
    nowMs: () => book.nowMs(),
    take: (...args) => book.take(...args),
    leave: (one) => book.leave(one),
    read: (...args) => book.read(...args),
    texts: (...args) => book.texts(...args),
    save: (...args) => book.save(...args),
    remove: (...args) => book.remove(...args),
    noteLost: (count) => book.noteLost(count),
    ...changes.book,
  };
  return new Notifier({
    notifyStore: wrapped,
    owner,
    set: () => set,
    policy: (name) => policies.find((policy) => policy.name === name && changes.loaded?.includes(name) !== false),
    isLeftToOthers: async () => changes.isOutdated === true,
    enqueueNotices: async (deliveries) => {
      await changes.deliver?.(deliveries);
      delivered.push(...deliveries.map((delivery) => ({ owner, ...delivery })));
    },
    breaker: async () => undefined,
    stalePolicies: async () => new Map(),
    tokens: () => new Map(),
    ...(changes.digests === undefined ? {} : { digests: changes.digests }),
    clock: systemClock,
    log,
  });
}

/** Looks until there is nothing more to do at once; answers how long it would wait then. */
async function look(notifier: Notifier): Promise<number> {
  for (;;) {
    const waitMs = await notifier.runOnce();
    if (waitMs > 0) return waitMs;
  }
}

let ended = 0;
async function end(policy: string, changes: Parameters<typeof testOutcome>[0] = {}): Promise<void> {
  ended += 1;
  await history.record(testOutcome({ taskId: `${policy}-${ended}`, policy, ...changes }));
}
const failed = { status: "failed", reason: "run-failed" } as const;
const keys = () => delivered.map(({ sink, notice }) => `${sink} ${notice.kind} ${notice.orderKey}`);
const streamLength = () => store.redis.xlen(store.key("outcome-events"));

describe("what is recorded", () => {
  it("becomes one event in the same step, only for policies that notify", async () => {
    const outcome = testOutcome({ taskId: "once", policy: "a" });
    await Promise.all([history.record(outcome), history.record(outcome), history.record(outcome)]);
    await end("untold");
    await new History(store).record(testOutcome({ taskId: "stale", policy: "a" }));
    const { events } = await new NotifyStore(store).read(10);
    expect(events).toMatchObject([{ kind: "outcome", outcome }]);
  });

  it("becomes one event also where it is recorded alone, or some of its writes fail", async () => {
    const alone = testOutcome({ taskId: "alone", policy: "a", status: "unknown", reason: "bug" });
    await Promise.all([history.recordAlone(alone), history.recordAlone(alone)]);
    await history.recordAlone(testOutcome({ taskId: "alone", policy: "untold" }));
    await store.redis.hset(lastSuccessKey(store, "a"), "no", "text");
    const half = testOutcome({ taskId: "half", policy: "a" });
    await expect(history.record(half)).rejects.toThrow("WRONGTYPE");
    expect(await history.claimUnpublished({ policy: "a", id: "half" })).toEqual(expect.any(Number));
    const { events } = await new NotifyStore(store).read(10);
    expect(events).toMatchObject([
      { kind: "outcome", outcome: alone },
      { kind: "outcome", outcome: half },
    ]);
  });

  it("is an event when a slot is missed, in the step that records it", async () => {
    const ledger = new SlotLedger(store);
    const marks = await ledger.openWatermarks([{ policy: "a", schedule: "s" }], 1_000);
    const records = [
      { slotMs: 2_000, state: "missed", detail: "catch-up-window" },
      { slotMs: 3_000, state: "started", detail: "" },
    ] as const;
    const step = {
      policy: "a",
      expectedWatermarkMs: marks.get("a")?.watermarkMs ?? 0,
      newWatermarkMs: 3_000,
      records,
      tasks: [],
      isNotified: true,
    } as const;
    await ledger.record([step]);
    // Another replica that comes too late tells nothing again.
    await ledger.record([step]);
    const { events } = await new NotifyStore(store).read(10);
    expect(events).toMatchObject([{ kind: "slot-missed", policy: "a", slotMs: 2_000, detail: "catch-up-window" }]);
    await look(notifierOf("one"));
    expect(keys()).toEqual(["ops failing a"]);
  });

  it("is an event when a slot that waited for another policy is missed", async () => {
    const slot = { v: 1, policy: "b", slotMs: 5_000, after: "a", followers: 0, openedMs: 4_000 } as const;
    const { policy: _policy, slotMs: _slotMs, ...fields } = slot;
    await store.redis.hset(store.key("waiting"), "b/5000", JSON.stringify(fields));
    const record = { slotMs: 5_000, state: "missed", detail: "after-within" } as const;
    const step = { slot, record, tasks: [], isNotified: true } as const;
    await new ChainStore(store).endWaiting(step, 6_000);
    await new ChainStore(store).endWaiting(step, 6_000);
    const { events } = await new NotifyStore(store).read(10);
    expect(events).toMatchObject([{ kind: "slot-missed", policy: "b", slotMs: 5_000, detail: "after-within" }]);
  });

  it("is told in its order, and gone from the stream when that is saved", async () => {
    await end("a", failed);
    await end("b");
    await end("b", failed);
    await end("a");
    expect(await streamLength()).toBe(4);
    await look(notifierOf("one"));
    expect(keys()).toEqual(["ops failing a", "ops outcome b", "ops outcome b", "boss failing b", "ops recovered a"]);
    expect(await streamLength()).toBe(0);
    await look(notifierOf("one"));
    expect(delivered).toHaveLength(5);
  });

  it("is counted when it is dropped unread", async () => {
    const notifier = notifierOf("one");
    for (let count = 0; count < 3; count += 1) await end("a");
    await look(notifier);
    for (let count = 0; count < 10; count += 1) await end("a");
    await store.redis.xtrim(store.key("outcome-events"), "MAXLEN", 4);
    await look(notifier);
    await end("a");
    await look(notifier);
    expect(log.named("notifier.dropped")).toMatchObject([{ count: 6 }]);
  });

  it("is not counted as lost by a Redis that does not say how many came (before 7.0)", async () => {
    await end("a");
    const before7 = `local redis = setmetatable({ call = function(command, ...)
      if command == 'XINFO' then return { 'length', 1 } end
      return redis.call(command, ...)
    end }, { __index = redis })
    `;
    const streamAndState = [store.key("outcome-events"), store.key("notifications", "state")];
    const answer = await store.redis.eval(before7 + loadLua("notify/read"), 2, ...streamAndState, 10);
    expect(answer).toMatchObject([[expect.anything()], 0, expect.any(Number)]);
  });

  it("is read from the beginning when Redis was emptied, without counting losses", async () => {
    await end("a", failed);
    await look(notifierOf("one"));
    await store.redis.del(store.key("outcome-events"));
    await store.redis.del(store.key("notifications", "policies"));
    await end("a", failed);
    await look(notifierOf("one"));
    expect(keys()).toEqual(["ops failing a", "ops failing a"]);
    expect(log.named("notifier.dropped")).toEqual([]);
  });
});

describe("an event that only a newer version can read", () => {
  const stream = () => store.key("outcome-events");
  const newer = (taskId: string) => JSON.stringify({ ...testOutcome({ taskId, policy: "a" }), v: 9 });

  it("stays for a notifier of that version, and what came before it is told", async () => {
    await end("a", failed);
    await store.redis.xadd(stream(), "*", "o", newer("from-tomorrow"));
    await end("b");
    const notifier = notifierOf("older");
    await look(notifier);
    await expect(look(notifier)).rejects.toThrow(NewerVersionError);
    expect(keys()).toEqual(["ops failing a"]);
    expect(await streamLength()).toBe(2);
    expect(log.named("notifier.dropped")).toEqual([]);
  });

  it("stays for ten minutes: a rolling upgrade may take as long", async () => {
    const [seconds] = await store.redis.time();
    await store.redis.xadd(stream(), `${(Number(seconds) - 570) * 1_000}-0`, "o", newer("from-tomorrow"));
    await expect(look(notifierOf("older"))).rejects.toThrow(NewerVersionError);
    expect(await streamLength()).toBe(1);
  });

  it("is left to another replica: a notifier that cannot read it frees the lease", async () => {
    await store.redis.xadd(stream(), "*", "o", newer("from-tomorrow"));
    const older = notifierOf("older");
    await older.start();
    const book = new NotifyStore(store);
    try {
      await log.until(({ event }) => event === "notifier.failing");
      await expect.poll(() => book.take("newer", 60_000)).toBe("taken");
    } finally {
      await older.stop();
    }
  });

  // A rollback would otherwise stop all notices for ever.
  it("is skipped and counted after ten minutes", async () => {
    const [seconds] = await store.redis.time();
    await store.redis.xadd(stream(), `${(Number(seconds) - 601) * 1_000}-0`, "o", newer("from-tomorrow"));
    await store.redis.xadd(stream(), `${(Number(seconds) - 601) * 1_000}-1`, "o", "{no outcome at all");
    const missed = ["p", "a", "s", "1000", "r", JSON.stringify({ v: 1, state: "missed" })];
    await store.redis.xadd(stream(), `${(Number(seconds) - 601) * 1_000}-2`, ...missed);
    await end("a", failed);
    await look(notifierOf("older"));
    expect(keys()).toEqual(["ops failing a"]);
    expect(await streamLength()).toBe(0);
    expect(log.named("notifier.dropped")).toMatchObject([{ count: 3 }]);
  });

  it("is told where only its reason is new: the word is told as it is", async () => {
    await store.redis.xadd(
      stream(),
      "*",
      "o",
      JSON.stringify({ ...testOutcome({ taskId: "t", policy: "a", ...failed }), reason: "seen-from-tomorrow" }),
    );
    await look(notifierOf("older"));
    expect(delivered).toMatchObject([
      { sink: "ops", notice: { kind: "failing", data: { reason: "seen-from-tomorrow" } } },
    ]);
  });
});

describe("an event of a policy that a replica has not loaded", () => {
  it("is left to a replica that has, and what came before it is told", async () => {
    await end("a", failed);
    await end("b", failed);
    await end("a");
    const older = notifierOf("older", { loaded: ["a"] });
    expect(await look(older)).toBeGreaterThan(1_000);
    expect(keys()).toEqual(["ops failing a"]);
    await look(notifierOf("newer"));
    expect(keys().slice(1)).toEqual(["ops outcome b", "boss failing b", "ops recovered a"]);
    expect(await streamLength()).toBe(0);
  });

  it("is passed over after two minutes: the policy was removed", async () => {
    const [seconds] = await store.redis.time();
    const outcome = JSON.stringify(testOutcome({ taskId: "t", policy: "gone", ...failed }));
    const add = (ageSeconds: number) =>
      store.redis.xadd(store.key("outcome-events"), `${(Number(seconds) - ageSeconds) * 1_000}-0`, "o", outcome);
    await add(121);
    await add(60);
    await end("a", failed);
    await look(notifierOf("one"));
    expect([keys(), await streamLength()]).toEqual([[], 2]);
  });
});

describe("a notifier that dies", () => {
  it("after handing over leaves the same notices with the same ids to the next one", async () => {
    await end("a", failed);
    await end("b");
    const killed: EnqueueNotices = async (deliveries) => {
      delivered.push(...deliveries.map((delivery) => ({ owner: "dying", ...delivery })));
      throw new Error("killed");
    };
    const dying = notifierOf("dying", { deliver: killed });
    await expect(look(dying)).rejects.toThrow("killed");
    // What comes meanwhile changes nothing about what was published.
    await end("a");
    await new NotifyStore(store).leave("dying");
    await look(notifierOf("next"));
    const [first, second] = ["dying", "next"].map((name) =>
      delivered.filter(({ owner }) => owner === name).map(({ sink, notice }) => ({ sink, notice })),
    );
    expect(first).toHaveLength(2);
    expect(second?.slice(0, 2)).toEqual(first);
    expect(second?.slice(2).map(({ notice }) => notice.kind)).toEqual(["recovered"]);
  });

  it("before handing over has told nothing, and the next one tells it", async () => {
    await end("a", failed);
    const dying = notifierOf("dying", { deliver: async () => Promise.reject(new Error("no queue")) });
    await expect(look(dying)).rejects.toThrow("no queue");
    await new NotifyStore(store).leave("dying");
    await look(notifierOf("next"));
    expect(keys()).toEqual(["ops failing a"]);
  });
});

describe("several notifiers", () => {
  it("take turns: without the lease, a notifier reads nothing", async () => {
    await end("a", failed);
    const book = new NotifyStore(store);
    expect(await book.take("other", 60_000)).toBe("taken");
    expect(await look(notifierOf("one"))).toBeGreaterThan(1_000);
    expect(delivered).toEqual([]);
    await book.leave("other");
    await look(notifierOf("one"));
    expect(keys()).toEqual(["ops failing a"]);
  });

  it("leave the lease to one with newer policies", async () => {
    await end("a", failed);
    expect(await new NotifyStore(store).take("old", 60_000)).toBe("taken");
    expect(await look(notifierOf("old", { isOutdated: true }))).toBeGreaterThan(1_000);
    await look(notifierOf("new"));
    expect(delivered.map(({ owner }) => owner)).toEqual(["new"]);
  });

  it("save nothing without the lease: neither alert states nor how far they have come", async () => {
    await end("a", failed);
    const book = new NotifyStore(store);
    await book.take("slow", 60_000);
    const batch = await book.read(10);
    await book.leave("slow");
    await book.take("other", 60_000);
    expect(await book.save("slow", batch, { policies: new Map([["a", "stale"]]) })).toBe(false);
    expect(await book.texts("policies")).toEqual(new Map());
    expect((await book.read(10)).passed).toBe(1);
    expect(await book.save("other", batch, { policies: new Map([["a", "new"]]) })).toBe(true);
    expect(await book.texts("policies", ["a"])).toEqual(new Map([["a", "new"]]));
    expect((await book.read(10)).passed).toBe(0);
  });

  it("hand over first what another one left while they stood still", async () => {
    const slow = notifierOf("slow");
    await look(slow);
    const book = new NotifyStore(store);
    await book.leave("slow");
    await book.take("other", 60_000);
    const left = (policy: string) => waitingText({ sink: "ops", notice: noticeOf(policy, policy), leftOut: 0 });
    const texts = { outbox: new Map([["000000", left("queued")]]), muted: new Map([["ops/m", left("muted")]]) };
    await book.save("other", { cursor: "", passed: 0 }, texts);
    await book.leave("other");
    await end("a", failed);
    await look(slow);
    expect(keys()).toEqual(["ops outcome queued", "ops outcome muted", "ops failing a"]);
  });

  it("save nothing when the lease ran out before a digest is made", async () => {
    await end("a", failed);
    const book = new NotifyStore(store);
    const texts: NotifyStorePort["texts"] = async (part, fields) => {
      if (part === "digests") await book.leave("slow");
      return book.texts(part, fields);
    };
    const due = () => ({ due: [{ to: [], make: async () => noticeOf("d") }], changes: new Map() });
    await look(notifierOf("slow", { book: { texts }, digests: { due } }));
    expect([keys(), await streamLength()]).toEqual([[], 1]);
  });

  it("whose leases run out in mid-pass give each notice one id and save once", async () => {
    for (let count = 0; count < 40; count += 1) await end("b", count % 2 === 0 ? failed : {});
    const loseLease: EnqueueNotices = async () => void (await store.redis.del(store.key("notifications", "lease")));
    const notifiers = ["one", "two", "three"].map((owner) => notifierOf(owner, { deliver: loseLease }));
    await Promise.all(notifiers.map((notifier) => look(notifier)));
    for (const notifier of notifiers) await look(notifier);
    expect(delivered.length).toBeGreaterThanOrEqual(80);
    await new NotifyStore(store).leave("three");
    await look(notifierOf("last"));
    // 40 outcomes for one sink, 40 changes for the other.
    expect(new Set(delivered.map(({ sink, notice }) => `${sink} ${notice.id}`)).size).toBe(80);
    expect(await streamLength()).toBe(0);
    const told = delivered.length;
    await look(notifierOf("last"));
    expect(delivered).toHaveLength(told);
  });
});
