import { describe, expect, it } from "vitest";
import type { OutcomeLimits } from "../../src/config/settings.ts";
import { silentLog } from "../../src/core/event-log.ts";
import type { Outcome } from "../../src/model/outcome.ts";
import { Producer } from "../../src/queue/producer.ts";
import { History } from "../../src/store/history.ts";
import { SinkStore } from "../../src/store/sink-store.ts";
import { commandFixture } from "../support/command-fixture.ts";
import { noticeOf, Receiver } from "../support/receiver.ts";
import { sinkOf, startSinks, webhookTo } from "../support/sink-fixture.ts";

const fixture = commandFixture(`
  - { name: nightly, service: main, run: { syncJobs: [1, 2] } }
  - { name: masks, service: main, repository: HR, run: { fromMasks: { name: "*" } } }
`);

let clockMs = Date.parse("2026-11-21T02:30:00Z");

/** Writes an outcome, each a minute after the one before; answers its task's id. */
async function ended(prefix: string, more: Partial<Outcome>, limits?: OutcomeLimits): Promise<string> {
  clockMs += 60_000;
  const at = new Date(clockMs).toISOString();
  const outcome: Outcome = {
    ...{ v: 1, taskId: "", policy: "nightly", service: "main", repository: null, kind: "run", target: "1", covers: 0 },
    ...{ origin: "schedule", slot: at, status: "failed", evidence: "none", reason: "refused", detail: "400" },
    ...{ startedAt: null, finishedAt: at, durationMs: null, attempts: 1, answerLost: false, newConflicts: null },
    count: null,
    ...more,
  };
  const taskId = `${outcome.policy}__run__${outcome.target}__${clockMs / 1_000}`;
  await fixture.inStore(prefix, (store) => new History(store, limits && { limits }).record({ ...outcome, taskId }));
  return taskId;
}

const json = async (prefix: string, ...args: string[]) => {
  const { out, code, err } = await fixture.command(prefix, ...args, "--json");
  return { code, err, ...(out === "" ? {} : { value: JSON.parse(out) }) };
};
const listed = async (prefix: string, ...more: string[]) =>
  (await json(prefix, "failed", "list", ...more)).value.map(({ id }: { id: string }) => id);
const queued = async (prefix: string, id: string) => {
  const producer = new Producer({ url: fixture.redis.url, prefix }, silentLog);
  try {
    return (await producer.find({ service: "main", kind: "run", id }))?.isInFlight;
  } finally {
    await producer.close();
  }
};

