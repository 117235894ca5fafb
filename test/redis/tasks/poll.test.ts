// What polls remember, on a real Redis: when a worker dies around the recording of an outcome, and
// when two are at work at once.
import { afterEach, describe, expect, it } from "vitest";
import { createItemMapper } from "../../../src/feeds/mapping.ts";
import { feedId } from "../../../src/model/feed.ts";
import type { Outcome } from "../../../src/model/outcome.ts";
import type { Task } from "../../../src/model/task.ts";
import type { Verdict } from "../../../src/model/verdict.ts";
import { SyncService, staticToken } from "../../../src/service/client.ts";
import { History } from "../../../src/store/history.ts";
import { PollStore } from "../../../src/store/poll-store.ts";
import { SharedReadings } from "../../../src/store/shared-readings.ts";
import { endAbandoned } from "../../../src/tasks/finish.ts";
import { createProcessTask, type ProcessDependencies } from "../../../src/tasks/process-task.ts";
import { createRecorder, type OutcomeHistory } from "../../../src/tasks/recorder.ts";
import { type ListServer, startListServer } from "../../support/list-server.ts";
import { testPolicy } from "../../support/policies.ts";
import { redisForTest, storeForTest } from "../../support/redis.ts";
import { testDeps } from "../../support/task-deps.ts";
import { TestLog } from "../../support/test-log.ts";

const target = redisForTest();
let server: ListServer;
let service: SyncService;
let log: TestLog;

const store = await storeForTest(target);
const history = new History(store);
afterEach(async () => {
  await service.close();
  await server.stop();
});

const approvals = (...ids: readonly number[]) =>
  ids.map((approvalId) => ({ approvalId, itemName: `Draft ${approvalId}` }));

const task = (policy: string, number: number): Task => ({
  v: 1,
  id: `${policy}__poll__approvals__${number}`,
  kind: "poll",
  policy,
  service: "main",
  repository: "HR",
  target: "approvals",
  slotMs: number,
  origin: "schedule",
  covers: [],
  startByMs: 9_999_999_999_999,
});

/** A worker; `around` stands in for the history as it sees it, `more` for its tools. */
function createWorker(around: Partial<OutcomeHistory> = {}, more: Partial<ProcessDependencies> = {}) {
  const deps = testDeps(store, {
    policy: (name) =>
      testPolicy({
        name,
        action: {
          kind: "poll",
          list: "approvals",
          expect: "previous == null || (count <= previous.count && new == [])",
        },
      }),
    service: () => service,
    itemMapper: () => createItemMapper("approvals"),
    log,
    ...more,
  });
  const seen: OutcomeHistory = {
    record: (outcome, from, poll) => history.record(outcome, from, poll),
    recordAlone: (outcome) => history.recordAlone(outcome),
    markPublished: (ids) => history.markPublished(ids),
    claimUnpublished: (id) => history.claimUnpublished(id),
    ...around,
  };
  const recorder = createRecorder(seen, log);
  const process = createProcessTask(deps, recorder);
  return {
    work: (one: Task): Promise<Verdict> =>
      process(one, { attempt: 1, attemptsMax: 8, signal: new AbortController().signal }),
    abandon: (one: Task) => endAbandoned(one, deps, { recorder, why: "its workers died" }),
  };
}

async function setUp(pageSize?: number): Promise<void> {
  log = new TestLog();
  server = await startListServer({ approvals: approvals(1, 2) }, pageSize);
  service = new SyncService({ baseUrl: server.url, token: staticToken("secret") });
}

const outcomeOf = (one: Task): Promise<Outcome | undefined> => history.outcome(one);

