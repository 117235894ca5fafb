// `syncline status` without a file: a line a policy, worst first, and what each needs.
import { Redis } from "ioredis";
import { describe, expect, it, vi } from "vitest";
import type { Policy } from "../../src/config/policy-set.ts";
import type { Outcome } from "../../src/model/outcome.ts";
import { History } from "../../src/store/history.ts";
import { Pauses, Quarantines } from "../../src/store/pauses.ts";
import { redisTimeMs, type Store } from "../../src/store/redis.ts";
import { SlotLedger } from "../../src/store/slot-ledger.ts";
import { runHere } from "../support/commands-here.ts";
import { keepAlive, keepSet, liveProcess } from "../support/kept-set.ts";
import { testOutcome } from "../support/outcomes.ts";
import { testPolicy } from "../support/policies.ts";
import { redisForTest, storeForTest } from "../support/redis.ts";

const redis = redisForTest();
const hourMs = 3_600_000;

async function storeOf(
  name: string,
): Promise<{ store: Store; status: (...args: string[]) => ReturnType<typeof runHere> }> {
  const prefix = `${redis.prefix}-${name}`;
  const store = await storeForTest({ url: redis.url, prefix });
  return { store, status: (...args) => runHere(["status", ...args, "--prefix", prefix, "--redis-url", redis.url], {}) };
}

const hourly = (name: string, changes: Partial<Policy> = {}) =>
  testPolicy({ name, schedule: { kind: "every", everyMs: hourMs, spreadMs: 0 }, ...changes });

/** Records the ends of a policy's runs, an hour apart, the last one a minute ago. */
async function ended(store: Store, nowMs: number, policy: string, ...ends: readonly Partial<Outcome>[]) {
  for (const [index, end] of ends.entries()) {
    const at = new Date(nowMs - 60_000 - (ends.length - 1 - index) * hourMs).toISOString();
    const named = { taskId: `${policy}__run__42__${index}`, policy, slot: at, finishedAt: at };
    await new History(store).record(testOutcome({ ...named, ...end }));
  }
}

const failed = { status: "failed", reason: "run-failed" } as const;