describe("syncline failed, tasks", () => {
  it("lists what failed and is not mended since, and nothing that ran to its end", async () => {
    const prefix = `${fixture.redis.prefix}-list`;
    const mended = await ended(prefix, { target: "1" });
    await ended(prefix, { target: "1", status: "succeeded" });
    await ended(prefix, { target: "2", status: "conflicts" });
    const failed = await ended(prefix, { target: "2", status: "missed" });
    expect(await listed(prefix)).toEqual([failed]);
    expect(await listed(prefix, "--corrected")).toEqual([failed, mended]);
    expect((await json(prefix, "failed", "list", "--corrected", "-n", "1")).err).toContain("and 1 more: --limit");
    const { out } = await fixture.command(prefix, "failed", "list", "nightly");
    expect(out).toMatch(/missed +nightly +sync job 2, slot 02:\d\dZ +400$/);
    expect(out).not.toContain(failed);
    expect((await fixture.command(prefix, "failed", "--ids")).out).toContain(failed);
    expect((await fixture.command(prefix, "failed", "replya")).err).toContain(
      "nothing is known of a policy replya: no outcome of it is kept, and no scheduler plans it here; did you mean replay?",
    );
    await fixture.command(prefix, "failed", "discard", failed, "--reason", "known");
    const nothing = await fixture.command(prefix, "failed", "replay", "--policy", "nightly", "--yes");
    expect(nothing.err).toContain(
      "1 task failed, but the same sync job has ended well since; --corrected takes them, too",
    );
    await ended(prefix, { policy: "masks", status: "succeeded" });
    expect(await listed(prefix, "masks")).toEqual([]);
  });

  it("searches many outcomes for what corrected a task; ignores others' tasks", async () => {
    const prefix = `${fixture.redis.prefix}-mended`;
    const first = await ended(prefix, { target: "1" });
    const other = await ended(prefix, { target: "2" });
    await ended(prefix, { target: "1", status: "succeeded" });
    const again = await ended(prefix, { target: "1" });
    for (let index = 0; index < 120; index += 1) await ended(prefix, { target: "3", status: "succeeded" });
    await ended(prefix, { target: "2", status: "skipped", reason: "overlap" });
    await ended(prefix, { target: "2", status: "conflicts" });
    expect(await listed(prefix)).toEqual([again, other]);
    expect(await listed(prefix, "--corrected")).toEqual([again, other, first]);
  });

  it("lists no task whose outcome is no longer kept, and says so", async () => {
    const prefix = `${fixture.redis.prefix}-dropped`;
    const limits = { count: 100, forMs: 86_400_000 };
    for (let index = 0; index < 11; index += 1) await ended(prefix, { target: "3", status: "succeeded" }, limits);
    await ended(prefix, { target: "1" }, limits);
    const kept = await ended(prefix, { target: "2" }, limits);
    for (let index = 0; index < 99; index += 1) await ended(prefix, { target: "3", status: "succeeded" }, limits);
    expect(await listed(prefix)).toEqual([kept]);
    const { err } = await fixture.command(prefix, "failed", "list");
    expect(err).toContain("older outcomes of one policy are no longer kept");
    const toldOf = async (...names: string[]) => (await fixture.command(prefix, "failed", "list", ...names)).err;
    expect(await toldOf("nightly")).toContain("older outcomes of nightly are no longer kept");
    // Also beside one that has failed, a name that nothing is known of is told.
    for (const names of [["masks"], ["masks", "nightly"]])
      expect(await toldOf(...names)).toContain("nothing is known of a policy masks: ");
  });

  it("does one over by a new task by hand, once, and records who did it and why", async () => {
    const prefix = `${fixture.redis.prefix}-replay`;
    const failed = await ended(prefix, { target: "2" });
    const args = ["failed", "replay", failed, "--config", fixture.file(), "--reason", "disk was full"];
    const first = await json(prefix, ...args);
    const into: string = first.value.done[0].into;
    expect([first.code, into]).toEqual([0, expect.stringMatching(/^nightly__run__2__m\d{13}$/)]);
    expect(await queued(prefix, into)).toBe(true);
    expect(await listed(prefix)).toEqual([]);
    const again = await json(prefix, ...args);
    expect([again.code, again.value.left]).toEqual([
      1,
      [{ id: failed, why: expect.stringContaining("not on the failed list") }],
    ]);
    const changes = await json(prefix, "changes");
    expect(changes.value).toMatchObject([
      {
        what: "replay",
        subject: `task ${failed}`,
        reason: "disk was full",
        actor: expect.stringMatching(/.+@.+/),
        before: [{ id: failed, was: "failed (refused)" }],
        after: { tasks: [into] },
      },
    ]);
    await ended(prefix, { target: "2" });
    const beside = await fixture.command(prefix, "failed", "replay", "--policy", "nightly", ...args.slice(3), "--yes");
    expect(beside.err).toContain(`in flight before these: ${into}`);
  });

  it("tells runs by hand at two places apart", async () => {
    const prefix = `${fixture.redis.prefix}-places`;
    const at = (repository: string) => ({ policy: "by-hand.run", target: "42", repository });
    const [hr, fin] = [await ended(prefix, at("HR")), await ended(prefix, at("FIN"))];
    await ended(prefix, { ...at("FIN"), status: "succeeded" });
    expect(await listed(prefix)).toEqual([hr]);
    expect(await listed(prefix, "--corrected")).toEqual([fin, hr]);
    const args = ["failed", "replay", hr, fin, "--config", fixture.file(), "--reason", "again"];
    const { done } = (await json(prefix, ...args)).value;
    expect(new Set(done.map(({ into }: { into: string }) => into)).size).toBe(2);
    for (const { into } of done) expect(await queued(prefix, into)).toBe(true);
  });

  it("needs no --force for a poll: it only reads", async () => {
    const prefix = `${fixture.redis.prefix}-poll`;
    const unread = await ended(prefix, { policy: "reads", kind: "poll", status: "unknown", reason: "no-access" });
    const args = ["failed", "replay", unread, "--config", fixture.file(), "--reason", "token renewed"];
    const { left } = (await json(prefix, ...args)).value;
    expect(left).toEqual([{ id: unread, why: expect.not.stringContaining("force it") }]);
  });

  it("asks for --force where the first start may be at work still", async () => {
    const prefix = `${fixture.redis.prefix}-force`;
    const unknown = await ended(prefix, { status: "unknown", reason: "no-evidence" });
    const args = ["failed", "replay", unknown, "--config", fixture.file(), "--reason", "looked"];
    const refused = await json(prefix, ...args);
    expect([refused.code, refused.value.done]).toEqual([1, []]);
    expect(refused.value.left[0].why).toContain("look, then force it");
    expect(await listed(prefix)).toEqual([unknown]);
    expect((await json(prefix, ...args, "--force")).code).toBe(0);
  });

  it("leaves a task whose policy or service changed, and a deletion by hand", async () => {
    const prefix = `${fixture.redis.prefix}-elsewhere`;
    const moved = await ended(prefix, { target: "1", repository: "FIN" });
    const masked = await ended(prefix, { target: "7", policy: "masks", repository: "FIN" });
    const gone = await ended(prefix, { policy: "by-hand.run", service: "old" });
    const deletion = await ended(prefix, { policy: "by-hand.delete", kind: "delete", target: "9" });
    const args = ["failed", "replay", "--all", "--yes", "--config", fixture.file(), "--reason", "r"];
    const { code, value } = await json(prefix, ...args);
    expect([code, value.done]).toEqual([1, []]);
    const why = new Map(value.left.map((one: { id: string; why: string }) => [one.id, one.why]));
    const changed = expect.stringContaining("something else");
    expect([moved, masked, gone, deletion].map((id) => why.get(id))).toEqual([
      changed,
      changed,
      expect.stringContaining("service is not configured"),
      "a deletion by hand is not done over: give it again, with `syncline delete`",
    ]);
    expect(new Set(await listed(prefix))).toEqual(new Set([moved, masked, gone, deletion]));
  });

  it("does many of one sync job over by one task, and takes a group only with --yes", async () => {
    const prefix = `${fixture.redis.prefix}-group`;
    await ended(prefix, { target: "1" });
    await ended(prefix, { target: "1", status: "missed" });
    await ended(prefix, { target: "7", policy: "masks", repository: "HR" });
    await ended(prefix, { target: "3" });
    const args = ["failed", "replay", "--all", "--config", fixture.file(), "--reason", "r"];
    const asked = await fixture.command(prefix, ...args);
    expect([asked.code, asked.err]).toEqual([2, expect.stringContaining("this would replay 4")]);
    const { code, value } = await json(prefix, ...args, "--yes");
    expect(code).toBe(1);
    const made: Set<string> = new Set(value.done.map(({ into }: { into: string }) => into));
    expect([...made].map((id) => id.replace(/m\d+$/, ""))).toEqual(["nightly__run__1__", "masks__run__7__"]);
    expect(value.left).toEqual([
      { id: expect.stringContaining("__3__"), why: expect.stringContaining("something else") },
    ]);
    await Promise.all([...made].map(async (id) => expect(await queued(prefix, id)).toBe(true)));
  });

  it("takes several off, which the changes of their policy show", async () => {
    const prefix = `${fixture.redis.prefix}-several`;
    const ids = [await ended(prefix, { target: "1" }), await ended(prefix, { target: "2" })];
    await fixture.command(prefix, "failed", "discard", ...ids, "--reason", "retired");
    const { value } = await json(prefix, "changes", "nightly", "--config", fixture.file());
    expect(value).toMatchObject([{ what: "discard", reason: "retired" }]);
  });

  it("finds an old task of a long list by its id, and says what a group leaves out", async () => {
    const prefix = `${fixture.redis.prefix}-many`;
    const old = await ended(prefix, {});
    await fixture.inStore(prefix, ({ redis, key }) => {
      const newer = Array.from({ length: 20_000 }, (_, index) => `newer__run__${index}__1`);
      return redis.zadd(key("failed"), ...newer.flatMap((id) => [clockMs + 1, id]));
    });
    const discard = (...args: string[]) => json(prefix, "failed", "discard", ...args, "--reason", "retired");
    const group = await discard("--policy", "nightly", "--yes");
    expect([group.code, group.value.done]).toEqual([1, []]);
    expect(group.err).toContain("only the newest 20000 failed tasks were looked at: name older ones by id");
    const { code, value, err } = await discard(old);
    expect([code, value, err]).toEqual([0, { v: 1, done: [{ id: old }], left: [] }, ""]);
  });

  it("says what is wrong with what was asked", async () => {
    const prefix = `${fixture.redis.prefix}-wrong`;
    const failed = await ended(prefix, {});
    const code = async (...args: string[]) => (await fixture.command(prefix, "failed", ...args, "--reason", "r")).code;
    expect(await code("replay")).toBe(2);
    expect(await code("replay", failed, "--all")).toBe(2);
    expect(await code("discard", "--all", "--policy", "nightly", "--yes")).toBe(2);
    const without = await fixture.command(prefix, "failed", "replay", failed);
    expect(without).toMatchObject({ code: 2, err: expect.stringContaining("no policies are known under the prefix") });
    const named = await fixture.command(prefix, "failed", "discard", "nightly", "--reason", "r");
    expect(named).toMatchObject({ code: 1, err: expect.stringContaining("a policy: write --policy nightly") });
    expect(await code("discard", "--policy", "nightly", "--yes")).toBe(0);
    expect(await listed(prefix)).toEqual([]);
  });
});

