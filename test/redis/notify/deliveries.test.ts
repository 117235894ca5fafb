import { describe, expect, it, onTestFinished } from "vitest";
import { readAttention } from "../../../src/queries/attention.ts";
import { isInstallationWell } from "../../../src/queries/status.ts";
import { NoticeQueues } from "../../../src/queue/notice-queues.ts";
import { openStore, redisTimeMs } from "../../../src/store/redis.ts";
import { SinkStore } from "../../../src/store/sink-store.ts";
import { setOf } from "../../support/kept-set.ts";
import { refusal, startMailServer } from "../../support/mail-server.ts";
import { noticeOf, Receiver } from "../../support/receiver.ts";
import { redisForTest } from "../../support/redis.ts";
import { sinkOf, startSinks, webhookTo } from "../../support/sink-fixture.ts";
import { TestLog } from "../../support/test-log.ts";

const redis = redisForTest();
let tests = 0;
/** A Redis of its own for each test. */
const target = () => {
  tests += 1;
  return { url: redis.url, prefix: `${redis.prefix}-${tests}` };
};
const receiver = async () => {
  const started = await new Receiver().start();
  onTestFinished(() => started.stop());
  return started;
};
const ids = (count: number) => Array.from({ length: count }, (_, index) => `n:${index + 1}`);
const encoded = (all: string[]) => all.map((id) => encodeURIComponent(id));
const to = (sink: string, all: string[], policy?: string) => all.map((id) => ({ sink, notice: noticeOf(id, policy) }));

