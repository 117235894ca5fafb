// What pages, `status` and digests say of a policy is so: no end that was not, no promise that a
// pause breaks, no proof of nothing.
import { expect, it } from "vitest";
import type { Policy } from "../../../src/config/policy-set.ts";
import { systemClock } from "../../../src/core/clock.ts";
import type { SlotRecord } from "../../../src/model/slot-record.ts";
import { deletionByHand, taskId } from "../../../src/model/task.ts";
import { readSlots } from "../../../src/queries/slot-strips.ts";
import { tasksOf } from "../../../src/schedule/slot-tasks.ts";
import { History } from "../../../src/store/history.ts";
import { keepPolicySet } from "../../../src/store/kept-policies.ts";
import { Pauses, Quarantines } from "../../../src/store/pauses.ts";
import { SlotLedger } from "../../../src/store/slot-ledger.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { createToken } from "../../../src/web/tokens.ts";
import { runHere } from "../../support/commands-here.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { webForTest } from "../../support/web-fixture.ts";
import { type Story, setOfStory } from "../../support/web-story.ts";

const hourMs = 3_600_000;
const cron = (expression: string): Policy["schedule"] => ({
  ...{ kind: "cron", expressions: [expression], timezone: "UTC", spreadMs: 0 },
  dst: { gap: "next", overlap: "first" },
});
const every = (everyMs: number): Policy["schedule"] => ({ kind: "every", everyMs, spreadMs: 0 });
const story: Story = {
  orders: { endings: ["ok", "failed"] },
  ledger: { endings: ["ok", "unknown"] },
  prices: { endings: ["ok", "conflicts"] },
  stock: { endings: ["ok", "ok"], more: { labels: { team: "sales" } } },
  waiting: { endings: ["ok"], more: { overlap: "queue" } },
  beside: { endings: ["ok"], more: { overlap: "allow" } },
  wake: { endings: ["ok"], more: { action: { kind: "activate", syncJobs: [42] } } },
  pulse: { endings: [], more: { schedule: every(2_000) } },
  masks: { endings: [], more: { action: { kind: "run", fromMasks: { name: "*" } } } },
  rare: { endings: [], more: { schedule: cron("50 2 * * *") } },
};
const set = setOfStory(story);
const boss = createToken({ name: "boss", scope: "admin", services: [] });
// Time flies, so that each page is read anew.
let flownMs = 0;
const clock = { ...systemClock, monotonicMs: () => (flownMs += 120_000) };
/** The newest slot of each story. */
const newestMs = Math.floor(Date.now() / hourMs) * hourMs;
const web = await webForTest({ story, set, clock, tokens: () => boss.line });
await keepPolicySet(web.store, set, "host/1");

const textOf = async (path: string, own = web) => {
  const answer = await own.ask(path, { headers: { authorization: `Bearer ${boss.token}` } });
  return (await answer.text()).replace(/<[^>]+>/g, " ").replace(/\s+/g, " ");
};
const here = (...args: string[]) => {
  const { prefix, url } = web.parts.context().target;
  return runHere([...args, "--prefix", prefix, "--redis-url", url]);
};
const command = async (...args: string[]) => (await here(...args)).out;
const skips = (policy: string, inMs = 0) => {
  const at = new Date(Date.now() + inMs).toISOString();
  const ended = { status: "skipped", reason: "overlap", slot: at, startedAt: null, finishedAt: at, durationMs: null };
  const id = taskId({ policy, kind: "run", target: "42", slotMs: Date.parse(at), origin: "manual" });
  return new History(web.store).record(testOutcome({ ...ended, taskId: id, policy, origin: "manual" } as object));
};

it.each([
  ["orders", "failing", "failed (server-error)", "failed at "],
  ["ledger", "unknown", "not known whether it ran well (answer-lost)", "not known since"],
])("a bad end of %s speaks until a run ends well, whatever was skipped since", async (policy, health, words, plain) => {
  await skips(policy);
  await skips(policy, 1);
  expect(await textOf(`/policies/${policy}`)).toContain(words);
  expect(await textOf(`/policies?q=${policy}`)).toContain(words);
  expect(await command("status", policy)).toMatch(new RegExp(`\n${health} +${policy} +(failed|unknown) `));
  expect(await command("digest", "--json")).toContain(`${policy}: ${plain}`);
  const at = new Date(Date.now() + 2).toISOString();
  const good = { taskId: `${policy}__run__42__m${Date.parse(at)}`, policy, slot: at, finishedAt: at };
  await new History(web.store).record(testOutcome(good));
  await skips(policy, 3);
  expect(await command("status", policy)).toMatch(new RegExp(`\nok +${policy} +skipped `));
});

