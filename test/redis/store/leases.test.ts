import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { History } from "../../../src/store/history.ts";
import { Leases, leaseKey } from "../../../src/store/leases.ts";
import { openStore, type Store } from "../../../src/store/redis.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { redisForTest } from "../../support/redis.ts";

const target = redisForTest();
let store: Store;
let leases: Leases;
let journal: StartJournal;

beforeAll(async () => {
  store = await openStore(target);
  leases = new Leases(store);
  journal = new StartJournal(store);
});
afterAll(() => store.close());

const subject = (repository: string) => ({ kind: "run", service: "main", repository, target: "42" }) as const;
const me = "me";
const intent = { startByMs: 9_999_999_999_999, baseline: "" };

/** A task of that name on the sync job of this repository, claimed by `me`. */
async function claimed(id: string, repository: string) {
  await journal.claim(id, me);
  return { id, ...subject(repository) };
}

describe("a lease", () => {
  it("goes to one of many, and tells the others who has it", async () => {
    const tasks = await Promise.all(Array.from({ length: 10 }, (_, index) => claimed(`task-${index}`, "raced")));
    const holders = await Promise.all(tasks.map((task) => leases.acquire(task, me, 60_000)));
    expect(new Set(holders).size).toBe(1);
    expect(holders[0]).toMatch(/^task-\d$/);
  });

  it("may be prolonged and given back by its holder only", async () => {
    const [a, b] = [await claimed("a", "own"), await claimed("b", "own")];
    expect(await leases.acquire(a, me, 60_000)).toBe("a");
    expect(await leases.acquire(a, me, 60_000)).toBe("a");
    await leases.release(subject("own"), "b");
    expect(await leases.acquire(b, me, 60_000)).toBe("a");
    await leases.release(subject("own"), "a");
    expect(await leases.acquire(b, me, 60_000)).toBe("b");
  });

  it("ends by itself when its holder died", async () => {
    const [dead, heir] = [await claimed("dead", "dead"), await claimed("heir", "dead")];
    await leases.acquire(dead, me, 20);
    await expect.poll(() => leases.acquire(heir, me, 60_000)).toBe("heir");
  });

  it("on the same sync job of another repository is another one", async () => {
    await leases.acquire(await claimed("first", "HR"), me, 60_000);
    expect(await leases.acquire(await claimed("second", "FIN"), me, 60_000)).toBe("second");
  });
});

describe("a worker that was held up", () => {
  it("gets no lease for a task that another one has claimed since", async () => {
    const task = await claimed("taken-over", "taken-over");
    await journal.claim(task.id, "another");
    expect(await leases.acquire(task, me, 60_000)).toBeUndefined();
    expect(await leases.holder(task)).toBeUndefined();
    expect(await leases.acquire(task, "another", 60_000)).toBe(task.id);
  });

  it("gets none for a task that is over, neither by the step that takes it nor by the claim that prolongs it", async () => {
    const task = await claimed("over", "over");
    await leases.acquire(task, me, 60_000);
    await journal.beginSending(task, me, intent);
    await new History(store).record(testOutcome({ taskId: task.id, ...subject("over") }), { state: "sending" });
    expect(await leases.acquire(task, me, 60_000)).toBeUndefined();
    expect((await journal.claim(task.id, me, { ...task, leaseMs: 60_000 })).state).toBe("settled");
    expect(await leases.holder(task)).toBeUndefined();
  });
});

describe("the claim of a start", () => {
  it("prolongs its lease while it is under way, and takes none before it was sent", async () => {
    const task = { id: "under-way", ...subject("under-way") };
    const claim = () => journal.claim(task.id, me, { ...task, leaseMs: 60_000 });
    await claim();
    expect(await leases.holder(task)).toBeUndefined();
    await leases.acquire(task, me, 30_000);
    await journal.beginSending(task, me, intent);
    await claim();
    expect(await store.redis.pttl(leaseKey(store, task))).toBeGreaterThan(30_000);
    await journal.answered(task);
    await store.redis.del(leaseKey(store, task));
    await claim();
    expect(await leases.holder(task)).toBe(task.id);
  });

  it("leaves the lease of another task alone", async () => {
    const [holder, task] = [await claimed("holder", "shared"), await claimed("beside", "shared")];
    await leases.acquire(holder, me, 60_000);
    await journal.beginSending(task, me, intent);
    await journal.claim(task.id, me, { ...task, leaseMs: 60_000 });
    expect(await leases.holder(task)).toBe("holder");
  });
});