describe("deliveries", () => {
  it("keep their order through failures, over two replicas, and none is left out", async () => {
    const hook = await receiver();
    // Every fifth is refused twice, in three ways.
    hook.answer = (id, earlier) =>
      earlier < 2 && Number(id.slice(4)) % 5 === 0
        ? { status: [500, 404, 429][Number(id.slice(4)) % 3] ?? 500 }
        : { status: 204 };
    const where = target();
    const settings = sinkOf("ops", webhookTo(hook.url));
    const [one, two] = [await startSinks(where, [settings]), await startSinks(where, [settings])];
    const all = ids(12);
    await one.sinks.enqueue(to("ops", all.slice(0, 7)));
    await two.sinks.enqueue(to("ops", all.slice(7)));
    await hook.until(() => hook.accepted.length === 12);
    expect(hook.accepted).toEqual(encoded(all));
    // The two that were refused twice were asked for before anything behind them.
    expect(hook.received.map(({ id }) => id)).toEqual(
      encoded(all.flatMap((id) => (["n:5", "n:10"].includes(id) ? [id, id, id] : [id]))),
    );
  });

  it("go one at a time over all replicas, also after Redis was emptied", async () => {
    const hook = await receiver();
    const where = target();
    const { sinks } = await startSinks(where, [sinkOf("ops", webhookTo(hook.url))]);
    const store = await openStore(where);
    onTestFinished(() => store.close());
    await sinks.enqueue(to("ops", ["before"]));
    await hook.until(() => hook.accepted.length === 1);
    await store.redis.del(await store.redis.keys(`${where.prefix}:sink.ops:*`));
    await sinks.enqueue(to("ops", ["after"]));
    await hook.until(() => hook.accepted.length === 2);
    expect(await store.redis.hget(`${where.prefix}:sink.ops:meta`, "concurrency")).toBe("1");
  });

  it("wait while another owner may hold the prefix", async () => {
    const hook = await receiver();
    const where = target();
    let isForeign = true;
    const mayBeForeign = () => isForeign;
    const { sinks } = await startSinks(where, [sinkOf("ops", webhookTo(hook.url))], { mayBeForeign });
    const store = await openStore(where);
    onTestFinished(() => store.close());
    await sinks.enqueue(to("ops", ["theirs"]));
    await expect.poll(() => store.redis.pttl(`${where.prefix}:sink.ops:limiter`)).toBeGreaterThan(0);
    expect(hook.received).toEqual([]);
    isForeign = false;
    await hook.until(() => hook.accepted.length === 1);
  });

  it("keep the order of calls that do not wait for each other", async () => {
    const hook = await receiver();
    const { sinks } = await startSinks(target(), [sinkOf("ops", webhookTo(hook.url))]);
    const all = ids(30);
    await Promise.all(all.map((id) => sinks.enqueue(to("ops", [id]))));
    await hook.until(() => hook.accepted.length === 30);
    expect(hook.accepted).toEqual(encoded(all));
  });

  it("have the same id and body on every try", async () => {
    const hook = await receiver();
    hook.answer = (_, earlier) => ({ status: earlier === 0 ? 503 : 200 });
    const { sinks, log } = await startSinks(target(), [sinkOf("ops", webhookTo(hook.url))]);
    await sinks.enqueue(to("ops", ["a"]));
    await hook.until(() => hook.accepted.length === 1);
    await log.until(({ event }) => event === "sink.recovered");
    const [first, second] = hook.received;
    expect([second?.id, second?.body]).toEqual([first?.id, first?.body]);
    expect(log.named("sink.failing")).toMatchObject([{ sink: "ops", reason: "answered with status 503" }]);
  });

  it("by e-mail come after a 4xx, and after a 5xx stand in the failed list", async () => {
    let replies = [451, 250, 554];
    const { mails, settings } = await startMailServer({
      onMailFrom: (_, __, done) => {
        const [status = 250, ...rest] = replies;
        replies = rest;
        done(status < 400 ? null : refusal(status, "not now"));
      },
    });
    const { sinks, log } = await startSinks(target(), [sinkOf("mail", settings)]);
    await sinks.enqueue(to("mail", ["good", "bad", "next"]));
    const gaveUp = await log.until(({ event }) => event === "sink.gave-up");
    expect(gaveUp).toMatchObject({ notice: "bad", reason: "answered with status 554" });
    await expect.poll(() => mails.length).toBe(2);
    expect(log.named("sink.failing")).toMatchObject([{ sink: "mail", reason: "answered with status 451" }]);
  });

  it("that are handed over twice arrive once", async () => {
    const hook = await receiver();
    const { sinks } = await startSinks(target(), [sinkOf("ops", webhookTo(hook.url))]);
    await sinks.enqueue(to("ops", ["a", "b"]));
    await hook.until(() => hook.accepted.length === 2);
    await sinks.enqueue(to("ops", ["a", "b", "c"]));
    await hook.until(() => hook.accepted.length === 3);
    expect(hook.accepted).toEqual(["a", "b", "c"]);
  });

  it("of a slow receiver delay no other", async () => {
    const [slow, quick] = [await receiver(), await receiver()];
    slow.answer = () => "hold";
    const { sinks } = await startSinks(target(), [
      sinkOf("slow", webhookTo(slow.url)),
      sinkOf("quick", webhookTo(quick.url)),
    ]);
    await sinks.enqueue([...to("slow", ids(5)), ...to("quick", ids(5))]);
    await quick.until(() => quick.accepted.length === 5);
    expect(slow.accepted).toEqual([]);
  });

  it("wait as long as the receiver wants, all of them", async () => {
    const hook = await receiver();
    hook.answer = (_, earlier) =>
      hook.received.length === 0 && earlier === 0 ? { status: 429, headers: { "retry-after": "2" } } : { status: 200 };
    const { sinks } = await startSinks(target(), [sinkOf("ops", webhookTo(hook.url))]);
    await sinks.enqueue(to("ops", ["a", "b"]));
    await hook.until(() => hook.accepted.length === 2);
    expect(hook.accepted).toEqual(["a", "b"]);
    const [refused, taken] = hook.received;
    expect((taken?.atMs ?? 0) - (refused?.atMs ?? 0)).toBeGreaterThanOrEqual(1_990);
  });

  it.each(["at once", "after its removal"])("go on when the sink is mended in the policies, %s", async (when) => {
    const [broken, mended] = [await receiver(), await receiver()];
    broken.answer = () => ({ status: 429, headers: { "retry-after": "600" } });
    const where = target();
    const { sinks } = await startSinks(where, [sinkOf("ops", webhookTo(broken.url))]);
    const store = await openStore(where);
    onTestFinished(() => store.close());
    await sinks.enqueue(to("ops", ["a"]));
    await expect.poll(() => store.redis.pttl(`${where.prefix}:sink.ops:limiter`)).toBeGreaterThan(60_000);
    if (when === "after its removal") sinks.adopt(new Map());
    sinks.adopt(new Map([["ops", sinkOf("ops", webhookTo(mended.url))]]));
    await mended.until(() => mended.accepted.length === 1);
    expect(mended.accepted).toEqual(["a"]);
  });

  it("end with the settings they began with, and are told once, when the sink changes", async () => {
    const hook = await receiver();
    hook.answer = () => ({ status: 200, afterMs: 300 });
    const settings = sinkOf("ops", webhookTo(hook.url));
    const { sinks, log } = await startSinks(target(), [settings]);
    await sinks.enqueue(to("ops", ["a"]));
    await hook.until(() => hook.received.length === 1);
    sinks.adopt(new Map([["ops", { ...settings, queueMax: settings.queueMax + 1 }]]));
    await sinks.enqueue(to("ops", ["b"]));
    await hook.until(() => hook.accepted.length === 2);
    expect(hook.received.map(({ id }) => id)).toEqual(["a", "b"]);
    expect(log.named("sink.failing")).toEqual([]);
  });

  it("of a sink that is not there wait for it, with those that come meanwhile", async () => {
    const hook = await receiver();
    const settings = sinkOf("ops", webhookTo(hook.url));
    const { sinks, log } = await startSinks(target(), [settings]);
    hook.answer = () => ({ status: 500 });
    await sinks.enqueue(to("ops", ["a"]));
    await hook.until(() => hook.received.length >= 1);
    sinks.adopt(new Map());
    await sinks.enqueue(to("ops", ["b"]));
    expect(log.named("sink.not-configured")).toMatchObject([{ sink: "ops", count: 1 }]);
    hook.answer = () => ({ status: 200 });
    sinks.adopt(new Map([["ops", settings]]));
    await hook.until(() => hook.accepted.length === 2);
    expect(hook.accepted).toEqual(["a", "b"]);
  });

  it("of a sink that only a newer replica knows are delivered by that one", async () => {
    const hook = await receiver();
    const where = target();
    const store = await openStore(where);
    onTestFinished(() => store.close());
    const older = await startSinks(where, []);
    await older.sinks.enqueue(to("new", ids(2)));
    // Without the newer replica the queue is forgotten as that of a removed sink.
    expect((await new SinkStore(store).all()).map(({ name }) => name)).toEqual(["new"]);
    await startSinks(where, [sinkOf("new", webhookTo(hook.url))]);
    await hook.until(() => hook.accepted.length === 2);
    expect(hook.accepted).toEqual(encoded(ids(2)));
  });
});