it("the filter for what is paused finds also what needs a person for another reason", async () => {
  const pause = { scope: "policy", name: "prices", note: "books close", actor: "ana", untilMs: null } as const;
  await new Pauses(web.store).set(pause);
  expect(await textOf("/policies?health=conflicts")).toContain("prices");
  expect(await textOf("/policies?health=paused")).toMatch(
    /1 of 10 policies.*prices.* paused by ana: books close before: conflicts/,
  );
  expect(await textOf("/")).toContain(" 1 paused ");
});

it("the list of policies offers no pause of a label without its value", async () => {
  expect(await textOf("/policies?label=team%3Dsales")).toContain("Pause label team=sales…");
  const text = await textOf("/policies?label=team");
  expect(text).toMatch(/1 of 10 policies/);
  expect(text).not.toContain("Pause label");
});

it("a change that is not found is not called none of one's newest", async () => {
  expect(await textOf("/policies?done=gone")).toContain(
    "None of the newest 50 changes of all is yours by this request.",
  );
});

it("to resume promises no start that another pause forbids", async () => {
  const pauses = new Pauses(web.store);
  const by = { note: "upgrade", actor: "bob", untilMs: null };
  await pauses.set({ ...by, scope: "policy", name: "stock" });
  expect(await textOf("/resume?of=policy:stock")).toContain("Its next slot starts again");
  await pauses.set({ ...by, scope: "service", name: "main" });
  const text = await textOf("/resume?of=policy:stock");
  expect(text).not.toContain("Its next slot starts again");
  expect(text).toMatch(/goes on : service main is paused by bob.*upgrade/);
  await pauses.end({ scope: "service", name: "main" }, "bob");
  await pauses.end({ scope: "policy", name: "stock" }, "bob");
});

it("to resume calls a quarantine one, not a pause", async () => {
  const set = setOfStory({ alone: { endings: [] } });
  const own = await webForTest({ story: {}, set, clock, tokens: () => boss.line });
  const ending = { policy: "alone", slotMs: newestMs, isSuccess: false, note: "the disk is full" };
  await new Quarantines(own.store).count(ending, { after: 1, forMs: hourMs });
  expect(await textOf("/resume?of=policy:alone", own)).toMatch(/ quarantined by syncline .*the disk is full/);
  expect(await textOf("/resume?of=service:main", own)).toContain("policy alone is quarantined by syncline");
});

it("the form of a pause counts the slots up to each end that can be chosen", async () => {
  const text = await textOf("/pause?of=policy:stock");
  expect(text).toMatch(/for 1 hour: 1 slot for 4 hours: 4 slots for 8 hours: 8 slots for a day: 24 slots for a week/);
});

it("the next 24 hours show a rare slot of the night beside frequent ones", async () => {
  const text = await textOf("/next");
  expect(text).toMatch(/ 02:50 UTC rare sync job 42/);
  expect(text).toMatch(/ pulse every 2s/);
  expect(await textOf("/next?at=02:00")).toMatch(/ 02:50 UTC rare sync job 42/);
  const pause = { scope: "policy", name: "pulse", note: "soon over", actor: "ana" } as const;
  await new Pauses(web.store).set({ ...pause, untilMs: Date.now() + hourMs });
  expect(await textOf("/next")).toMatch(/ pulse every 2s sync job 42 the first: skipped, paused: soon over \(ana\) /);
  await new Pauses(web.store).set({ ...pause, untilMs: null });
  expect(await textOf("/next")).toMatch(/ pulse every 2s skipped paused: soon over \(ana\) /);
});

it("what was never asked has no evidence", async () => {
  await skips("stock", 5);
  const text = await textOf(`/policies/stock/slots/${new Date(newestMs).toISOString()}`);
  expect(text).toContain("evidence direct: the service said so");
  const { items } = JSON.parse(
    await (
      await web.ask("/api/v1/outcomes?policy=stock&limit=1", {
        headers: { authorization: `Bearer ${boss.token}` },
      })
    ).text(),
  );
  expect(await textOf(`/tasks/${items[0].taskId}`)).not.toMatch(/said so|evidence/);
  expect(await textOf("/policies/stock")).not.toMatch(/last skipped [^,]*, evidence/);
});

