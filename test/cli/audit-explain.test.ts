import { describe, expect, it } from "vitest";
import { canonicalJson } from "../../src/core/stable-hash.ts";
import type { SlotRecord } from "../../src/model/slot-record.ts";
import { History } from "../../src/store/history.ts";
import { leaseKey, leaseMs } from "../../src/store/leases.ts";
import { redisTimeMs } from "../../src/store/redis.ts";
import { SlotLedger } from "../../src/store/slot-ledger.ts";
import { entryKey } from "../../src/store/start-entry.ts";
import { commandFixture } from "../support/command-fixture.ts";
import { runHere } from "../support/commands-here.ts";
import { testOutcome } from "../support/outcomes.ts";
import { often } from "../support/processes.ts";

const run = (job: number) => `service: main, run: { syncJobs: [${job}] }, overlap: allow, follow: { until: accepted }`;
const fixture = commandFixture(`
  - { name: often, ${run(1)}, schedule: { every: 1s } }
  - { name: behind, ${run(2)}, schedule: { every: 5s }, catchUpWindow: 1h }
  - { name: strict, ${run(3)}, schedule: { every: 5s }, catchUp: none }
  - { name: closed, ${run(4)}, schedule: { every: 1s }, blackout: [{ cron: "* * * * *", for: 2m }] }
  - { name: waiting, service: main, run: { syncJobs: [5] }, schedule: { every: 1s }, overlap: queue }
  - { name: nightly, ${run(6)}, schedule: { cron: "30 2 * * *", timezone: Europe/Vienna } }
  - { name: by-hand, ${run(7)} }
`);

const iso = (slotMs: number) => new Date(slotMs).toISOString();

/**
 * A minute of silence before the first scheduler starts, then one that works for a few slots and
 * stops.
 */
async function someSlots(prefix: string): Promise<Map<string, readonly SlotRecord[]>> {
  const policies = ["often", "behind", "strict", "closed", "waiting", "nightly"];
  await fixture.inStore(prefix, async (store) => {
    const nowMs = await redisTimeMs(store);
    const schedule = canonicalJson({ kind: "every", everyMs: 5_000, spreadMs: 0 });
    const silent = ["behind", "strict"].map((policy) => ({ policy, schedule }));
    await new SlotLedger(store).openWatermarks(silent, nowMs - 60_000);
    const lease = leaseKey(store, { service: "main", repository: null, target: "5" });
    await store.redis.set(lease, "somebody-else", "PX", leaseMs);
  });
  const one = await fixture.serve(prefix);
  for (const policy of ["often", "strict"])
    await one.until((event) => event["event"] === "task.finished" && event["policy"] === policy);
  // Not a later one, which may overtake the run that stands for the minute of silence.
  await one.until(
    ({ event, policy, covers }) => event === "task.finished" && policy === "behind" && Number(covers) > 0,
  );
  await fixture.command(prefix, "pause", "often", "--reason", "release 14");
  await one.until(({ event, policy }) => event === "slot.skipped" && policy === "often");
  await one.until(({ event, policy }) => event === "slot.skipped" && policy === "closed");
  one.kill("SIGTERM");
  await one.ended();
  return fixture.inStore(prefix, async (store) => {
    const ledger = new SlotLedger(store);
    const entries = policies.map(async (policy) => [policy, (await ledger.holdings(policy)).records] as const);
    return new Map(await Promise.all(entries));
  });
}