describe("a worker that stops", () => {
  // Nobody takes over from a dead worker within the test: what goes on was given back.
  const takeOverAfterMs = 120_000;

  it("lets a delivery end that is answered soon", async () => {
    const hook = await receiver();
    const { sinks } = await startSinks(target(), [sinkOf("ops", webhookTo(hook.url))], { takeOverAfterMs });
    hook.answer = () => ({ status: 200, afterMs: 200 });
    await sinks.enqueue(to("ops", ["a", "b"]));
    await hook.until(() => hook.received.length === 1);
    await sinks.stop();
    expect(hook.accepted).toEqual(["a"]);
  });

  it("gives a delivery back that is not, still the first", async () => {
    const hook = await receiver();
    const where = target();
    const settings = sinkOf("ops", webhookTo(hook.url));
    const { sinks } = await startSinks(where, [settings], { takeOverAfterMs });
    hook.answer = () => "hold";
    await sinks.enqueue(to("ops", ["a", "b"]));
    await hook.until(() => hook.received.length === 1);
    await sinks.stop();
    hook.answer = () => ({ status: 200 });
    await startSinks(where, [settings], { takeOverAfterMs });
    await hook.until(() => hook.accepted.length === 2);
    expect(hook.accepted).toEqual(["a", "b"]);
  });
});

