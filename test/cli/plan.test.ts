import { describe, expect, it, onTestFinished } from "vitest";
import { taskId } from "../../src/model/task.ts";
import { History } from "../../src/store/history.ts";
import { Pauses } from "../../src/store/pauses.ts";
import { StartJournal } from "../../src/store/start-journal.ts";
import { keepPolicies } from "../support/kept-set.ts";
import { testOutcome } from "../support/outcomes.ts";
import { redisForTest, storeForTest } from "../support/redis.ts";
import { commandHere } from "../support/simulate-command.ts";

const target = redisForTest();
const store = await storeForTest(target);
const where = ["--prefix", target.prefix, "--redis-url", target.url];

const at = (cron: string) => `schedule: { cron: "${cron}", timezone: Europe/Vienna }`;
const policies = `
  - { name: slow, service: main, run: { syncJobs: [42, 43] }, labels: { team: hr }, ${at("0 20 * * *")} }
  - { name: same, service: main, run: { syncJobs: [42] }, ${at("30 20 * * *")} }
  - { name: late, service: main, run: { syncJobs: [43] }, overlap: queue, ${at("0 21 * * *")} }
  - { name: letters, service: main, run: { syncJobs: [51] }, after: { policy: slow, within: 4h } }
  - { name: closed, service: main, run: { syncJobs: [6] }, ${at("0 22 * * *")}, blackout: [{ cron: "0 22 * * *", for: 1h }] }
  - { name: held, service: main, run: { syncJobs: [7] }, ${at("0 3 * * *")} }
  - { name: fresh, service: main, run: { syncJobs: [8] }, ${at("0 4 * * *")} }
  - { name: reads, service: main, poll: { list: approvals }, labels: { team: hr }, ${at("0 6 * * *")} }`;

const minuteMs = 60_000;

/** Good runs of a policy that took so many minutes. */
async function took(policy: string, ...minutes: number[]): Promise<void> {
  for (const [index, minute] of minutes.entries()) {
    const taskId = `${policy}__run__42__${index}`;
    await new History(store).record(testOutcome({ policy, taskId, durationMs: minute * minuteMs }));
  }
}

const plan = async (...args: string[]) => (await commandHere(["plan", ...args, ...where])).text;
const night = ["--from", "2026-12-01 20:00", "--to", "06:00"];

it("the next slots of a policy show which of them a closed time skips", async () => {
  await keepPolicies(store, policies);
  const first = ["--from", "2026-12-01 20:00", "--count", "1"];
  const rowsOf = async (name: string) =>
    (await plan(name, ...first)).split("\n").map((line) => line.replaceAll(/ {2,}/g, " | "));
  expect(await rowsOf("closed")).toEqual([
    "policy | kind | local | utc | note",
    "closed | run | 2026-12-01 22:00:00 CET | 2026-12-01 21:00:00Z | skipped: blackout (0 22 * * * for 1h)",
  ]);
  expect((await rowsOf("held"))[0]).toBe("policy | kind | local | utc");
});

