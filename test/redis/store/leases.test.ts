import { describe, expect, it } from "vitest";
import { History } from "../../../src/store/history.ts";
import { Leases, leaseKey, leaseMs } from "../../../src/store/leases.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { redisForTest, storeForTest } from "../../support/redis.ts";

const target = redisForTest();

const store = await storeForTest(target);
const leases = new Leases(store);
const journal = new StartJournal(store);

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
    const holders = await Promise.all(tasks.map((task) => leases.acquire(task, me)));
    expect(new Set(holders).size).toBe(1);
    expect(holders[0]).toMatch(/^task-\d$/);
  });

  it("may be prolonged and given back by its holder only", async () => {
    const [a, b] = [await claimed("a", "own"), await claimed("b", "own")];
    expect(await leases.acquire(a, me)).toBe("a");
    expect(await leases.acquire(a, me)).toBe("a");
    await leases.release(subject("own"), "b");
    expect(await leases.acquire(b, me)).toBe("a");
    await leases.release(subject("own"), "a");
    expect(await leases.acquire(b, me)).toBe("b");
  });

  it("is held also by a silent task, which is live only while the queue has it", async () => {
    const task = await claimed("silent", "silent");
    await leases.acquire(task, me);
    const live = () => leases.liveHolder(task, async () => "missing");
    expect(await live()).toBe(task.id);
    await store.redis.pexpire(leaseKey(store, task), leaseMs - 300_001);
    expect([await leases.holder(task), await live()]).toEqual([task.id, undefined]);
    expect(await leases.liveHolder(task, async () => "pending")).toBe(task.id);
  });

  it("on the same sync job of another repository is another one", async () => {
    await leases.acquire(await claimed("first", "HR"), me);
    expect(await leases.acquire(await claimed("second", "FIN"), me)).toBe("second");
  });
});

describe("the lease of a run that ends", () => {
  it("goes to one beside it that goes on, and is free after that", async () => {
    const tasks = [await claimed("one", "beside"), await claimed("two", "beside")];
    for (const task of tasks) await journal.beginSending(task, me, intent);
    const claims = () => Promise.all(tasks.map((task) => journal.claim(task.id, me, task)));
    const holds = () => leases.holder(subject("beside"));
    const end = ({ id }: { readonly id: string }) =>
      new History(store).record(testOutcome({ taskId: id, ...subject("beside") }), { state: "sending" });
    await claims();
    const [holder, heir] = (await holds()) === "one" ? tasks : tasks.toReversed();
    if (holder === undefined || heir === undefined) throw new Error("none has it");
    await end(holder);
    expect(await holds()).toBe(heir.id);
    await end(heir);
    expect(await holds()).toBeUndefined();
  });
});

describe("a worker that was held up", () => {
  it("gets no lease for a task that another one has claimed since", async () => {
    const task = await claimed("taken-over", "taken-over");
    await journal.claim(task.id, "another");
    expect(await leases.acquire(task, me)).toBeUndefined();
    expect(await leases.holder(task)).toBeUndefined();
    expect(await leases.acquire(task, "another")).toBe(task.id);
  });

  it("gets no lease for a finished task, by neither the lease nor the claim step", async () => {
    const task = await claimed("over", "over");
    await leases.acquire(task, me);
    await journal.beginSending(task, me, intent);
    await new History(store).record(testOutcome({ taskId: task.id, ...subject("over") }), { state: "sending" });
    expect(await leases.acquire(task, me)).toBeUndefined();
    expect((await journal.claim(task.id, me, task)).state).toBe("settled");
    expect(await leases.holder(task)).toBeUndefined();
  });
});