it("the first good run of each sync job is compared with no run of another", async () => {
  const at = (minute: number) => new Date(Date.now() + minute * 60_000).toISOString();
  for (const [target, durationMs] of [
    ["1", 60_000],
    ["2", 61_000],
  ] as const) {
    const id = taskId({ policy: "rare", kind: "run", target, slotMs: Date.parse(at(0)), origin: "manual" });
    const times = { slot: at(0), startedAt: at(0), finishedAt: at(1), durationMs, origin: "manual" } as const;
    await new History(web.store).record(testOutcome({ taskId: id, policy: "rare", target, ...times }));
    expect(await textOf(`/tasks/${id}`)).toContain("It is the only good run so far");
  }
});

it("a slot over masks ends as its sync jobs do, or as the lookup of the masks", async () => {
  const hour = Math.floor(Date.now() / hourMs);
  const slotOf = (back: number) => (hour - back) * hourMs;
  const tasks = (back: number, ...targets: string[]) => {
    const named = { policy: "masks", kind: "run", slotMs: slotOf(back), origin: "schedule" } as const;
    return targets.map((target) => taskId({ ...named, target }));
  };
  const record = (back: number): SlotRecord => {
    return { slotMs: slotOf(back), state: "started", detail: "on-time", kind: "run", targets: ["masks"] };
  };
  const ledger = new SlotLedger(web.store);
  await ledger.openWatermarks([{ policy: "masks", schedule: "every hour" }], slotOf(9));
  const records = [5, 4, 3, 2, 1].map(record);
  const marks = { expectedWatermarkMs: slotOf(9), newWatermarkMs: slotOf(-2) };
  await ledger.record([{ policy: "masks", ...marks, records, tasks: [] }]);
  const journal = new StartJournal(web.store);
  for (const back of [3, 1])
    await journal.noteFannedOut(tasks(back, "masks")[0] ?? "", tasks(back, ...(back === 3 ? ["7", "8"] : ["7"])));
  const end = (back: number, target: string, changes: object = {}) => {
    const at = { slot: new Date(slotOf(back)).toISOString(), finishedAt: new Date(slotOf(back) + 1).toISOString() };
    const [id = ""] = tasks(back, target);
    return new History(web.store).record(testOutcome({ taskId: id, policy: "masks", target, ...at, ...changes }));
  };
  await end(4, "masks", { status: "not-started", reason: "masks-unread" });
  await end(3, "7");
  await end(3, "8", { status: "failed", reason: "run-failed" });
  await end(1, "7");
  const path = "/api/v1/policies/masks/slots?limit=5";
  const endings = async () => {
    const { items } = JSON.parse(
      await (await web.ask(path, { headers: { authorization: `Bearer ${boss.token}` } })).text(),
    );
    return items.map(({ ending, note }: Record<string, string>) => (ending === "started" ? [ending, note] : ending));
  };
  const stillOpen = ["started", ""];
  expect(await endings()).toEqual(["succeeded", stillOpen, "failed", "not-started", stillOpen]);
  await web.store.redis.hset(web.store.key("outcomes-kept"), "masks", slotOf(4));
  const dropped = ["started", "no outcome yet, or no longer kept"];
  expect(await endings()).toEqual(["succeeded", stillOpen, "failed", "not-started", dropped]);
});

it("a deletion by hand names its service, as a run without a policy does", async () => {
  const atMs = newestMs - 60_000;
  const at = new Date(atMs).toISOString();
  const named = { policy: deletionByHand, kind: "delete", target: "77", origin: "manual" } as const;
  const id = taskId({ ...named, slotMs: atMs });
  await new History(web.store).record(testOutcome({ ...named, taskId: id, slot: at, finishedAt: at }));
  expect(await textOf("/by-hand")).toContain("delete sync job 77 main");
});

it("runs by hand that are kept no more are not called none", async () => {
  const text = await textOf("/policies/pulse/by-hand");
  expect(text).toContain("What a person started: what goes on, and what has ended as long as its outcome is kept.");
  expect(text).toContain("No run by hand goes on or is kept.");
});

