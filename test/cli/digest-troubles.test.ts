// What `syncline digest` says to people who wait for the data: of each kind of trouble what it
// means, since when, whether it heals by itself, who must do what, and where to look.
import { beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { silentLog } from "../../src/core/event-log.ts";
import { showInstant } from "../../src/core/instant.ts";
import { isDenied } from "../../src/core/limiter.ts";
import type { Outcome } from "../../src/model/outcome.ts";
import type { SlotRecord } from "../../src/model/slot-record.ts";
import { FeedStore } from "../../src/store/feed-store.ts";
import { History } from "../../src/store/history.ts";
import { keepPolicySet } from "../../src/store/kept-policies.ts";
import { Quarantines } from "../../src/store/pauses.ts";
import { redisTimeMs, type Store } from "../../src/store/redis.ts";
import { ServiceLimiter } from "../../src/store/service-limiter.ts";
import { SlotLedger } from "../../src/store/slot-ledger.ts";
import { StartJournal } from "../../src/store/start-journal.ts";
import { runHere } from "../support/commands-here.ts";
import { keepAlive, liveProcess, setOf } from "../support/kept-set.ts";
import { testOutcome } from "../support/outcomes.ts";
import { testPolicy } from "../support/policies.ts";
import { redisForTest, storeForTest } from "../support/redis.ts";

const redis = redisForTest();
const hourMs = 3_600_000;
const hourly = { kind: "every", everyMs: hourMs, spreadMs: 0 } as const;
const timezone = "Asia/Tokyo";
const clockOf = (instantMs: number) => showInstant(instantMs, timezone).slice(11, 16);

async function installation(name: string, policies: readonly ReturnType<typeof testPolicy>[]) {
  const prefix = `${redis.prefix}-${name}`;
  const store = await storeForTest({ url: redis.url, prefix });
  const set = setOf(policies);
  const notifications = { ...set.notifications, link: "https://look.example.com/policies/{policy}" };
  await keepPolicySet(store, { ...set, notifications }, "host/1");
  await liveProcess(store);
  await keepAlive(store);
  const command = (...args: string[]) => runHere([...args, "--prefix", prefix, "--redis-url", redis.url], {});
  const digest = async (): Promise<{ title: string; detail: string; lines: string[] }> =>
    JSON.parse((await command("digest", "--json", "--timezone", timezone)).out);
  return { store, command, digest, nowMs: await redisTimeMs(store) };
}

/** Ends a run of sync job 42 a minute before now, or before the instant that is given. */
async function ended(store: Store, policy: string, end: Partial<Outcome> = {}, nowMs?: number): Promise<void> {
  const at = new Date((nowMs ?? (await redisTimeMs(store))) - 60_000).toISOString();
  const own = { taskId: `${policy}__run__42__1`, policy, slot: at, startedAt: at, finishedAt: at };
  await new History(store).record(testOutcome({ ...own, ...end }));
}

async function breaks(store: Store, kind: "server" | "throttled"): Promise<void> {
  const limits = { concurrencyMax: 4, requestsPerSecond: undefined, failuresMax: 1, probeEveryMs: hourMs };
  const parts = { store, clock: systemClock, log: silentLog };
  const limiter = new ServiceLimiter({ ...limits, service: "main", leaseMs: 60_000 }, parts);
  const permit = await limiter.acquire({ isRead: true });
  if (!isDenied(permit)) await permit.release({ kind, retryAfterMs: 10 * 60_000 });
}

const failed = { status: "failed", reason: "run-failed" } as const;

describe("syncline digest says in plain words", () => {
  const names = [
    "refused",
    "away",
    "ran",
    "job",
    "slow",
    "lost",
    "waits",
    "differs",
    "missed",
    "late",
    "going",
    "overtaken",
    "idle",
    "due",
    "held",
  ];
  const lateNames = ["late", "lost", "going", "overtaken", "idle"];
  const all = names.map((name) =>
    testPolicy({
      ...{ name, schedule: name === "ran" ? undefined : hourly },
      ...(name === "refused" ? { owner: "Ana, 4711" } : {}),
      ...(lateNames.includes(name) ? { expect: { kind: "successBy", at: "06:00", on: "*" } as const } : {}),
      ...(name === "job" ? { action: { kind: "run", syncJobs: [42, 7] } as const } : {}),
    }),
  );
  let digest: { title: string; detail: string; lines: string[] };
  let nowMs: number;

  beforeAll(async () => {
    const own = await installation("all", all);
    const { store } = own;
    nowMs = own.nowMs;
    const end = (policy: string, as: Partial<Outcome>) => ended(store, policy, as, nowMs);
    const ledger = new SlotLedger(store);
    for (const policy of names)
      await ledger.openWatermarks([{ policy, schedule: "x" }], policy === "due" ? nowMs - 2 * hourMs : nowMs);
    await end("refused", { status: "failed", reason: "no-access" });
    await end("away", { status: "failed", reason: "unreachable" });
    await end("ran", failed);
    await end("job", { target: "7", taskId: "job__run__7__1" });
    await end("job", failed);
    await end("slow", { status: "timed-out", reason: "deadline" });
    await end("lost", { status: "unknown", reason: "answer-lost", evidence: "none" });
    await end("waits", { status: "blocked", reason: "approval-waiting" });
    await end("differs", { status: "conflicts", reason: "new-conflicts", newConflicts: 2 });
    const slotMs = nowMs - hourMs;
    const records: Record<string, SlotRecord> = {
      going: { slotMs, state: "started", detail: "", kind: "run", targets: ["42"] },
      idle: { slotMs, state: "skipped", detail: "stale-input" },
    };
    for (const [policy, record] of Object.entries(records)) {
      await ended(store, policy, { status: "succeeded", slot: new Date(nowMs - 2 * hourMs).toISOString() });
      const ofIt = { policy, expectedWatermarkMs: nowMs, newWatermarkMs: nowMs + 1, tasks: [] };
      await ledger.record([{ ...ofIt, records: [record] }]);
    }
    // Its next slot was skipped, since the run of the slot before goes on.
    const goesOn = { id: `overtaken__run__42__${Math.floor(slotMs / 1_000)}`, kind: "run", target: "42" } as const;
    const task = { ...goesOn, service: "main", repository: "HR" };
    await new StartJournal(store).claim(task.id, "me");
    await new StartJournal(store).beginSending(task, "me", { startByMs: nowMs + hourMs, baseline: "" });
    await ended(store, "overtaken", { status: "succeeded", slot: new Date(nowMs - 2 * hourMs).toISOString() });
    await ended(store, "overtaken", { status: "skipped", reason: "overlap", taskId: "overtaken__run__42__2" });
    const miss = { slotMs: nowMs - 30_000, state: "missed", detail: "outside-window", note: "no scheduler" } as const;
    const step = { policy: "missed", expectedWatermarkMs: nowMs, newWatermarkMs: nowMs + 1, tasks: [] };
    await ledger.record([{ ...step, records: [miss] }]);
    const late = { sinceMs: nowMs, fromMs: nowMs - hourMs, atMs: nowMs, toldMs: nowMs, why: "no slot began" };
    const state = { v: 1, expect: "", judgedMs: nowMs, late, sinks: [] };
    for (const name of lateNames)
      await store.redis.hset(store.key("notifications", "deadlines"), name, JSON.stringify(state));
    const slot = { policy: "held", slotMs: nowMs, isSuccess: false, note: "the last ended failed" };
    await new Quarantines(store).count(slot, { after: 1, forMs: hourMs });
    // Why it is stopped stays the reason, whatever a person does besides.
    await own.command("pause", "held", "--until", "30m", "--reason", "ticket 9");
    await own.command("acknowledge", "waits", "--reason", "ticket 7");
    digest = await own.digest();
  });

  const again = "Syncline runs it again (at|on \\w{3}) \\d\\d:\\d\\d";
  const noOwner = "Owner: none is named";
  it.each([
    [
      "refused",
      `failed (at|on) AGO: the service did not let Syncline do it\\. A person must check what main lets .*\\. ${again}, and that fails again until it is mended\\. Owner: Ana, 4711`,
    ],
    [
      "away",
      `failed (at|on) AGO: the service did not answer\\. Heals by itself: ${again}, if main works then\\. A person may .*\\. ${noOwner}`,
    ],
    [
      "ran",
      `failed (at|on) AGO: it ran, and .*\\. A person must look at main .*\\. Syncline does not try again by itself\\. ${noOwner}`,
    ],
    [
      "job",
      `failed \\(sync job 42\\) (at|on) AGO: it ran, and failed at the service\\. A person must look .*\\. ${again}\\. ${noOwner}`,
    ],
    [
      "slow",
      `failed (at|on) AGO: it did not end in its time\\. A person must look at main for the cause\\. ${again}\\. ${noOwner}`,
    ],
    [
      "lost",
      `not known since AGO whether it ran well: no answer of the service is known; its data may be old.*; late since .*\\. A person must look at main whether .*\\. ${again}\\. ${noOwner}`,
    ],
    [
      "waits",
      `waits for an approval since AGO; .*\\. A person must decide at main\\. ${again}\\. ${noOwner}\\. Known to .*: ticket 7`,
    ],
    [
      "differs",
      `ran (at|on) AGO, and left new conflicts: .* differ until .*\\. A person must settle them at main\\. ${noOwner}`,
    ],
    [
      "missed",
      `did not run .*; its data is older than planned\\. Heals by itself: ${again}\\. A person may run it by hand before\\. ${noOwner}`,
    ],
    [
      "late",
      `late since .*, when it should have been done\\. A person must run it by hand, or let it wait\\. ${again}\\. ${noOwner}`,
    ],
    [
      "going",
      `late since .*, when it should have been done: its run of .* has not ended yet\\. It may end by itself\\. A person should look at main what it waits for, and not start it again\\. ${again}\\. ${noOwner}`,
    ],
    ["overtaken", `late since .*: its run of .* has not ended yet\\. .* not start it again\\. ${again}\\. ${noOwner}`],
    [
      "idle",
      `late since .*, when it should have been done\\. A person must run it by hand, or let it wait\\. ${again}\\. ${noOwner}`,
    ],
    ["due", `should have begun .*, and has not\\. The people who run Syncline must look\\. ${noOwner}`],
    [
      "held",
      `stopped by Syncline since .*, as it kept failing \\(1 slot failed;.*\\)\\. A person must mend .* resume it\\. ${again}\\. ${noOwner}`,
    ],
  ])("what is wrong with a policy, and who must act: %s", (name, words) => {
    const ago = `(\\w{3} )?${clockOf(nowMs - 60_000)}`;
    const text = words.replace("AGO", ago);
    const own = digest.lines.filter((line) => line.startsWith(`${name}: `));
    expect(own).toEqual([
      expect.stringMatching(new RegExp(`^${name}: ${text} https://look\\.example\\.com/policies/${name}$`)),
    ]);
  });

  it("in its first line whether all is well, and how many need a person", () => {
    expect(digest.title).toBe(
      "Not fine, 12 need a person: 1 stopped, 5 failed, 1 uncertain, 1 not run, 4 late, 1 not begun, 1 waiting for an approval, 1 with conflicts to settle of 15 policies",
    );
  });

  it("its zone once, and what all ends were", () => {
    const { title, detail, lines } = digest;
    expect([title, detail, ...lines].join("\n").match(/Asia\/Tokyo|JST|GMT|UTC|\dZ/g)).toEqual([timezone]);
    expect(detail).toMatch(/12 ended, 4 good, 8 bad \(5 failed, .*1 not known whether it ran well.*\)/);
  });

  it("that a service is down, who waits for it, and that it heals by itself", async () => {
    const policies = ["hr", "pay", "later"].map((name) =>
      testPolicy({ name, schedule: hourly, ...(name === "hr" ? { owner: "Ana, 4711" } : {}) }),
    );
    policies.push(testPolicy({ name: "alone", schedule: undefined }));
    const own = await installation("down", policies);
    const ledger = new SlotLedger(own.store);
    for (const { name: policy } of policies)
      await ledger.openWatermarks([{ policy, schedule: "x" }], own.nowMs - (policy === "hr" ? 2 * hourMs : 0));
    const step = { policy: "hr", expectedWatermarkMs: own.nowMs - 2 * hourMs, newWatermarkMs: own.nowMs };
    const slotMs = own.nowMs - hourMs;
    const slot: SlotRecord = { slotMs, state: "started", detail: "", kind: "run", targets: ["42"] };
    await ledger.record([{ ...step, records: [slot], tasks: [] }]);
    for (const name of ["pay", "alone"]) await ended(own.store, name, { status: "failed", reason: "unreachable" });
    await breaks(own.store, "server");
    const feed = { service: "main", repository: "HR", list: "activities" } as const;
    await new FeedStore(own.store).failWalk(feed, "no answer", { beganAtMs: 0, waitMs: 0 });
    const { title, lines } = await own.digest();
    expect(title).toBe("Not fine, 1 needs a person: 2 failed, 2 waiting for main (down) of 4 policies");
    expect(lines).toEqual([
      expect.stringMatching(
        /^service main is down since \d\d:\d\d\. Heals by itself: .* goes on when it answers\. If it should be up, tell the people who run main\. 1 policy waits for it: hr; 1 policy failed by it, and runs again .*: pay; 1 policy needs it .*: later\. Owner: Ana, 4711; none is named for pay, later$/,
      ),
      // No slot makes up for it.
      expect.stringMatching(/^alone: failed .*\. A person must run it by hand when main works again\. /),
    ]);
  });

  it("that a service throttles, and that nothing is lost", async () => {
    const own = await installation("patience", [testPolicy({ name: "hr", schedule: undefined })]);
    await ended(own.store, "hr");
    await breaks(own.store, "throttled");
    const { title, lines } = await own.digest();
    expect(title).toBe("No trouble: 1 well of 1 policy, 1 other trouble");
    expect(lines[0]).toMatch(
      /^service main asked Syncline to wait until \S+\. Nothing is lost: Syncline goes on then$/,
    );
  });

  it.each([
    ["activities", "Runs that need it end uncertain", "runs that need it end unknown"],
    ["approvals", "No run is found to wait for one meanwhile", "no run is found blocked meanwhile"],
  ] as const)("that %s cannot be read, and what that means", async (list, then, cure) => {
    const own = await installation(`list-${list}`, [testPolicy({ name: "hr", schedule: undefined })]);
    await ended(own.store, "hr");
    const feed = { service: "main", repository: "HR", list };
    await new FeedStore(own.store).failWalk(feed, "the answer is no list", { beganAtMs: 0, waitMs: 0 });
    const { title, lines } = await own.digest();
    expect(title).toBe("Not fine, 1 needs a person: 1 well of 1 policy, 1 other trouble");
    expect(lines[0]).toMatch(
      new RegExp(`^${list} of main, .* cannot be read since .*\\. ${then}\\. The people who run Syncline must`),
    );
    const { feeds } = JSON.parse((await own.command("status", "--json")).out);
    expect(feeds).toMatchObject([{ cure: expect.stringContaining(cure) }]);
  });

  it("that nothing new is wrong when all of it is known", async () => {
    const own = await installation("known", [testPolicy({ name: "hr" })]);
    await ended(own.store, "hr", failed);
    await own.command("acknowledge", "hr", "--reason", "mended tomorrow");
    const { title, lines } = await own.digest();
    expect(title).toBe("Nothing new is wrong: 1 failed of 1 policy");
    expect(lines[0]).toMatch(/\. Known to \S+: mended tomorrow https:/);
  });
});

it("a digest counts no successes before an unmet expectation, or a cancelled run", async () => {
  const policies = ["watch", "cut"].map((name) => testPolicy({ name, schedule: undefined }));
  const { store, nowMs, digest } = await installation("row", policies);
  for (const policy of ["watch", "cut"])
    for (const day of [2, 3])
      await ended(store, policy, { taskId: `${policy}__run__42__${day}` }, nowMs - day * 24 * hourMs);
  await ended(store, "watch", { status: "failed", reason: "expectation-not-met" }, nowMs);
  await ended(store, "cut", { status: "unknown", reason: "cancelled", evidence: "none" }, nowMs);
  const ago = `(\\w{3} )?${clockOf(nowMs - 60_000)}`;
  expect((await digest()).lines).toEqual([
    expect.stringMatching(new RegExp(`^watch: failed (at|on) ${ago}: a list is not`)),
    expect.stringMatching(new RegExp(`^cut: not known since ${ago} whether`)),
  ]);
});
