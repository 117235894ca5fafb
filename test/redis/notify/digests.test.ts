// Daily digests on a real Redis: one for each day and sink, whichever replica dies when, over clock
// changes and stops. Days pass by a clock of the test.
import { expect, it, onTestFinished } from "vitest";
import { createDigests } from "../../../src/app/create-notifier.ts";
import type { DigestSettings } from "../../../src/config/policy-set.ts";
import type { Notice } from "../../../src/model/notice.ts";
import { Notifier, type NotifierOptions, type NotifyStorePort } from "../../../src/notify/notifier.ts";
import { NotifyStore } from "../../../src/store/notify-store.ts";
import { openStore, type Store } from "../../../src/store/redis.ts";
import { setOf } from "../../support/kept-set.ts";
import { testPolicy } from "../../support/policies.ts";
import { redisForTest } from "../../support/redis.ts";
import { TestLog } from "../../support/test-log.ts";

const redis = redisForTest();
let tests = 0;

/** An installation with a digest at 02:30 in Vienna, and a clock. */
async function installation(digest: Partial<DigestSettings> = {}, startMs = Date.parse("2026-10-20T12:00:00Z")) {
  tests += 1;
  const target = { url: redis.url, prefix: `${redis.prefix}-${tests}` };
  const store: Store = await openStore(target);
  onTestFinished(() => store.close());
  const dst = { gap: "next", overlap: "first" } as const;
  const timezone = "Europe/Vienna";
  const settings: DigestSettings = {
    ...{ name: "morning", timezone, to: ["ops", "mail"], label: "" },
    schedule: { kind: "cron", expressions: ["30 2 * * *"], timezone, dst, spreadMs: 0 },
    ...digest,
  };
  const bare = setOf([testPolicy()]);
  const set = { ...bare, notifications: { ...bare.notifications, digests: [settings] } };
  let monotonicMs = 0;
  const own = { nowMs: startMs, log: new TestLog(), delivered: [] as { sink: string; notice: Notice }[], set, target };
  const notifierOf = (changes: Partial<NotifierOptions> = {}, port: Partial<NotifyStorePort> = {}) => {
    const book = new NotifyStore(store);
    const methods = ["take", "leave", "read", "texts", "save", "remove", "noteLost"] as const;
    const bound = Object.fromEntries(methods.map((name) => [name, book[name].bind(book)]));
    return new Notifier({
      notifyStore: { ...(bound as unknown as NotifyStorePort), nowMs: async () => own.nowMs, ...port },
      owner: `owner-${Math.random()}`,
      set: () => own.set,
      policy: (name) => own.set.policies.find((policy) => policy.name === name),
      enqueueNotices: async (deliveries) => void own.delivered.push(...deliveries),
      breaker: async () => undefined,
      stalePolicies: async () => new Map(),
      tokens: () => new Map(),
      digests: createDigests({ store, target, set: () => own.set }),
      // Each look is a status round.
      clock: {
        nowMs: () => own.nowMs,
        monotonicMs: () => (monotonicMs += 10_000),
        sleep: async () => {},
        every: () => () => {},
      },
      log: own.log,
      ...changes,
    });
  };
  const free = () => store.redis.del(store.key("notifications", "lease"));
  const days = () => own.delivered.map(({ sink, notice }) => `${sink} ${notice.data["slot"]}`);
  return Object.assign(own, { store, notifierOf, free, days });
}

const hourMs = 3_600_000;

it("comes once a day and sink whichever replica dies when, also as clocks change", async () => {
  const own = await installation();
  let deaths = 0;
  const dies = (text: string): never => {
    deaths += 1;
    throw new Error(text);
  };
  const book = new NotifyStore(own.store);
  // Each looks in turn. Most die: before the save, after it, or after the hand-over.
  const fates = [
    () => own.notifierOf({}, { save: async () => dies("before the save") }),
    () => own.notifierOf({}, { save: (...args) => book.save(...args).then(() => dies("after the save")) }),
    () =>
      own.notifierOf({
        enqueueNotices: async (all) => {
          own.delivered.push(...all);
          dies("after the hand-over");
        },
      }),
    () => own.notifierOf(),
  ];
  for (let hour = 0; hour < 24 * 8; hour += 1) {
    own.nowMs += hourMs;
    for (const make of [...fates.slice(hour % 4), ...fates.slice(0, hour % 4)]) {
      await make()
        .runOnce()
        .catch(() => {});
      await own.free();
    }
  }
  await own.notifierOf().runOnce();
  expect(deaths).toBeGreaterThan(24);
  const expected = ["21", "22", "23", "24", "25"].map((day) => `2026-10-${day}T00:30:00.000Z`);
  const slots = [...expected, ...["26", "27", "28"].map((day) => `2026-10-${day}T01:30:00.000Z`)];
  expect([...new Set(own.days())].toSorted()).toEqual(
    ["mail", "ops"].flatMap((sink) => slots.map((slot) => `${sink} ${slot}`)),
  );
  // What came again has the id of the first.
  expect(new Set(own.delivered.map(({ notice }) => notice.id)).size).toBe(slots.length);
});