describe("syncline audit", () => {
  it("finds planned = recorded, and then exactly what was taken away by hand", async () => {
    const prefix = `${fixture.redis.prefix}-audit`;
    const audit = (...args: string[]) => fixture.command(prefix, "audit", "--config", fixture.file(), ...args);
    const slots = await someSlots(prefix);
    await expect
      .poll(async () => (await audit("often")).out, often)
      .toMatch(/\d+ of \d+ slots are recorded.*; \d+ of the last 30s are not planned yet: look again/);
    const worker = await fixture.serve(prefix, "--roles", "worker");
    // What comes due after the scheduler stopped is another story: `unplanned`.
    const until = ["--until", iso(slots.get("closed")?.at(-1)?.slotMs ?? 0)];
    const whole = await fixture.command(prefix, "audit", "--config", fixture.file(), ...until);
    expect(whole.out).toContain("planned = recorded");
    expect(whole.err).toContain("none can be recorded twice");
    expect(whole.code).toBe(0);
    const report = JSON.parse((await audit(...until, "--json")).out);
    expect(report).toMatchObject({ ok: true, findings: [] });
    const given = ["audit", "--config", fixture.file(), "--json", "--prefix", prefix];
    const variables = { REDIS_URL: fixture.redis.url, TEST_TOKEN: fixture.sandbox().token };
    const stopped = await runHere(given, variables, { signal: AbortSignal.abort() });
    expect([stopped.code, JSON.parse(stopped.out).ok]).toEqual([1, false]);
    expect(stopped.err).toContain("0 of 7 policies were looked at");
    const behind = report.policies.find(({ policy }: { policy: string }) => policy === "behind");
    expect(behind.slots).toBe(behind.recorded);
    expect(behind.slots).toBeGreaterThanOrEqual(12);
    worker.kill("SIGTERM");
    await worker.ended();

    const lost = slots.get("behind")?.at(-3)?.slotMs ?? 0;
    const started = slots.get("often")?.find(({ state }) => state === "started")?.slotMs ?? 0;
    const taskId = `often__run__1__${started / 1_000}`;
    await fixture.inStore(prefix, async ({ redis, key }) => {
      expect(await redis.hdel(key("slots", "behind"), String(lost))).toBe(1);
      expect(await redis.hdel(key("outcomes", "often"), taskId)).toBe(1);
      await redis.hset(key("slots", "nightly"), "1000", JSON.stringify({ state: "missed", detail: "outside-window" }));
    });
    const broken = await fixture.command(prefix, "audit", "--config", fixture.file(), ...until, "--json");
    expect(broken.code).toBe(1);
    expect(JSON.parse(broken.out)).toMatchObject({
      ok: false,
      findings: [
        { policy: "often", problem: "no-outcome", taskId, slot: iso(started) },
        { policy: "behind", problem: "lost", taskId: null, slot: iso(lost) },
      ],
    });
    const text = await audit("behind", "--since", iso(lost), "--until", iso(lost));
    expect(text.out).toContain("1 of 1 slots are off");
    expect(text.out).toContain("the record is lost");
    expect((await audit("behind", "--since", iso(lost + 1), "--until", iso(lost + 5_000))).code).toBe(0);
    const [from, to] = [slots.get("behind")?.at(-5)?.slotMs ?? 0, lost];
    await fixture.inStore(prefix, ({ redis, key }) => redis.hdel(key("slots", "behind"), String(from)));
    const gap = await audit("behind", "--since", iso(from), "--until", iso(to));
    const shown = (slotMs: number) => iso(slotMs).replace("T", " ").replace(".000", "");
    expect(gap.out).toContain(`\nbehind ${shown(from)} to ${shown(to)}: 2 slots; each was due and has no record`);
    expect((await audit("nobody")).code).toBe(2);
  });
});

