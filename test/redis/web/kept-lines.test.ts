// A process with pages draws the lines of policies anew only where something may have changed them:
// after each change a look that remembers shows what one shows that knows nothing. And what open
// pages hear of.
import { expect, it, vi } from "vitest";
import { totalOfSyncJob } from "../../../src/feeds/list-totals.ts";
import type { Pause } from "../../../src/model/pause.ts";
import { readPolicyLines } from "../../../src/queries/policy-lines.ts";
import { FeedStore } from "../../../src/store/feed-store.ts";
import { History } from "../../../src/store/history.ts";
import { NotifyStore } from "../../../src/store/notify-store.ts";
import { Pauses } from "../../../src/store/pauses.ts";
import { acknowledgePolicy, rememberStates } from "../../../src/store/policy-states.ts";
import { SlotLedger } from "../../../src/store/slot-ledger.ts";
import { readLiveVersion } from "../../../src/store/web-sessions.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { testPolicy } from "../../support/policies.ts";
import { storeForTest } from "../../support/redis.ts";

const hourMs = 3_600_000;
const beginMs = Date.parse("2026-11-21T00:00:00Z");
const store = await storeForTest();
const ledger = new SlotLedger(store);
const history = new History(store);
const notes = new NotifyStore(store);
const schedule = { kind: "every", everyMs: hourMs, spreadMs: 0 } as const;
const expectation = { by: "06:00" } as never;
const closed = { blackouts: [], holidays: ["2026-11-21"] };
let policies = ["one", "two", "three"].map((name) =>
  testPolicy({ name, schedule, expect: expectation, ...(name === "two" ? { closed } : {}) }),
);
let nowMs = beginMs + 60_000;
let pauses: Pause[] = [];
let breaker: "open" | "closed" = "closed";
const readStates = rememberStates(store, () => 0);

/** How the policies are to one who remembers, and of how many it read the watermark. */
async function look(): Promise<[health: string, watermarks: number]> {
  const known = { nowMs, pauses, services: [{ service: "main", breaker }] };
  const asked = vi.spyOn(store.redis, "hmget");
  const lines = await readPolicyLines(policies, store, { ...known, readStates });
  const calls = asked.mock.calls.filter(([key]) => key === store.key("watermarks"));
  asked.mockRestore();
  expect(lines).toEqual(await readPolicyLines(policies, store, known));
  const healthOf = new Map(lines.map(({ policy, health }) => [policy.name, health]));
  return [
    policies.map(({ name }) => healthOf.get(name)).join(),
    calls.reduce((sum, [, ...names]) => sum + names.length, 0),
  ];
}

let ended = 0;
function end(policy: string, changes: Parameters<typeof testOutcome>[0] = {}): Promise<unknown> {
  ended += 1;
  const at = { slot: new Date(nowMs - 60_000).toISOString(), finishedAt: new Date(nowMs).toISOString() };
  return history.record(testOutcome({ taskId: `${policy}__run__42__${ended}`, policy, ...at, ...changes }));
}

async function plan(policy: string, toMs: number, state: "started" | "missed" = "started"): Promise<void> {
  const from = (await ledger.plannedUpTo([policy])).get(policy) ?? 0;
  const records = [{ slotMs: toMs, state, detail: "" }];
  await ledger.record([{ policy, expectedWatermarkMs: from, newWatermarkMs: toMs, records, tasks: [] }]);
}

async function walk(startedAtMs: number, open: number): Promise<void> {
  const totals = new Map([
    ["all", open],
    [totalOfSyncJob("42"), open],
  ]);
  const feed = { service: "main", repository: "HR", list: "conflictDetails" } as const;
  await new FeedStore(store).endWalk(feed, { startedAtMs, count: open, whole: true, totals });
}

const pause: Pause = {
  ...{ scope: "policy", name: "two", note: "release", actor: "ana", sinceMs: beginMs, untilMs: beginMs + 5 * hourMs },
  endedBy: null,
} as Pause;
const failed = { status: "failed", reason: "run-failed" } as const;
const late = { sinceMs: beginMs, fromMs: beginMs, atMs: beginMs, toldMs: beginMs, why: "it did not run" };