describe("a worker that dies", () => {
  it("between reading and recording loses nothing: the next poll sees the same as new", async () => {
    await setUp();
    const dying = createWorker({
      record: async () => {
        throw new Error("Connection is closed.");
      },
    });
    await createWorker().work(task("dies", 1));
    server.lists["approvals"] = approvals(1, 2, 3);
    expect((await dying.work(task("dies", 2))).verdict).toBe("snooze");
    expect(await outcomeOf(task("dies", 2))).toBeUndefined();
    await createWorker().work(task("dies", 2));
    expect(await outcomeOf(task("dies", 2))).toMatchObject({
      status: "failed",
      changed: true,
      count: 3,
      offendingItems: ["Draft 3 (3)"],
    });
    await createWorker().work(task("dies", 3));
    expect(await outcomeOf(task("dies", 3))).toMatchObject({ status: "succeeded", changed: true });
  });

  it("between recording and publishing leaves an outcome that is not judged anew", async () => {
    await setUp();
    const dying = createWorker({
      record: async (...args) => {
        await history.record(...args);
        throw new Error("Connection is closed.");
      },
    });
    await createWorker().work(task("mute", 1));
    server.lists["approvals"] = approvals(1, 2, 3);
    expect((await dying.work(task("mute", 2))).verdict).toBe("snooze");
    expect(log.outcomesOf("mute")).toHaveLength(1);
    server.status = 500;
    expect((await createWorker().work(task("mute", 2))).verdict).toBe("snooze");
    await store.redis.zadd(store.key("unpublished"), 1, task("mute", 2).id);
    expect((await createWorker().work(task("mute", 2))).verdict).toBe("complete");
    expect(log.outcomesOf("mute")).toHaveLength(2);
    expect(log.outcomesOf("mute")[1]).toMatchObject({ changed: true, offendingItems: ["Draft 3 (3)"] });
  });

  it("over and over leaves an unknown poll, which is a change, and keeps the memory", async () => {
    await setUp();
    await createWorker().work(task("doomed", 1));
    await createWorker().abandon(task("doomed", 2));
    expect(await outcomeOf(task("doomed", 2))).toMatchObject({ status: "unknown", reason: "crashed", changed: true });
    server.lists["approvals"] = approvals(2, 3);
    await createWorker().work(task("doomed", 3));
    expect(await outcomeOf(task("doomed", 3))).toMatchObject({ status: "failed", offendingItems: ["Draft 3 (3)"] });
  });
});

describe("two polls of one policy at once", () => {
  it("do not both find the same item new: the slower one looks again", async () => {
    await setUp();
    await createWorker().work(task("raced", 1));
    server.lists["approvals"] = approvals(1, 2, 3);
    let isFirst = true;
    const slow = createWorker({
      record: async (...args) => {
        if (isFirst) await createWorker().work(task("raced", 3));
        isFirst = false;
        return history.record(...args);
      },
    });
    expect((await slow.work(task("raced", 2))).verdict).toBe("snooze");
    expect(await outcomeOf(task("raced", 2))).toBeUndefined();
    await slow.work(task("raced", 2));
    expect(await outcomeOf(task("raced", 3))).toMatchObject({ status: "failed", offendingItems: ["Draft 3 (3)"] });
    expect(await outcomeOf(task("raced", 2))).toMatchObject({ status: "succeeded", changed: true });
  });

  it("never compare with different polls: the later one reads again", async () => {
    await setUp();
    await createWorker().work(task("slow", 1));
    const arrived = server.hold();
    const slow = createWorker().work(task("slow", 2));
    await arrived;
    server.lists["approvals"] = approvals(1, 2, 3);
    await createWorker().work(task("slow", 3));
    server.release();
    expect((await slow).verdict).toBe("snooze");
    await createWorker().work(task("slow", 2));
    expect(await outcomeOf(task("slow", 2))).toMatchObject({ status: "succeeded", count: 3 });
  });

  it("by many workers: of one change one outcome says so", async () => {
    await setUp();
    await createWorker().work(task("many", 1));
    server.lists["approvals"] = approvals(1, 2, 3);
    const numbers = [2, 3, 4, 5, 6, 7];
    let open = numbers;
    for (let round = 0; round < 20 && open.length > 0; round += 1) {
      const verdicts = await Promise.all(open.map((number) => createWorker().work(task("many", number))));
      open = open.filter((_, index) => verdicts[index]?.verdict === "snooze");
    }
    const outcomes = await Promise.all(numbers.map((number) => outcomeOf(task("many", number))));
    expect(outcomes.filter((outcome) => outcome?.status === "failed")).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome?.changed === true)).toHaveLength(2);
  });
});