describe("a queue that is full", () => {
  it("drops the newest, counts each exactly, and says so when there is room again", async () => {
    const hook = await receiver();
    hook.answer = () => ({ status: 503 });
    const where = target();
    const { sinks, log, added } = await startSinks(where, [sinkOf("ops", webhookTo(hook.url), { queueMax: 5 })]);
    await sinks.enqueue(to("ops", ids(3)));
    await sinks.enqueue(to("ops", ids(9)));
    await sinks.enqueue(to("ops", ["late", "later"]));
    // 3 and 4 more of which 2 had room; what is there already is no drop.
    expect(added.get("syncline_sink_dropped_total ops")).toBe(4 + 2);
    hook.answer = () => ({ status: 200 });
    await hook.until(() => hook.accepted.length === 5);
    expect(hook.accepted).toEqual(encoded(ids(5)));
    await expect.poll(async () => (await sinks.queues.backlog("ops")).waiting).toBe(0);
    await sinks.enqueue(to("ops", ["after"]));
    expect(log.named("sink.dropped").reduce((sum, event) => sum + Number(event["count"]), 0)).toBe(6);
    expect(log.named("sink.has-room")).toMatchObject([{ sink: "ops", dropped: 6 }]);
    const queued = log.named("notice.queued").map(({ id }) => id);
    expect([...new Set(queued)]).toEqual([...ids(5), "after"]);
    const store = await openStore(where);
    onTestFinished(() => store.close());
    expect(await new SinkStore(store).all()).toMatchObject([{ name: "ops", dropped: 6 }]);
  });
});