describe("the claim of a start", () => {
  it("prolongs its lease while it is under way, and takes none before it was sent", async () => {
    const task = { id: "under-way", ...subject("under-way") };
    const claim = () => journal.claim(task.id, me, task);
    await claim();
    expect(await leases.holder(task)).toBeUndefined();
    await leases.acquire(task, me);
    await journal.beginSending(task, me, intent);
    await store.redis.pexpire(leaseKey(store, task), 60_000);
    await claim();
    expect(await store.redis.pttl(leaseKey(store, task))).toBeGreaterThan(60_000);
    await journal.noteConfirmed(task, "evidence");
    await store.redis.del(leaseKey(store, task));
    await claim();
    expect(await leases.holder(task)).toBe(task.id);
  });

  it("leaves the lease of another task alone", async () => {
    const [holder, task] = [await claimed("holder", "shared"), await claimed("beside", "shared")];
    await leases.acquire(holder, me);
    await journal.beginSending(task, me, intent);
    await journal.claim(task.id, me, task);
    expect(await leases.holder(task)).toBe("holder");
  });
});

describe("a lease taken over from a holder that the queue will not run again", () => {
  const history = () => new History(store);
  const over = { isOver: true };
  const gone = { isOver: false };

  it("is taken from a holder that sent nothing; it may not send, but may claim again", async () => {
    const [holder, heir] = [await claimed("gone", "gone"), await claimed("gone-heir", "gone")];
    await leases.acquire(holder, me);
    expect(await leases.takeOver(heir, me, { ...gone, holder: holder.id })).toBe(heir.id);
    expect(await journal.beginSending(holder, me, intent)).toBe("lost-claim");
    expect(await leases.acquire(holder, me)).toBeUndefined();
    await journal.claim(holder.id, "back");
    expect(await leases.acquire(holder, "back")).toBe(heir.id);
  });

  it("is left to one that may have sent something and is not over", async () => {
    const heir = await claimed("sent-heir", "sent");
    const holder = await claimed("sent", "sent");
    await leases.acquire(holder, me);
    await journal.beginSending(holder, me, intent);
    expect(await leases.takeOver(heir, me, { ...gone, holder: holder.id })).toBe(holder.id);
    await journal.noteConfirmed(holder, "evidence");
    expect(await leases.takeOver(heir, me, { ...gone, holder: holder.id })).toBe(holder.id);
  });

  it("is taken from a finished start: no second request, but its answer still counts", async () => {
    const [holder, heir] = [await claimed("over-sent", "over-sent"), await claimed("over-sent-heir", "over-sent")];
    await leases.acquire(holder, me);
    await journal.beginSending(holder, me, intent);
    expect(await leases.takeOver(heir, me, { ...over, holder: holder.id })).toBe(heir.id);
    expect(await journal.beginSendingAgain(holder, "another", { ...intent, sends: 1, sender: me })).toBe("lost-claim");
    const outcome = testOutcome({ taskId: holder.id, ...subject("over-sent") });
    expect(await history().record(outcome, { state: "confirmed", isAnswer: true })).toBe("recorded");
    expect(await leases.holder(heir)).toBe(heir.id);
  });

  it("is left to a holder without a known request: no entry yet, or a newer version's", async () => {
    const heir = await claimed("unread-heir", "unread");
    await store.redis.set(leaseKey(store, heir), "unread", "PX", leaseMs);
    expect(await leases.takeOver(heir, me, { ...gone, holder: "unread" })).toBe("unread");
    await store.redis.hset(store.key("start", "unread"), "v", "2", "state", "claimed");
    expect(await leases.takeOver(heir, me, { ...over, holder: "unread" })).toBe("unread");
    await store.redis.del(store.key("start", "unread"));
    expect(await leases.takeOver(heir, me, { ...over, holder: "unread" })).toBe(heir.id);
    expect(await journal.entry("unread")).toBeUndefined();
  });

  it("is left to its present holder, and given to none that lost the claim", async () => {
    const [holder, heir] = [await claimed("quick", "quick"), await claimed("slow", "quick")];
    await leases.acquire(holder, me);
    expect(await leases.takeOver(heir, me, { ...over, holder: "before" })).toBe(holder.id);
    expect(await leases.takeOver(heir, "another", { ...over, holder: holder.id })).toBeUndefined();
    await journal.beginSending(heir, me, intent);
    expect(await leases.takeOver(heir, me, { ...over, holder: holder.id })).toBeUndefined();
    expect(await leases.holder(heir)).toBe(holder.id);
  });
});