describe("the plan of a night", () => {
  it("is one time line, with ends and collisions by how long runs really took", async () => {
    await keepPolicies(store, policies);
    await took("slow", 80, 300, 90, 70, 100);
    for (const policy of ["same", "late", "letters", "closed", "held"]) await took(policy, 10);
    await new Pauses(store).set({
      scope: "policy",
      name: "held",
      note: "move of HR",
      actor: "ada@desk",
      untilMs: null,
    });

    const text = await plan(...night);
    const lines = text.split("\n").map((line) => line.replaceAll(/ {2,}/g, " | "));
    expect(lines).toEqual([
      "Planned 2026-12-01 20:00:00 CET to 2026-12-02 06:00:00 CET: 8 slots of 8 policies.",
      "slot | policy | starts | ends about | expected",
      "2026-12-01 20:00 CET 19:00Z | slow | sync jobs 42, 43 | 21:30 CET",
      "2026-12-01 20:30 CET 19:30Z | same | sync job 42 | sync job 42 is skipped, as slow of 20:00 CET goes on (overlap: skip)",
      "2026-12-01 21:00 CET 20:00Z | late | sync job 43 | 21:40 CET | sync job 43 waits 30m for another run (overlap: queue)",
      "2026-12-01 20:00 CET 19:00Z | letters | sync job 51 | 21:40 CET | about 21:30 CET, after slow",
      "2026-12-01 22:00 CET 21:00Z | closed | skipped | blackout (0 22 * * * for 1h)",
      "2026-12-02 03:00 CET 02:00Z | held | skipped | paused: move of HR (ada@desk)",
      "2026-12-02 04:00 CET 03:00Z | fresh | sync job 8",
      "2026-12-02 06:00 CET 05:00Z | reads | poll approvals",
      "2 slots meet a run of the same sync job.",
      "But it is not known how long these take: fresh. --duration POLICY=20m assumes it.",
    ]);
  });

  it("counts the slot of --from among the busiest minutes, as it shows it", async () => {
    await keepPolicies(store, policies);
    const [first] = JSON.parse(await plan(...night, "--json")).slots;
    expect(first).toMatchObject({ policy: "slow", slot: "2026-12-01T19:00:00.000Z" });
    const [busiest] = JSON.parse(await plan(...night, "--peaks", "--json")).peaks;
    expect(busiest).toMatchObject({ from: first.slot, starts: 2, policies: [{ policy: "slow", starts: 2 }] });
  });

  it("says which slots end after the deadline of their policy", async () => {
    await keepPolicies(
      store,
      `
  - { name: slow, service: main, run: { syncJobs: [42] }, ${at("0 5 * * *")}, expect: { successBy: "06:00" } }
  - { name: same, service: main, run: { syncJobs: [44] }, ${at("0 5 * * *")}, expect: { successBy: "06:00" } }`,
    );
    const text = await plan("--from", "2026-12-01 20:00", "--to", "06:00");
    expect(text).toMatch(/slow +sync job 42 +06:30 CET +ends after its deadline, 06:00 CET\n/);
    expect(text).toMatch(/same +sync job 44 +05:10 CET\n/);
    expect(text).toContain("1 slot ends after the deadline of its policy.");
  });

  it("says that it takes as fresh what policies need, where one needs something", async () => {
    const said = "What policies need is taken as fresh at the beginning.";
    const orders = `  - { name: orders, service: main, run: { syncJobs: [42] }, ${at("0 20 * * *")} }`;
    const needs = "needs: { policy: orders, within: 24h }";
    const report = `  - { name: report, service: main, run: { syncJobs: [43] }, ${at("0 3 * * *")}, ${needs} }`;
    await keepPolicies(store, `${orders}\n${report}`);
    expect(await plan("report", ...night)).toContain(said);
    expect(await plan("orders", ...night)).not.toContain(said);
  });

  it("narrows to some policies, and still sees what others do to their sync jobs", async () => {
    await keepPolicies(store, policies);
    await took("slow", 90);
    const { slots, durationsUnknown } = JSON.parse(await plan("same", ...night, "--json"));
    expect(slots).toMatchObject([
      { policy: "same", slot: "2026-12-01T19:30:00.000Z", clashes: [{ target: "42", what: "skipped" }] },
    ]);
    expect(durationsUnknown).toEqual([]);
    const labelled = JSON.parse(await plan(...night, "--label", "team=hr", "--json"));
    expect(labelled.slots.map(({ policy }: { policy: string }) => policy)).toEqual(["slow", "reads"]);
    // What began before --from goes on in it.
    const after = JSON.parse(await plan("same", "--from", "2026-12-01 20:15", "--to", "+1h", "--json"));
    expect(after.slots[0].clashes[0].by).toMatch(/^slow__run__42__/);
    // A duration by hand is what it says.
    expect(await plan("same", ...night, "--duration", "5m")).toContain("No runs of one sync job meet.");
  });

  it("narrowed to a deletion names the run that it meets", async () => {
    const once = "schedule: { once: 2026-12-01T20:15, timezone: Europe/Vienna }";
    const retire = `{ name: retire, service: main, delete: { syncJob: 42, name: Contracts }, ${once} }`;
    await keepPolicies(store, `${policies}\n  - ${retire}`);
    await took("slow", 90);
    const { slots } = JSON.parse(await plan("retire", ...night, "--json"));
    expect(slots).toMatchObject([{ policy: "retire", clashes: [{ target: "42", what: "skipped" }] }]);
  });

  it("lets a slot meet a run of before now only until that has ended", async () => {
    const slotMs = Math.floor(Date.now() / minuteMs - 10) * minuteMs;
    const dueAt = (at: Date) => `schedule: { cron: "${at.getUTCMinutes()} ${at.getUTCHours()} * * *" }`;
    const [before, ahead] = [slotMs, slotMs + 30 * minuteMs].map((ms) => dueAt(new Date(ms)));
    const run = "service: main, run: { syncJobs: [42] }";
    await keepPolicies(store, `  - { name: slow, ${run}, ${before} }\n  - { name: same, ${run}, ${ahead} }`);
    await took("slow", 90);
    const journal = new StartJournal(store);
    const task = { kind: "run", service: "main", repository: null, target: "42" } as const;
    const id = taskId({ ...task, policy: "slow", slotMs, origin: "schedule" });
    await journal.claim(id, "me");
    await journal.beginSending({ ...task, id }, "me", { startByMs: Date.now() + minuteMs, baseline: "{}" });
    const rows = async () => JSON.parse(await plan("--from", "now", "--to", "+1h", "--json")).slots;
    expect(await rows()).toMatchObject([{ policy: "same", clashes: [{ what: "skipped", by: id }] }]);
    const times = { slot: new Date(slotMs).toISOString(), finishedAt: new Date(slotMs + minuteMs).toISOString() };
    await new History(store).record(testOutcome({ ...task, policy: "slow", taskId: id, ...times, durationMs: null }));
    expect(await rows()).toMatchObject([{ policy: "same", clashes: [] }]);
  });

  it("lends what runs really take to simulate", async () => {
    await keepPolicies(store, policies);
    await took("slow", 90);
    const { text } = await commandHere(["simulate", "slow", ...night, "--usual-durations", ...where]);
    expect(text).toContain("the median of the last good runs");
    expect(text).toMatch(/a run takes 10m \(.*slow 90m.*\)/);
    const said = async (duration: string) =>
      (await commandHere(["simulate", "slow", ...night, "--duration", duration, ...where])).text;
    expect(await said("slow=20m")).toContain("the median of the last good runs; of slow: as --duration says");
    const all = await said("20m");
    expect(all).toContain("durations of all policies: as --duration says");
    expect(all).not.toContain("median");
  });

  it("says what it leaves out, and what Redis could tell", async () => {
    await keepPolicies(store, policies);
    const cut = await plan(...night, "--count", "2");
    expect(cut).toContain("8 slots of 8 policies.");
    expect(cut).toContain("From 21:00 CET on slots are not shown: --count shows more.\n2 slots meet a run of the same");
    expect(cut).toContain("\n  21:00 CET late: sync job 43 waits 30m for another run (overlap: queue)\n");
    // The next row is that of a follower, by when it begins; its slot is 20:00.
    expect(await plan(...night, "--count", "3")).toMatch(
      /From 21:\d\d CET on slots are not shown: --count shows more\.\n2 slots meet a run of the same sync job\.\n(?! )/,
    );
    await keepPolicies(
      store,
      `${policies}\n  - { name: dense, service: main, run: { syncJobs: [7] }, schedule: { every: 1m } }`,
    );
    const folded = await plan(...night, "--duration", "dense=10s");
    expect(folded).toContain("609 slots of 9 policies.");
    expect(folded).toMatch(/\n20:00 CET to 2026-12-02 06:00 CET +dense +sync job 7, 601 slots\s*\n/);
    const beside = `\n  - { name: denser, service: main, run: { syncJobs: [7] }, schedule: { every: 1m } }`;
    await keepPolicies(store, `${policies}${beside.replace("denser", "dense")}${beside}`);
    expect(await plan(...night, "--duration", "2m")).toMatch(/ dense .* meet another run: plan dense shows them\n/);
    expect(folded).toMatch(/\n2026-12-02 06:00 CET 05:00Z +reads +poll approvals/);
    expect(await plan(...night, "--dst")).toContain("--dst does nothing with --to");
    expect(await plan("--from", "2026-12-02", "--to", "2026-12-01")).toContain(
      "--to is not after --from: 2026-12-02 00:00:00 CET to 2026-12-01 00:00:00 CET",
    );
    const away = [
      "--config",
      "config/chain.yaml",
      "--from",
      "2026-12-01",
      "--to",
      "+1d",
      "--redis-url",
      "redis://127.0.0.1:1",
    ];
    const { text } = await commandHere(["plan", ...away]);
    expect(text).toContain("Neither pauses nor usual durations are known.");
    expect(text).toContain("But it is not known how long these take: contracts, letters.");
    await store.redis.del(store.key("policy-set"));
    onTestFinished(() => keepPolicies(store, policies));
    expect(await plan(...night)).toContain("no policies are known under the prefix");
  });
});
