// What is known of a start while Redis is out (src/store/kept-writes.ts): in which order it is
// written, how long and how much is kept, and that giving up is told, also at the process's end.
import { describe, expect, it } from "vitest";
import { KeptWrites } from "../../../src/store/kept-writes.ts";
import { TestLog } from "../../support/test-log.ts";

const outage = new Error("Connection is closed.");

/** Writes to a Redis that is out until a test says otherwise, on a clock that jumps over waits. */
function fixture() {
  const log = new TestLog();
  const written: string[] = [];
  let nowMs = 0;
  let upFromMs = Number.POSITIVE_INFINITY;
  const sleep = async (durationMs: number) => {
    nowMs += durationMs;
  };
  const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs, sleep, every: () => () => {} };
  const writes = new KeptWrites(log, clock);
  const write = (taskId: string, fault = outage) =>
    writes.write({ taskId, what: "answer" }, async () => {
      if (nowMs < upFromMs) throw fault;
      written.push(`${taskId} at ${nowMs}`);
    });
  return {
    ...{ log, written, write },
    redisIsUpFrom: (ms: number) => {
      upFromMs = ms;
    },
    given: () => log.named("start.unwritten").map(({ taskId, message }) => `${taskId}: ${message}`),
  };
}

describe("a write that Redis does not take", () => {
  it("fails, and is done within a second of Redis's return, the oldest first", async () => {
    const { write, redisIsUpFrom, written, log } = fixture();
    redisIsUpFrom(119_500);
    await expect(write("first")).rejects.toThrow("Connection is closed.");
    await expect(write("second")).rejects.toThrow("Connection is closed.");
    await expect.poll(() => written).toEqual(["first at 120000", "second at 120000"]);
    expect(log.events).toEqual([]);
  });

  it("is given up after two minutes, and told", async () => {
    const { write, given, log } = fixture();
    await expect(write("lost")).rejects.toThrow();
    await log.until(({ event }) => event === "start.unwritten");
    expect(log.events).toEqual([
      { event: "start.unwritten", level: "error", taskId: "lost", what: "answer", message: "Connection is closed." },
    ]);
    await expect(write("later")).rejects.toThrow();
    await expect.poll(given).toEqual(["lost: Connection is closed.", "later: Connection is closed."]);
  });

  it("is told at once when a thousand others are kept", async () => {
    const { write, given } = fixture();
    const kept = Array.from({ length: 1_000 }, (_, index) => write(`kept-${index}`));
    await Promise.all([...kept, write("surplus")].map((one) => expect(one).rejects.toThrow()));
    expect(given()).toEqual(["surplus: Connection is closed."]);
  });

  it("is tried once more when the process ends, and told where that does not help", async () => {
    const log = new TestLog();
    const writes = new KeptWrites(log);
    const tried: string[] = [];
    const keep = (taskId: string, second: Promise<void>) => {
      const tries = [Promise.reject(outage), second];
      const write = () => {
        tried.push(taskId);
        return tries.shift() ?? second;
      };
      return expect(writes.write({ taskId, what: "answer" }, write)).rejects.toThrow();
    };
    await keep("back", Promise.resolve());
    await keep("silent", new Promise(() => {}));
    await keep("behind it", Promise.resolve());
    await writes.stop();
    await keep("after", Promise.resolve());
    expect(tried).toEqual(["back", "silent", "behind it", "back", "silent", "after"]);
    const given = log.named("start.unwritten").map(({ taskId, message }) => `${taskId}: ${message}`);
    expect(given).toEqual(["silent: the process ends", "behind it: the process ends", "after: Connection is closed."]);
  });

  it("is told where it comes too late, also to a Redis that works", async () => {
    const log = new TestLog();
    const writes = new KeptWrites(log);
    const subject = { taskId: "late", what: "started nothing" } as const;
    const untaken = (isTaken: boolean) => (isTaken ? undefined : "it had ended");
    expect(await writes.write(subject, async () => true, untaken)).toBe(true);
    expect(log.events).toEqual([]);
    expect(await writes.write(subject, async () => false, untaken)).toBe(false);
    const message = "too late: it had ended";
    expect(log.events).toEqual([{ ...subject, event: "start.unwritten", level: "error", message }]);
    const unread = () => Promise.reject<undefined>(outage);
    expect(await writes.write(subject, async () => false, unread)).toBe(false);
    expect(log.events.at(-1)).toMatchObject({ message: "too late: what Redis has instead cannot be read" });
    expect(writes.keeps("late")).toBe(false);
  });

  it("is not kept where Redis takes no such write at all", async () => {
    const { write, given } = fixture();
    await expect(write("wrong", new TypeError("no such field"))).rejects.toThrow("no such field");
    expect(given()).toEqual([]);
  });
});