describe("syncline failed, deliveries", () => {
  it("gives them back to their sink, or takes them off", async () => {
    const target = { url: fixture.redis.url, prefix: `${fixture.redis.prefix}-sink` };
    const hook = await new Receiver().start();
    hook.answer = () => ({ status: 422 });
    const { sinks, log } = await startSinks(target, [sinkOf("ops", webhookTo(hook.url))]);
    await sinks.enqueue(["a", "b", "c"].map((id) => ({ sink: "ops", notice: noticeOf(id) })));
    await log.until(({ event, notice }) => event === "sink.gave-up" && notice === "c");
    await fixture.inStore(target.prefix, (store) => new SinkStore(store).noteSeen(["ops"]));
    expect((await listed(target.prefix, "--sink", "ops")).toSorted()).toEqual(["a", "b", "c"]);
    expect((await json(target.prefix, "failed", "discard", "b", "--reason", "old")).value.done).toEqual([{ id: "b" }]);
    hook.answer = () => ({ status: 200 });
    const replayed = await json(target.prefix, "failed", "replay", "--sink", "ops", "--reason", "mended", "--yes");
    expect(replayed.code).toBe(0);
    await hook.until(() => hook.accepted.length === 2);
    expect(hook.accepted).toEqual(["a", "c"]);
    expect(await listed(target.prefix)).toEqual([]);
    const { out } = await fixture.command(target.prefix, "changes");
    expect(out).toMatch(/replay .*mended/);
    await hook.stop();
  });
});

describe("changes by hand", () => {
  it("are recorded for a run", async () => {
    const prefix = `${fixture.redis.prefix}-run`;
    const { out } = await fixture.command(prefix, "run", "nightly", "--config", fixture.file(), "--json");
    const { value } = await json(prefix, "changes");
    expect(value).toMatchObject([
      { what: "run", subject: "policy nightly", reason: null, before: null, after: { tasks: JSON.parse(out).tasks } },
    ]);
  });

  it("are recorded for pause and resume", async () => {
    const prefix = `${fixture.redis.prefix}-changes`;
    await fixture.command(prefix, "pause", "--service", "main", "--reason", "release 14");
    await fixture.command(prefix, "resume", "--service", "main");
    await fixture.command(prefix, "resume", "--service", "main");
    const { value } = await json(prefix, "changes");
    expect(value).toMatchObject([
      { what: "resume", subject: "service main", reason: null, before: [{ note: "release 14" }] },
      { what: "pause", subject: "service main", reason: "release 14", after: { scope: "service", name: "main" } },
    ]);
  });
});