describe("a second reading", () => {
  /** Polls once; of the next poll, the second reading meets this after its first page. */
  async function startSecond(policy: string, meet: () => void) {
    await setUp(6_000);
    server.lists["approvals"] = approvals(...Array.from({ length: 6_001 }, (_, index) => index));
    await createWorker().work(task(policy, 1));
    server.afterFirst = () => {
      server.lists["approvals"] = server.lists["approvals"]?.slice(1) ?? [];
      server.lists["approvals"] = [...server.lists["approvals"], ...approvals(9_000)];
      server.afterFirst = meet;
    };
  }

  it.each([429, 500])("that fails (%d) costs an attempt, and tells nothing", async (status) => {
    const policy = `second-${status}`;
    await startSecond(policy, () => {
      server.status = status;
    });
    expect((await createWorker().work(task(policy, 2))).verdict).toBe("retry");
    expect(await outcomeOf(task(policy, 2))).toBeUndefined();
    expect(log.named("list.read-again").map(({ result }) => result)).toEqual(["unknown"]);
  });

  it("of a list that has become too long is unknown, and forgets nothing", async () => {
    await startSecond("second-long", () => {
      server.lists["approvals"] = approvals(...Array.from({ length: 12_000 }, (_, index) => index));
    });
    await createWorker().work(task("second-long", 2));
    expect(await outcomeOf(task("second-long", 2))).toMatchObject({ status: "unknown" });
    server.lists["approvals"] = approvals(0, 1, 6_000);
    await createWorker().work(task("second-long", 3));
    expect(await outcomeOf(task("second-long", 3))).toMatchObject({ status: "succeeded", count: 3 });
  });
});

describe("a list that is too large to share", () => {
  it.each([false, true])("is told once until it fits, then with its polls (together: %s)", async (isTogether) => {
    await setUp(6_000);
    const sharedReadings = new SharedReadings(store, { plainBytesMax: 300, packedBytesMax: 300 });
    const worker = createWorker({}, { sharedReadings, isPolledTogether: () => isTogether });
    const feed = { service: "main", repository: `large-${isTogether}`, list: "approvals" } as const;
    const reading = store.key("reading", feedId(feed), "items");
    let number = Date.now();
    const poll = async (...ids: readonly number[]) => {
      server.lists["approvals"] = approvals(...ids);
      number = Math.max(number + 1, Date.now());
      expect((await worker.work({ ...task("large", number), ...feed })).verdict).toBe("complete");
    };
    /** Others fail to read the list, and find it too long. */
    const readInVain = async () => {
      const [token, wish] = ["other", { sinceMs: 0, afterMs: 0, turnOf: undefined }];
      expect((await sharedReadings.ask(feed, "items", { ...wish, token })).turn).toBe("read");
      await sharedReadings.leave(feed, "items", token);
      await poll(...Array.from({ length: 10_001 }, (_, index) => index));
      expect(await store.redis.pttl(reading)).toBeGreaterThan(7 * 86_400_000);
    };
    const told = () => log.events.filter(({ event }) => event.startsWith("poll."));
    for (const _ of [1, 2, 3]) await poll(1, 2, 3, 4, 5, 6, 7);
    expect(told()).toMatchObject([{ event: "poll.unshared", level: "warn", ...feed, count: 7 }]);
    const tenMinutesPass = () => store.redis.hset(reading, "aloneUntilMs", 1);
    await tenMinutesPass();
    await poll(1, 2, 3, 4, 5, 6, 7);
    await tenMinutesPass();
    await readInVain();
    await poll(1, 2);
    await poll(1, 2);
    expect(told().slice(1)).toMatchObject([{ event: "poll.shared", level: "info", ...feed, polls: 4 }]);
    await poll(1, 2, 3, 4, 5, 6, 7);
    expect(told().map(({ event }) => event)).toEqual(["poll.unshared", "poll.shared", "poll.unshared"]);
  });
});

describe("what is remembered", () => {
  it("takes 12 bytes an item and 4 more, expires, and is of one list", async () => {
    await setUp();
    await createWorker().work(task("kept", 1));
    const key = store.key("poll", "kept");
    expect(await store.redis.hstrlen(key, "seen")).toBe(28);
    expect(await store.redis.pttl(key)).toBeGreaterThan(399 * 86_400_000);
    const feed = { service: "main", repository: "HR", list: "approvals" } as const;
    const memory = await new PollStore(store).read("kept", feed);
    expect(memory).toMatchObject({ revision: 1, state: "good", observation: { count: 2 } });
    const other = await new PollStore(store).read("kept", { ...feed, list: "triggers" });
    expect(other).toEqual({ revision: 1, state: undefined, observation: undefined });
  });
});