describe("syncline status", () => {
  it("shows a line a policy, worst first, with what a person must know", async () => {
    const { store, status } = await storeOf("lines");
    const nowMs = await redisTimeMs(store);
    const ledger = new SlotLedger(store);
    const names = ["ok", "new", "paused", "conflicts", "blocked", "late", "missed", "unknown", "failing", "bad"];
    const labels = { team: "hr" };
    const jobs = { kind: "run", syncJobs: [42, 7] } as const;
    const policies = names.map((name) =>
      hourly(name, name === "conflicts" ? { action: jobs } : name === "failing" || name === "ok" ? { labels } : {}),
    );
    await keepSet(store, [...policies, hourly("tail", { schedule: undefined })]);
    await liveProcess(store);
    await keepAlive(store);
    const marks = names.map((policy) => ({ policy, schedule: "x" }));
    await ledger.openWatermarks(
      marks.filter(({ policy }) => policy !== "late"),
      nowMs,
    );
    await ledger.openWatermarks([{ policy: "late", schedule: "x" }], nowMs - 2 * hourMs);
    await ended(store, nowMs, "ok", failed, {}, { evidence: "inferred", confidence: "likely" });
    await ended(store, nowMs, "paused", failed);
    await ended(
      store,
      nowMs,
      "conflicts",
      { target: "7", taskId: "conflicts__run__7__0" },
      { status: "conflicts", reason: "new-conflicts", newConflicts: 2 },
    );
    await ended(store, nowMs, "blocked", { status: "blocked", reason: "approval-waiting" });
    await ended(store, nowMs, "missed", {});
    await ended(store, nowMs, "unknown", { status: "unknown", reason: "answer-lost", evidence: "none" });
    await ended(store, nowMs, "failing", {}, failed, { ...failed, status: "timed-out" }, failed);
    await ended(store, nowMs, "bad", failed);
    const missed = { slotMs: nowMs - 30_000, state: "missed", detail: "outside-window", note: "no scheduler" } as const;
    await ledger.record([
      { policy: "missed", expectedWatermarkMs: nowMs, newWatermarkMs: nowMs + 1, records: [missed], tasks: [] },
    ]);
    const pause = { scope: "policy", name: "paused", note: "migration", actor: "ann@host", untilMs: null } as const;
    await new Pauses(store).set(pause);
    const slot = { policy: "bad", slotMs: nowMs, isSuccess: false, note: "the last ended failed" };
    await new Quarantines(store).count(slot, { after: 1, forMs: hourMs });

    const { code, out, err } = await status();
    expect([code, err]).toEqual([1, ""]);
    const lines = out.split("\n");
    expect(lines[0]).toBe(
      "11 policies: 1 quarantined, 1 failing, 1 unknown, 1 missed, 1 unplanned, 1 blocked, 1 conflicts, 1 paused, 2 new, 1 ok",
    );
    expect(lines.slice(2, 13).map((line) => line.split(/\s+/).slice(0, 3))).toEqual([
      ["quarantined", "bad", "failed"],
      ["failing", "failing", "failed"],
      ["unknown", "unknown", "unknown"],
      ["missed", "missed", "succeeded"],
      ["unplanned", "late", expect.any(String)],
      ["blocked", "blocked", "blocked"],
      ["conflicts", "conflicts", "conflicts"],
      ["paused", "paused", "failed"],
      ["new", "new", expect.any(String)],
      ["new", "tail", "by"],
      ["ok", "ok", "succeeded"],
    ]);
    expect(lines[2]).toMatch(/ until .*UTC, 1 slot failed; the last ended failed/);
    expect(lines[3]).toMatch(/failed ×3 +(1m|\d+s) ago +.*:00 UTC +59s +every 1h/);
    expect(lines[5]).toMatch(/slot .* UTC missed \(outside-window\): no scheduler/);
    expect(lines[6]).toMatch(/slot .* UTC is due for .* and not planned/);
    expect(lines[8]).toMatch(/every 1h +sync job 42$/);
    expect(lines[9]).toMatch(/every 1h +by ann@host: migration/);
    expect(lines[12]).toMatch(/succeeded \(inferred, likely\) ×2/);
    expect(out).toContain("config: 1a2b3c4d, in force on 1 process since 1970-01-01 00:00:01Z\n  from /p");

    const worst = await status("--limit", "2");
    expect(worst.out).toContain("and 9 more, none of them worse: --limit shows more, --json all");
    const hr = JSON.parse((await status("--json", "--label", "team=hr")).out);
    expect(hr).toMatchObject({ v: 1, ok: false, counts: { failing: 1, ok: 1 } });
    expect(hr.policies).toMatchObject([
      {
        policy: "failing",
        state: "failing",
        needsPerson: true,
        last: { status: "failed", inARow: 3 },
        usualMs: 59_000,
      },
      { policy: "ok", state: "ok", last: { evidence: "inferred", weight: "good" }, next: expect.stringMatching(/:00/) },
    ]);
    expect((await status("ok", "paused")).code).toBe(0);
    await new Pauses(store).set({ ...pause, name: "conflicts" });
    const held = await status("ok", "conflicts");
    expect([held.code, held.out]).toEqual([
      1,
      expect.stringMatching(/conflicts +conflicts .*paused by ann@host: migra/),
    ]);
    expect(await status("--label", "team=fin")).toMatchObject({
      code: 2,
      err: expect.stringMatching(/there is: team=hr/),
    });
    expect(await status("okk")).toMatchObject({ code: 2, err: expect.stringMatching(/did you mean ok\?/) });
    expect(await status("--json", "--limit", "3")).toMatchObject({
      code: 2,
      err: expect.stringMatching(/--limit does/),
    });
    expect(await status("--watch")).toMatchObject({ code: 2, err: expect.stringMatching(/draws on a terminal/) });
  });

  it("tells the next slot that no holiday closes, also after a pause", async () => {
    const { store, status } = await storeOf("closed");
    const nowMs = await redisTimeMs(store);
    const dayMs = 24 * hourMs;
    const dateIn = (days: number) => new Date(nowMs + days * dayMs).toISOString().slice(0, 10);
    const closed = { blackouts: [], holidays: [0, 1, 2].map(dateIn) };
    const names = ["new", "planned", "paused"];
    await keepSet(store, [...names.map((name) => hourly(name, { closed })), hourly("open")]);
    await liveProcess(store);
    await new SlotLedger(store).openWatermarks(
      names.slice(1).map((policy) => ({ policy, schedule: "x" })),
      nowMs,
    );
    const pause = { scope: "policy", name: "paused", note: "migration", actor: "ann@host" } as const;
    await new Pauses(store).set({ ...pause, untilMs: nowMs + dayMs });
    const { policies } = JSON.parse((await status("--json")).out);
    const next = new Map<string, string>(
      policies.map(({ policy, next: at }: { policy: string; next: string }) => [policy, at]),
    );
    for (const name of names) expect([name, next.get(name)]).toEqual([name, `${dateIn(3)}T00:00:00.000Z`]);
    expect(Date.parse(next.get("open") ?? "") - nowMs).toBeLessThanOrEqual(hourMs + 60_000);
  });

  it("takes a missed slot as made up for by a run, not by one that was skipped", async () => {
    const { store, status } = await storeOf("skipped");
    const nowMs = await redisTimeMs(store);
    const jobs = { kind: "run", syncJobs: [42, 7] } as const;
    const names = ["one", "made-up", "several", "bad"];
    await keepSet(
      store,
      names.map((name) => hourly(name, name === "several" ? { action: jobs } : {})),
    );
    await liveProcess(store);
    await keepAlive(store);
    const ledger = new SlotLedger(store);
    const hoursAgo = (hours: number) => nowMs - hours * hourMs;
    const missed = { slotMs: hoursAgo(2), state: "missed", detail: "catch-up-none" } as const;
    for (const policy of names) {
      await ledger.openWatermarks([{ policy, schedule: "x" }], hoursAgo(3));
      const plan = { policy, tasks: [] };
      await ledger.record([
        { ...plan, expectedWatermarkMs: hoursAgo(3), newWatermarkMs: missed.slotMs, records: [missed] },
      ]);
      await ledger.record([{ ...plan, expectedWatermarkMs: missed.slotMs, newWatermarkMs: nowMs, records: [] }]);
    }
    const end = async (policy: string, hours: number, change: Partial<Outcome> = {}) => {
      const at = new Date(hoursAgo(hours)).toISOString();
      const named = { taskId: `${policy}__run__42__${hours}`, policy, slot: at, finishedAt: at };
      await new History(store).record(testOutcome({ ...named, ...change }));
    };
    const skipped = { status: "skipped", reason: "overlap" } as const;
    for (const policy of names) await end(policy, 3);
    await end("made-up", 1);
    await end("several", 1, { target: "7", taskId: "several__run__7__1" });
    await end("bad", 1, failed);
    for (const policy of names) await end(policy, 0, skipped);
    const { policies, counts } = JSON.parse((await status("--json")).out);
    expect(counts).toEqual({ failing: 1, missed: 1, ok: 2 });
    expect(policies.map(({ policy, state }: Record<string, unknown>) => `${policy} ${state}`)).toEqual([
      "bad failing",
      "one missed",
      "made-up ok",
      "several ok",
    ]);
    expect((await status("one")).code).toBe(1);
    expect((await status("made-up")).code).toBe(0);
  });

  it("says which processes run other policies, or reject newer files", async () => {
    const { store, status } = await storeOf("config");
    await keepSet(store, [testPolicy({ schedule: undefined })]);
    const gone = await status();
    expect(gone.code).toBe(1);
    expect(gone.out).toMatch(/config: 1a2b3c4d, taken .* by host\/1; no process runs it now/);
    await liveProcess(store);
    await keepAlive(store);
    expect((await status()).code).toBe(0);
    const rejected = { sinceMs: 9_000, problems: 3, where: "/p/a.yaml:7", message: "policies.0.run: is missing" };
    await liveProcess(store, { where: "host/2", hash: "ffffffff", sinceMs: 2_000, rejected });
    await keepAlive(store);
    const split = await status();
    expect(split.code).toBe(1);
    expect(split.out).toMatch(
      /different policies for more than 5 minutes.*\n.*\nhost\/1 .* 1a2b3c4d .*\nhost\/2 .* ffffffff/,
    );
    expect(split.out).toContain(
      "newer files are rejected since 1970-01-01 00:00:09Z by 1 of 2 processes: /p/a.yaml:7: policies.0.run: is missing (and 2 more problems)",
    );
    expect(JSON.parse((await status("--json")).out).config).toMatchObject({ differs: true, rejected: [{ by: 1 }] });
  });

  it("draws all of it again with --watch, until Ctrl-C", async () => {
    const { store } = await storeOf("watch");
    await keepSet(store, [testPolicy({ schedule: undefined })]);
    const stop = new AbortController();
    const screens: string[] = [];
    const onOut = (screen: string) => {
      screens.push(screen);
      if (screens.length === 2) stop.abort();
    };
    const target = ["--prefix", `${redis.prefix}-watch`, "--redis-url", redis.url];
    const watched = await runHere(["status", "--watch", ...target], {}, { signal: stop.signal, onOut });
    expect(watched.code).toBe(1);
    expect(screens).toHaveLength(2);
    for (const screen of screens) {
      expect(screen.startsWith("\u001b[H\u001b[2J")).toBe(true);
      expect(screen).toMatch(/Ctrl-C ends it\n\n1 policy: 1 new\n/);
    }
  });

  it("asks Redis for the state of each policy once, and a few times besides", async () => {
    const { store, status } = await storeOf("many");
    const names = Array.from({ length: 5_000 }, (_, index) => `policy-${index}`);
    const cron = (index: number) =>
      ({
        kind: "cron",
        expressions: [`${index % 60} ${index % 24} * * *`],
        ...{ timezone: "Europe/Vienna", spreadMs: 0 },
        dst: { gap: "next", overlap: "first" },
      }) as const;
    await keepSet(
      store,
      names.map((name, index) => testPolicy({ name, schedule: cron(index) })),
    );
    await liveProcess(store);
    const nowMs = await redisTimeMs(store);
    await new SlotLedger(store).openWatermarks(
      names.map((policy) => ({ policy, schedule: "x" })),
      nowMs,
    );
    await Promise.all(names.slice(0, 100).map((name) => ended(store, nowMs, name, failed)));
    const sent = vi.spyOn(Redis.prototype, "sendCommand");
    const { out } = await status();
    expect(out).toContain("5000 policies: 100 failing, 4900 new");
    expect(out).toContain("and 4950 more");
    expect(sent.mock.calls.length).toBeLessThan(names.length + 200);
    sent.mockRestore();
  });
});