it("is one for all replicas that look at the same time", async () => {
  const own = await installation();
  const replicas = [1, 2, 3, 4].map(() => own.notifierOf());
  for (let day = 0; day < 4; day += 1) {
    await Promise.all(replicas.map((replica) => replica.runOnce()));
    own.nowMs += 24 * hourMs;
    await own.free();
  }
  expect(new Set(own.days()).size).toBe(own.days().length);
  expect(own.days()).toHaveLength(6);
});

it("comes late, once, after a stop, and counts since the one before", async () => {
  const own = await installation();
  await own.notifierOf().runOnce();
  own.nowMs += 24 * hourMs;
  await own.free();
  await own.notifierOf().runOnce();
  own.nowMs += 4 * 24 * hourMs;
  await own.free();
  await own.notifierOf().runOnce();
  const [, , late] = own.delivered;
  expect(own.days()).toEqual(
    ["21", "25"].flatMap((day) => {
      const slot = day === "25" ? "2026-10-25T00:30:00.000Z" : "2026-10-21T00:30:00.000Z";
      return [`ops ${slot}`, `mail ${slot}`];
    }),
  );
  expect(late?.notice).toMatchObject({
    ...{ kind: "digest", orderKey: "digest:morning", policy: null, timezone: "Europe/Vienna" },
    title: expect.stringMatching(
      /^Not fine, 2 need a person: 1 not run yet of 1 policy, 2 other troubles, due 02:30, 12h late$/,
    ),
    data: { digest: "morning", from: "2026-10-21", to: "2026-10-25" },
  });
});

it("begins at its next slot when it is new, and keeps to its weekdays", async () => {
  const dst = { gap: "next", overlap: "first" } as const;
  const schedule = { kind: "cron", expressions: ["0 7 * * 1-5"], timezone: "UTC", dst, spreadMs: 0 } as const;
  // Friday, 23 October, after seven.
  const own = await installation({ schedule, to: ["ops"] }, Date.parse("2026-10-23T08:00:00Z"));
  for (let hour = 0; hour < 24 * 4; hour += 1) {
    await own.notifierOf().runOnce();
    await own.free();
    own.nowMs += hourMs;
  }
  expect(own.days()).toEqual(["ops 2026-10-26T07:00:00.000Z", "ops 2026-10-27T07:00:00.000Z"]);
  expect(own.delivered[0]?.notice.data).toMatchObject({ from: "2026-10-23", to: "2026-10-26" });
});

it("whose schedule was changed comes at its next slot, and leaves nothing out", async () => {
  const own = await installation({ to: ["ops"] });
  const at = (expression: string) => {
    const [digest] = own.set.notifications.digests ?? [];
    if (digest?.schedule.kind !== "cron") throw new Error("no cron expression");
    const changed = { ...digest, schedule: { ...digest.schedule, expressions: [expression] } };
    own.set = { ...own.set, notifications: { ...own.set.notifications, digests: [changed] } };
  };
  const look = async (hours: number) => {
    own.nowMs += hours * hourMs;
    await own.free();
    await own.notifierOf().runOnce();
  };
  await look(0);
  await look(24);
  expect(own.days()).toEqual(["ops 2026-10-21T00:30:00.000Z"]);
  // At two in the afternoon it is moved to eight in the morning.
  at("0 8 * * *");
  await look(1);
  expect(own.days()).toHaveLength(1);
  await look(24);
  expect(own.days().slice(1)).toEqual(["ops 2026-10-22T06:00:00.000Z"]);
  // It tells of what ended before the change, too.
  expect(own.delivered[1]?.notice.data).toMatchObject({ from: "2026-10-21", to: "2026-10-22" });
});

it("that cannot be made holds up no other notice, and says so", async () => {
  const own = await installation();
  const expiries = new Map([["main", own.nowMs + hourMs]]);
  const rules = { every: false, failuresInRow: undefined, conflicts: undefined, blocked: false, unknown: false };
  const more = { missed: false, drift: false, recovery: false, stale: false, tokenExpiring: true };
  const policies = [
    testPolicy({ notify: [{ ...own.set.policies[0]?.notify?.[0], sink: "ops", ...rules, ...more } as never] }),
  ];
  own.set = { ...own.set, policies };
  const due = [{ to: ["ops"], make: () => Promise.reject(new Error("a bug")) }];
  const notifier = own.notifierOf({ tokens: () => expiries, digests: { due: () => ({ due, changes: new Map() }) } });
  await notifier.runOnce();
  await notifier.runOnce();
  expect(own.delivered.map(({ notice }) => notice.kind)).toEqual(["token-expiring"]);
  expect(own.log.named("digest.failed")[0]).toMatchObject({ message: "a bug" });
});