it("a slot without an end is called dropped only where outcomes are", async () => {
  const own = await webForTest({ story: {}, set: setOfStory({ old: { endings: [] } }) });
  const slotMs = newestMs - 732 * hourMs;
  const started: SlotRecord = { slotMs, state: "started", detail: "", kind: "run", targets: ["42"] };
  const ledger = new SlotLedger(own.store);
  await ledger.openWatermarks([{ policy: "old", schedule: "every hour" }], slotMs - 1);
  const marks = { expectedWatermarkMs: slotMs - 1, newWatermarkMs: slotMs };
  await ledger.record([{ policy: "old", ...marks, records: [started], tasks: [] }]);
  const notes = async () => (await readSlots(own.parts.context(), "old", { count: 5 })).slots.map(({ note }) => note);
  expect(await notes()).toEqual([""]);
  await own.store.redis.hset(own.store.key("outcomes-kept"), "old", slotMs);
  expect(await notes()).toEqual(["no outcome yet, or no longer kept"]);
});

it("an audit of no slot proves nothing", async () => {
  expect(await textOf("/audit?from=2020-01-01&to=2020-01-02")).not.toContain("proved");
  expect(await textOf("/audit?policy=stock")).toContain("proved");
});

it("an audit of slots that are not all planned yet proves nothing", async () => {
  const quick = { endings: [], more: { schedule: every(1_000) } };
  const own = await webForTest({ story: {}, set: setOfStory({ quick }) });
  const slotMs = (Math.floor(Date.now() / 1_000) - 1) * 1_000;
  const skipped: SlotRecord = { slotMs, state: "skipped", detail: "paused" };
  const ledger = new SlotLedger(own.store);
  await ledger.openWatermarks([{ policy: "quick", schedule: "every second" }], slotMs - 1);
  const marks = { expectedWatermarkMs: slotMs - 1, newWatermarkMs: slotMs };
  await ledger.record([{ policy: "quick", ...marks, records: [skipped], tasks: [] }]);
  const text = await textOf("/audit", own);
  expect(text).toContain("are not planned yet: look again");
  expect(text).not.toContain("proved");
});

it("an audit counts the policies that no scheduler has planned", async () => {
  const unseen = "1 policy is planned by no scheduler: not checked";
  const text = await textOf("/audit?policy=rare");
  expect(text).toContain(unseen);
  expect(text).not.toContain("no slot was due");
  const both = await here("audit", "stock", "rare");
  expect(both.out).toMatch(new RegExp(`planned = recorded: .*; ${unseen}`));
  expect(both.code).toBe(0);
  expect(JSON.parse(await command("audit", "stock", "rare", "--json"))).toMatchObject({ ok: true, unseen: 1 });
});

it("an audit proves nothing of tasks whose outcomes are no longer kept", async () => {
  const kept = [web.store.key("outcomes-kept"), "stock"] as const;
  await web.store.redis.hset(...kept, Math.floor(Date.now() / hourMs) * hourMs);
  const text = await textOf("/audit?policy=stock");
  const unknown = "of 1 policy older outcomes are no longer kept: tasks of those slots were not looked for";
  expect(text).toContain(`none without an outcome; ${unknown}`);
  expect(text).toMatch(/outcomes are kept since \d{4}-/);
  expect(text).not.toContain("proved");
  expect(await command("audit", "stock")).toContain(unknown);
});

it("to run now promises a wait to no run that is skipped, or starts beside", async () => {
  const { producer } = web.parts.context();
  const words = {
    stock: "While it goes on, a new run of the same sync job is skipped (overlap: skip).",
    waiting: "A new run of the same sync job waits for its end (overlap: queue).",
    beside: "A new run of the same sync job starts beside it (overlap: allow).",
    wake: undefined,
  };
  for (const [name, then] of Object.entries(words)) {
    const policy = set.policies.find((one) => one.name === name) as Policy;
    await producer.enqueue(tasksOf(policy, { slotMs: Date.now(), origin: "manual", covers: [] }));
    const text = await textOf(`/run?of=${name}`);
    expect(text).toMatch(/in flight (activate )?sync job 42, by hand/);
    if (then === undefined) expect(text).not.toContain("new run");
    else expect(text).toContain(then);
    const { err } = await here("run", name);
    expect(err).toContain("in flight before these: ");
    expect(err.includes("these are skipped (overlap: skip)")).toBe(name === "stock");
  }
});

it("requests that are not counted are no 0", async () => {
  expect(await textOf("/services")).toMatch(/breaker closed main – no – \d+ policies/);
  const main = set.services.get("main");
  if (main === undefined) throw new Error("the story has a service main");
  const services = new Map([["main", { ...main, limits: { ...main.limits, concurrencyMax: 4 } }]]);
  const limited = await webForTest({ story: {}, set: { ...set, services }, clock });
  expect(await textOf("/services", limited)).toMatch(/breaker closed main – no 0 of 4 \d+ policies/);
});