describe("syncline explain", () => {
  it("explains started, coalesced, skipped, missed slots and times that are no slots", async () => {
    const prefix = `${fixture.redis.prefix}-explain`;
    const explain = async (...args: string[]) =>
      fixture.command(prefix, "explain", ...args, "--config", fixture.file());
    const story = async (...args: string[]) => JSON.parse((await explain(...args, "--json")).out);
    const slots = await someSlots(prefix);
    const find = (policy: string, state: string) =>
      iso(slots.get(policy)?.find((one) => one.state === state)?.slotMs ?? 0);

    const started = await story("often", find("often", "started"));
    expect(started).toMatchObject({
      verdict: "started",
      tasks: [{ journal: "settled", outcome: { status: "accepted" } }],
    });
    const [{ due, queued, sent, answered, finished }] = started.tasks;
    expect([due, queued, sent, answered, finished].toSorted()).toEqual([due, queued, sent, answered, finished]);

    const coalesced = await story("behind", find("behind", "coalesced"));
    expect(coalesced.verdict).toContain("covers it (catchUp: latest)");
    expect(coalesced.tasks).toMatchObject([{ outcome: { status: "accepted" } }]);
    const into = await fixture.command(
      prefix,
      "explain",
      "behind",
      coalesced.record.detail,
      "--config",
      fixture.file(),
    );
    expect(into.out).toMatch(/stands for \d+ older: …, /);
    expect(into.out).toMatch(/queued \+\d+m?s, sent \+\d+m?s, answered \+\d+m?s, finished \+\d+m?s/);

    expect((await story("strict", find("strict", "missed"))).verdict).toContain(
      "more than 30s late, and catchUp is none",
    );
    expect((await story("closed", find("closed", "skipped"))).verdict).toBe(
      "not started: it fell into a blackout (* * * * * for 2m)",
    );
    const paused = await explain("often", find("often", "skipped"));
    expect(paused.out).toMatch(/not started: paused: release 14 \(/);
    expect(paused.out).toMatch(/paused now: policy often until it is resumed: release 14/);
    expect((await story("waiting", find("waiting", "started"))).tasks).toMatchObject([
      {
        outcome: null,
        journal: "claimed",
        queue: expect.stringMatching(/^(delayed|waiting)$/),
        waitsFor: "somebody-else",
      },
    ]);

    const gap = await explain("nightly", "2037-03-29T02:30");
    expect(gap.out).toContain("nightly has no slot at 2037-03-29T02:30");
    expect(gap.out).toContain("clocks in Europe/Vienna never show");
    expect(gap.out).toContain("not due yet");
    expect((await story("nightly", "2026-01-05T03:00:00+01:00")).verdict).toContain("nothing is known");
    expect((await explain("nightly", "tomorrow")).out).toMatch(
      /, slot .* (02:30|03:00|03:30):00 CES?T\)\n {2}not due yet/,
    );
    expect((await explain("nightly", "soon")).err).toContain("soon is no time: write now, 02:30, 7d");
    expect((await explain("by-hand")).err).toContain("no run by hand is known: `syncline run by-hand` starts it");
  });

  it("explains runs by hand, and tasks by their ids: who asked, and how it ended", async () => {
    const prefix = `${fixture.redis.prefix}-by-hand`;
    const config = ["--config", fixture.file()];
    const explain = (...args: string[]) => fixture.command(prefix, "explain", ...args, ...config);
    const run = async (name: string) => {
      const { out } = await fixture.command(prefix, "run", name, ...config, "--reason", "trial", "--wait", "--json");
      return JSON.parse(out)[0].taskId;
    };
    const id = await run("by-hand");
    const told = await explain("by-hand");
    expect(told.out).toMatch(/^by-hand, by hand .*Z.*\n {2}by hand \(run\) by .+@.+: trial\n/);
    expect(told.out).toContain(`  sync job 7, task ${id}\n    due `);
    expect(told.out).toMatch(/sent \+.*answered \+.*finished \+.*\n {4}accepted \(answered, evidence direct\)/);
    expect(told.out).not.toContain("next slot");
    expect((await explain(id)).out).toBe(told.out);

    const second = await run("nightly");
    const newest = await explain("nightly");
    expect(newest.out).toContain(`sync job 6, task ${second}`);
    expect(newest.out).toMatch(/next slot: .* (02:30|03:00|03:30):00 CES?T\)$/);
    const newestRequest = (sends: number) =>
      fixture.inStore(prefix, async (store) => {
        const sentAtMs = Number(await store.redis.hget(entryKey(store, second), "sentAtMs"));
        await store.redis.hset(entryKey(store, second), "lastSentAtMs", sentAtMs + 90_000, "sends", sends);
      });
    const gone = testOutcome({ policy: "gone", taskId: "gone__run__42__1795228200" });
    await fixture.inStore(prefix, (store) => new History(store).record(gone));
    // The permission of a second request was taken back: it never went out.
    await newestRequest(1);
    expect((await explain(second)).out).toMatch(/sent \+\S+, answered/);
    await newestRequest(2);
    expect((await explain(second)).out).toMatch(/sent \+\S+, sent again \+\S+, answered/);
    expect((await explain("gone__run__42__1795228200")).out).toContain(
      "started; its policy is not configured any more\n  sync job 42, task gone__run__42__1795228200",
    );

    const wrong: readonly [readonly string[], string][] = [
      [["by-hand", "02:30"], "has no schedule, so no slot at any time: leave 02:30 out"],
      [[id, "02:30"], "is a task, which has its time: leave 02:30 out"],
      [[`${id}1`], `nothing is known of a task ${id}1`],
      [["gone__run__42__1"], "nothing is known of a task gone__run__42__1"],
      [["nightly__run__6__1795228200"], "nothing is known of a task nightly__run__6__1795228200"],
    ];
    for (const [args, said] of wrong)
      expect(await explain(...args)).toMatchObject({ code: 2, err: expect.stringContaining(said) });
  });
});
