import { describe, expect, it } from "vitest";
import { pauseId } from "../../src/model/pause.ts";
import { Pauses, Quarantines } from "../../src/store/pauses.ts";
import { openStore } from "../../src/store/redis.ts";
import { SlotLedger } from "../../src/store/slot-ledger.ts";
import { commandFixture } from "../support/command-fixture.ts";
import { runHere } from "../support/commands-here.ts";
import { keepPolicies } from "../support/kept-set.ts";
import { startServer } from "../support/redis-servers.ts";

const fixture = commandFixture(`
  - { name: often, service: main, run: { syncJobs: [1] }, schedule: { every: 1s }, overlap: allow, follow: { until: accepted } }
  - { name: other, service: main, run: { syncJobs: [2] }, schedule: { every: 1s }, overlap: allow, follow: { until: accepted } }
`);

const records = (prefix: string, policy: string) =>
  fixture.inStore(prefix, async (store) => (await new SlotLedger(store).holdings(policy)).records);

describe("syncline pause and resume", () => {
  it("skips the slots of one policy, says so with the reason, and goes on after resume", async () => {
    const prefix = `${fixture.redis.prefix}-policy`;
    const command = (...args: string[]) => fixture.command(prefix, ...args);
    const one = await fixture.serve(prefix);
    await one.until(({ event, policy }) => event === "slot.queued" && policy === "often");
    const paused = await command("pause", "often", "--reason", "release 14", "--until", "+1h", "--json");
    expect(JSON.parse(paused.out)).toMatchObject({ scope: "policy", name: "often", note: "release 14", endedBy: null });
    const skipped = await one.until(({ event }) => event === "slot.skipped");
    expect(skipped).toMatchObject({ policy: "often", reason: "paused" });
    expect(skipped["note"]).toMatch(/^release 14 \(.+@.+\)$/);
    expect(one.events.find(({ event }) => event === "pause.set")).toMatchObject({ scope: "policy", name: "often" });
    expect((await fixture.command(prefix, "pause", "--list")).out).toContain("release 14");
    const { out, code } = await command("resume", "often");
    expect([out, code]).toEqual(["policy often resumed", 0]);
    await one.until(({ event }) => event === "pause.cleared");
    const lastSkipped = one.events.filter(({ event }) => event === "slot.skipped").at(-1);
    await one.until(
      ({ event, policy, slot }) =>
        event === "slot.queued" && policy === "often" && String(slot) > String(lastSkipped?.["slot"]),
    );
    const states = (await records(prefix, "often")).map(({ state }) => state).join(" ");
    expect(states).toMatch(/^((coalesced )*started )+(skipped )+((coalesced )*started ?)+$/);
    expect((await records(prefix, "other")).every(({ state }) => state === "started" || state === "coalesced")).toBe(
      true,
    );
    expect((await fixture.command(prefix, "pause", "--list", "--json")).out).toBe("[]");
  });

  it("starts the newest skipped slot once for --catch-up, and its record says so", async () => {
    const prefix = `${fixture.redis.prefix}-catch-up`;
    const command = (...args: string[]) => fixture.command(prefix, ...args);
    await fixture.command(prefix, "pause", "--all", "--reason", "freeze");
    const planner = await fixture.serve(prefix, "--roles", "scheduler");
    await planner.until(({ event, policy }) => event === "slot.skipped" && policy === "often");
    await planner.until(({ event, policy }) => event === "slot.skipped" && policy === "other");
    planner.kill("SIGTERM");
    await planner.ended();
    const before = await records(prefix, "often");
    const answers = await Promise.all(
      [1, 2].map(() => command("resume", "--all", "--catch-up", "--config", fixture.file(), "--json")),
    );
    const caughtUp = answers.flatMap(({ out }) => JSON.parse(out).caughtUp);
    const slotMs = before.at(-1)?.slotMs ?? 0;
    expect(caughtUp.map(({ policy }) => policy)).toEqual(["often", "other"]);
    expect(caughtUp[0]).toMatchObject({ slotMs, tasks: [`often__run__1__${slotMs / 1_000}`] });
    const after = await records(prefix, "often");
    expect(after.at(-1)).toMatchObject({ state: "started", detail: "caught-up", targets: ["1"] });
    expect(after.slice(0, -1)).toEqual(before.slice(0, -1));
    const worker = await fixture.serve(prefix, "--roles", "worker");
    await worker.until(
      ({ event, taskId }) => event === "task.finished" && taskId === `often__run__1__${slotMs / 1_000}`,
    );
  });

  it("starts no slot of a pause that had ended, but one of a pause that was replaced", async () => {
    const prefix = `${fixture.redis.prefix}-ended`;
    const run = "service: main, run: { syncJobs: [1] }, schedule: { every: 1h }";
    const slotMs = await fixture.inStore(prefix, async (store) => {
      await keepPolicies(store, `  - { name: books, ${run} }\n  - { name: wages, ${run} }`);
      const ledger = new SlotLedger(store);
      const nowMs = await ledger.nowMs();
      const minutesAgo = (minutes: number) => nowMs - minutes * 60_000;
      const record = { slotMs: minutesAgo(40), state: "skipped", detail: "paused" } as const;
      for (const [policy, untilMs] of Object.entries({ books: minutesAgo(10), wages: null })) {
        const set = { v: 1, scope: "policy", name: policy, note: "x", actor: "ana", endedBy: null } as const;
        const paused = { ...set, sinceMs: minutesAgo(50), untilMs };
        await store.redis.hset(store.key("pauses"), pauseId(paused), JSON.stringify(paused));
        await ledger.openWatermarks([{ policy, schedule: "x" }], record.slotMs - 1);
        const marks = { expectedWatermarkMs: record.slotMs - 1, newWatermarkMs: nowMs };
        await ledger.record([{ policy, ...marks, records: [record], tasks: [] }]);
      }
      return record.slotMs;
    });
    const resume = async (...of: string[]) => {
      await fixture.command(prefix, "pause", ...of, "--reason", "x");
      const { out } = await fixture.command(prefix, "resume", ...of, "--catch-up", "--json");
      return JSON.parse(out).caughtUp;
    };
    expect(await resume("--service", "main")).toEqual([]);
    expect(await resume("wages")).toMatchObject([{ policy: "wages", slotMs }]);
  });

  it("names what it did not catch up when it is stopped", async () => {
    const prefix = `${fixture.redis.prefix}-stopped`;
    await fixture.command(prefix, "pause", "--all", "--reason", "freeze");
    const given = ["resume", "--all", "--catch-up", "--config", fixture.file(), "--json", "--prefix", prefix];
    const variables = { REDIS_URL: fixture.redis.url, TEST_TOKEN: fixture.sandbox().token };
    const { code, out, err } = await runHere(given, variables, { signal: AbortSignal.abort() });
    expect([code, JSON.parse(out)]).toMatchObject([1, { caughtUp: [], left: ["often", "other"] }]);
    expect(err).toMatch(/^not caught up: stopped, .*: often, other$/m);
  });

  it("names a policy whose paused slot no scheduler has recorded yet", async () => {
    const prefix = `${fixture.redis.prefix}-unrecorded`;
    const run = "service: main, run: { syncJobs: [1] }";
    const policies = `  - { name: hourly, ${run}, schedule: { every: 1h } }
  - { name: follower, ${run}, after: { policy: hourly } }
  - { name: unplanned, ${run}, schedule: { every: 1h } }`;
    await fixture.inStore(prefix, async (store) => {
      await keepPolicies(store, policies);
      const ledger = new SlotLedger(store);
      const sinceMs = (await ledger.nowMs()) - 7_200_000;
      const planned = ["hourly", "follower"].map((policy) => ({ policy, schedule: "x" }));
      await ledger.openWatermarks(planned, sinceMs);
      const set = { v: 1, scope: "all", name: "", note: "freeze", actor: "ana", sinceMs, untilMs: null, endedBy: null };
      await store.redis.hset(store.key("pauses"), pauseId({ ...set, scope: "all" }), JSON.stringify(set));
    });
    const { code, out, err } = await fixture.command(prefix, "resume", "--all", "--catch-up", "--json");
    expect([code, JSON.parse(out)]).toMatchObject([1, { caughtUp: [], left: ["hourly"] }]);
    expect(err).toContain("no scheduler has recorded the last slot yet: hourly\nrun by hand those");
  });

  it("names what it did not catch up when Redis fails in the middle", async () => {
    const { url } = await startServer();
    const target = { url, prefix: "{halfway}" };
    const run = "service: main, run: { syncJobs: [1] }, schedule: { every: 1h }";
    const store = await openStore(target);
    await keepPolicies(store, `  - { name: books, ${run} }\n  - { name: quartz, ${run} }`);
    const ledger = new SlotLedger(store);
    const nowMs = await ledger.nowMs();
    const [sinceMs, slotMs] = [nowMs - 3_000_000, nowMs - 2_400_000];
    const set = { v: 1, scope: "all", name: "", note: "freeze", actor: "ana", sinceMs, untilMs: null, endedBy: null };
    await store.redis.hset(store.key("pauses"), pauseId({ ...set, scope: "all" }), JSON.stringify(set));
    for (const policy of ["books", "quartz"]) {
      await ledger.openWatermarks([{ policy, schedule: "x" }], slotMs - 1);
      const marks = { expectedWatermarkMs: slotMs - 1, newWatermarkMs: nowMs };
      const records = [{ slotMs, state: "skipped", detail: "paused" } as const];
      await ledger.record([{ policy, ...marks, records, tasks: [] }]);
    }
    // Refuses each key that ends with z: those of the second policy.
    await store.redis.call("ACL", "SETUSER", "halfway", "on", ">x", "allchannels", "~*[^z]", "+@all");
    await store.close();
    const given = ["resume", "--all", "--catch-up", "--json", "--prefix", target.prefix];
    const { code, out, err } = await runHere(given, { REDIS_URL: url.replace("//", "//halfway:x@"), TEST_TOKEN: "x" });
    expect([code, JSON.parse(out)]).toMatchObject([1, { caughtUp: [{ policy: "books", slotMs }], left: ["quartz"] }]);
    expect(err).toMatch(/^not caught up: .*Redis did not answer.*: quartz\nrun by hand those/m);
  });

  it("refuses what would pause nothing, or everything by accident", async () => {
    const command = (...args: string[]) => fixture.command(fixture.redis.prefix, ...args);
    const slip = await fixture.command(
      fixture.redis.prefix,
      "pause",
      "oftne",
      "--reason",
      "x",
      "--config",
      fixture.file(),
    );
    expect(slip.code).toBe(2);
    expect(slip.err).toContain("did you mean often?");
    expect((await command("pause", "--service", "man", "--reason", "x", "--config", fixture.file())).err).toContain(
      "did you mean main?",
    );
    expect((await command("pause", "--reason", "x")).err).toContain(
      "name one of POLICY, --service NAME, --label NAME=VALUE and --all",
    );
    expect((await command("pause", "often", "--all", "--reason", "x")).code).toBe(2);
    expect((await command("pause", "--all")).err).toContain("--reason");
    expect((await command("pause", "--all", "--reason", "x", "--until", "2026-01-01T00:00:00Z")).err).toContain(
      "passed",
    );
    expect((await command("resume", "--all", "--catch-up")).err).toContain("no policies are known under the prefix");
    expect((await command("pause", "--list", "--json")).out).toBe("[]");
  });

  it("knows a wrong name of a service from the set that runs, without a file", async () => {
    const prefix = `${fixture.redis.prefix}-slip`;
    const policy = "  - { name: often, service: main, run: { syncJobs: [1] }, schedule: { every: 1h } }";
    await fixture.inStore(prefix, (store) => keepPolicies(store, policy));
    const command = (...args: string[]) => fixture.command(prefix, ...args);
    const slip = await command("pause", "--service", "man", "--reason", "x");
    expect([slip.code, slip.out, slip.err]).toEqual([2, "", expect.stringContaining("did you mean main?")]);
    expect((await command("pause", "--list", "--json")).out).toBe("[]");
    const resumed = await command("resume", "--service", "man");
    expect([resumed.code, resumed.err]).toEqual([2, expect.stringContaining("did you mean main?")]);
  });

  it("resumes what was removed from the files while it was paused", async () => {
    const prefix = `${fixture.redis.prefix}-gone`;
    const policy = "  - { name: often, service: main, run: { syncJobs: [1] }, schedule: { every: 1h } }";
    await fixture.inStore(prefix, (store) => keepPolicies(store, policy));
    const by = { note: "x", actor: "ana", untilMs: null };
    await fixture.inStore(prefix, async (store) => {
      await new Pauses(store).set({ ...by, scope: "service", name: "old" });
      await new Pauses(store).set({ ...by, scope: "policy", name: "old" });
      await new Pauses(store).set({ ...by, scope: "label", name: "team=old" });
      const ending = { policy: "sick", slotMs: 1_000, isSuccess: false, note: "failed" };
      await new Quarantines(store).count(ending, { after: 1, forMs: 3_600_000 });
    });
    const resume = async (...args: string[]) => (await fixture.command(prefix, "resume", ...args)).out;
    expect(await resume("--service", "old")).toBe("service old resumed");
    expect(await resume("old")).toBe("policy old resumed");
    expect(await resume("--label", "team=old")).toBe("label team=old resumed");
    expect(await resume("sick")).toBe("policy sick resumed");
  });
});