const changes: readonly [what: string, change: () => unknown, health: string, watermarks: number][] = [
  [
    "nothing has ended",
    () =>
      ledger.openWatermarks(
        policies.map(({ name }) => ({ policy: name, schedule: "hourly" })),
        beginMs,
      ),
    "new,new,new",
    3,
  ],
  ["all end well", () => Promise.all(policies.map(({ name }) => end(name))), "ok,ok,ok", 3],
  ["nothing happens", () => {}, "ok,ok,ok", 0],
  ["a run fails", () => end("one", failed), "failing,ok,ok", 1],
  [
    "a person knows of it",
    () =>
      acknowledgePolicy(store, "one", {
        acknowledgement: { actor: "ana", note: "known", sinceMs: nowMs, state: "failing", targets: { "42": 1 } },
        knownMs: nowMs,
      }),
    "failing,ok,ok",
    1,
  ],
  ["conflicts are counted", () => walk(nowMs, 2), "failing,conflicts,conflicts", 3],
  ["they are settled", () => walk(nowMs + 1, 0), "failing,ok,ok", 3],
  ["a policy of another list is looked at", () => lookApart(), "failing,ok,ok", 0],
  ["a policy is paused", () => (pauses = [pause]), "failing,paused,ok", 1],
  ["nothing happens in the pause", () => {}, "failing,paused,ok", 0],
  ["the pause has another end", () => (pauses = [{ ...pause, untilMs: null }]), "failing,paused,ok", 1],
  ["the pause is over", () => (pauses = []), "failing,ok,ok", 1],
  ["the service is down", () => (breaker = "open"), "failing,service-down,service-down", 3],
  ["the service is up again", () => (breaker = "closed"), "failing,ok,ok", 0],
  ["a slot is due", () => (nowMs = beginMs + hourMs), "failing,ok,ok", 3],
  ["it is not planned for long", () => (nowMs = beginMs + hourMs + 600_000), "failing,unplanned,unplanned", 3],
  ["two is planned", () => plan("two", nowMs), "failing,ok,unplanned", 3],
  ["all are planned", () => Promise.all(["one", "three"].map((name) => plan(name, nowMs))), "failing,ok,ok", 2],
  ["a slot is missed", () => plan("three", nowMs + 1, "missed"), "failing,ok,missed", 1],
  ["two is late", () => expectBy(late), "failing,late,missed", 1],
  ["it has made up for that", () => expectBy(null), "failing,ok,missed", 0],
  [
    "the files change",
    () => (policies = policies.map((one) => ({ ...one, schedule: { ...schedule, everyMs: 60_000 } }))),
    "failing,ok,missed",
    3,
  ],
];

/** What the page of one policy asks. */
function lookApart(): Promise<unknown> {
  const known = { nowMs, pauses, services: [{ service: "main", breaker }] };
  return readPolicyLines([testPolicy({ name: "apart", repository: "IT" })], store, { ...known, readStates });
}

/** What the notifier notes of the deadlines of one policy. */
async function expectBy(found: typeof late | null): Promise<void> {
  const state = { v: 1, expect: "", judgedMs: nowMs, late: found, sinks: [] };
  await notes.take("test", 60_000);
  await notes.save("test", { cursor: "", passed: 0 }, { deadlines: new Map([["two", JSON.stringify(state)]]) });
}

it("a line is drawn anew after each change, and after no other", async () => {
  const seen: unknown[] = [];
  for (const [what, change] of changes) {
    await change();
    seen.push([what, ...(await look())]);
  }
  expect(seen).toEqual(changes.map(([what, , ...expected]) => [what, ...expected]));
});

it("open pages hear of an outcome, a recorded slot and a pause, and of nothing else", async () => {
  const heard = async (change: () => Promise<unknown>) => {
    const before = await readLiveVersion(store);
    await change();
    return (await readLiveVersion(store)) !== before;
  };
  const subject = { scope: "policy", name: "one", note: "release", actor: "ana", untilMs: null } as const;
  expect(await heard(() => end("one"))).toBe(true);
  expect(await heard(() => plan("one", nowMs + hourMs))).toBe(true);
  expect(await heard(() => new Pauses(store).set(subject))).toBe(true);
  const slower = { policy: "one", expectedWatermarkMs: 1, newWatermarkMs: nowMs, records: [], tasks: [] };
  expect(await heard(() => ledger.record([slower]))).toBe(false);
  expect(await heard(() => look())).toBe(false);
});