describe("the failed list", () => {
  it("takes what the receiver refuses for ever, while the others go on", async () => {
    const hook = await receiver();
    hook.answer = (id) => ({ status: id === "b" ? 422 : 200 });
    const where = target();
    const { sinks, log, added } = await startSinks(where, [sinkOf("ops", webhookTo(hook.url))]);
    await sinks.enqueue(to("ops", ["a", "b", "c"]));
    await hook.until(() => hook.received.length === 3);
    await log.until(({ event }) => event === "sink.gave-up");
    expect(log.named("sink.gave-up")).toMatchObject([
      { sink: "ops", notice: "b", result: "refused", reason: "answered with status 422" },
    ]);
    const queues = new NoticeQueues(where, new TestLog());
    onTestFinished(() => queues.close());
    expect(await queues.failed("ops", 10)).toMatchObject([
      { sink: "ops", notice: noticeOf("b"), reason: "answered with status 422", tries: 1 },
    ]);
    await expect.poll(() => added.get("syncline_sink_deliveries_total ops delivered")).toBe(2);
    expect(added.get("syncline_sink_deliveries_total ops refused")).toBe(1);
  });

  it("makes its sink need a person until a later notice is delivered", async () => {
    const hook = await receiver();
    hook.answer = () => ({ status: 400 });
    const where = target();
    const settings = sinkOf("ops", webhookTo(hook.url));
    const { sinks } = await startSinks(where, [settings]);
    const store = await openStore(where);
    onTestFinished(() => store.close());
    const set = { ...setOf([]), sinks: new Map([["ops", settings]]) };
    const found = async () => {
      const { items, status } = await readAttention({ set, store, target: where });
      const ofSinks = items.flatMap(({ about, state, what }) => (about === "sink" ? [`${state}: ${what}`] : []));
      return [...ofSinks, isInstallationWell({ ...status, processes: { schedulers: 1, workers: 1 } })];
    };
    await sinks.enqueue(to("ops", ["a"]));
    const what =
      "the last notice that it was given was not delivered: answered with status 400; 1 notice is in its failed list";
    await expect.poll(found).toEqual([`refuses: ${what}`, false]);
    hook.answer = () => ({ status: 204 });
    await sinks.enqueue(to("ops", ["b"]));
    await expect.poll(found).toEqual([true]);
  });

  it("is read page by page, the newest first", async () => {
    const hook = await receiver();
    hook.answer = () => ({ status: 400 });
    const where = target();
    const { sinks } = await startSinks(where, [sinkOf("ops", webhookTo(hook.url))]);
    const all = ids(501);
    await sinks.enqueue(to("ops", all));
    await expect.poll(async () => (await sinks.queues.backlog("ops")).failed).toBe(501);
    const queues = new NoticeQueues(where, new TestLog());
    onTestFinished(() => queues.close());
    const found = (await queues.failed("ops", 10_000)).map(({ notice }) => notice.id);
    expect(found.length).toBe(501);
    expect(new Set(found)).toEqual(new Set(all));
    expect((await queues.failed("ops", 3)).length).toBe(3);
  });

  it("takes what is too old, after one try at least, and gives it back", async () => {
    const hook = await receiver();
    hook.answer = () => ({ status: 404 });
    const where = target();
    const { sinks, log } = await startSinks(where, [sinkOf("ops", webhookTo(hook.url), { giveUpAfterMs: 0 })]);
    await sinks.enqueue(to("ops", ["a", "b"]));
    const gaveUp = await log.until(({ event, notice }) => event === "sink.gave-up" && notice === "b");
    expect(gaveUp).toMatchObject({ result: "given-up" });
    expect(hook.received.map(({ id }) => id)).toEqual(["a", "b"]);
    const queues = new NoticeQueues(where, new TestLog());
    onTestFinished(() => queues.close());
    hook.answer = () => ({ status: 200 });
    expect(await queues.replay("ops", "a")).toBe(true);
    await hook.until(() => hook.accepted.length === 1);
    expect(hook.accepted).toEqual(["a"]);
    expect(await queues.replay("ops", "a")).toBe(false);
    expect(await queues.discard("ops", "b")).toBe(true);
    expect(await queues.discard("ops", "b")).toBe(false);
    expect(await queues.failed("ops", 10)).toEqual([]);
  });

  it("takes what only a newer version can read, after a day, and the others go on", async () => {
    const hook = await receiver();
    const where = target();
    const store = await openStore(where);
    onTestFinished(() => store.close());
    const queues = new NoticeQueues(where, new TestLog());
    onTestFinished(() => queues.close());
    await queues.add("ops", [noticeOf("newer")], 100);
    const [job = ""] = await store.redis.keys(`${where.prefix}:sink.ops:n-*`);
    const readable = (await store.redis.hget(job, "data")) ?? "";
    await store.redis.hset(job, { data: JSON.stringify({ ...JSON.parse(readable), v: 2 }) });
    await queues.add("ops", [noticeOf("next")], 100);
    const { log } = await startSinks(where, [sinkOf("ops", webhookTo(hook.url))]);
    await log.until(({ event }) => event === "sink.newer-version");
    expect(await queues.backlog("ops")).toMatchObject({ waiting: 2, failed: 0 });
    await store.redis.hset(job, { timestamp: Date.now() - 86_400_000, ats: 300 });
    await hook.until(() => hook.accepted.length === 1);
    expect(hook.accepted).toEqual(["next"]);
    expect(log.named("sink.unreadable")).toMatchObject([{ message: expect.stringContaining("a newer Syncline") }]);
    // Its replica, or this one after its upgrade, reads it and gives it back.
    await store.redis.hset(job, { data: readable });
    expect(await queues.failed("ops", 10)).toMatchObject([{ notice: noticeOf("newer") }]);
    expect(await queues.replay("ops", "newer")).toBe(true);
    await hook.until(() => hook.accepted.length === 2);
  });

  it("gives back notices that wait since then", async () => {
    const hook = await receiver();
    hook.answer = () => ({ status: 404 });
    const { sinks, log } = await startSinks(target(), [
      sinkOf("ops", webhookTo(hook.url, { timeoutMs: 60_000 }), { giveUpAfterMs: 0 }),
    ]);
    await sinks.enqueue(to("ops", ["a"]));
    await log.until(({ event }) => event === "sink.gave-up");
    await expect.poll(async () => (await sinks.queues.backlog("ops")).failed).toBe(1);
    hook.answer = () => "hold";
    const replayedMs = Date.now();
    expect(await sinks.queues.replay("ops", "a")).toBe(true);
    await hook.until(() => hook.received.length === 2);
    expect((await sinks.queues.backlog("ops")).oldestMs).toBeGreaterThanOrEqual(replayedMs);
  });
});

describe("a sink without a configuration", () => {
  it("is thrown away after seven days, with its queue, and not before", async () => {
    const where = target();
    const store = await openStore(where);
    onTestFinished(() => store.close());
    const queues = new NoticeQueues(where, new TestLog());
    onTestFinished(() => queues.close());
    for (const sink of ["old", "young"]) await queues.add(sink, [noticeOf("a"), noticeOf("b")], 100);
    const dayMs = 86_400_000;
    const nowMs = await redisTimeMs(store);
    await store.redis.hset(store.key("sinks-seen"), { old: nowMs - 7.1 * dayMs, young: nowMs - 6.9 * dayMs });
    const { log } = await startSinks(where, []);
    await log.until(({ event }) => event === "sink.forgotten");
    expect(log.named("sink.forgotten")).toMatchObject([{ sink: "old", waiting: 2, failed: 0 }]);
    expect((await queues.backlog("old")).waiting).toBe(0);
    expect((await queues.backlog("young")).waiting).toBe(2);
    expect((await new SinkStore(store).all()).map(({ name }) => name)).toEqual(["young"]);
  });
});
