// Commands of one turn of the event loop go to Redis in one write (src/store/connect.ts), each with
// its own answer.
import { Redis } from "ioredis";
import { expect, it, vi } from "vitest";
import { openStore } from "../../../src/store/redis.ts";
import { redisForTest } from "../../support/redis.ts";

const target = redisForTest();

it("batches the commands of a turn into one write, in order, each with its answer", async () => {
  const store = await openStore(target);
  const { redis, key } = store;
  if (!(redis instanceof Redis)) throw new Error("no single connection");
  const writes = vi.spyOn(redis.stream, "uncork");
  const ask = (_: unknown, index: number) =>
    index === 50 ? redis.lpush(key("count"), "wrong") : redis.incr(key("count"));
  const answers = await Promise.allSettled(Array.from({ length: 100 }, ask));
  expect(writes).toHaveBeenCalledTimes(1);
  expect(answers[50]).toMatchObject({ status: "rejected" });
  expect(answers[49]).toEqual({ status: "fulfilled", value: 50 });
  expect(answers[99]).toEqual({ status: "fulfilled", value: 99 });
  await redis.get(key("count"));
  expect(writes).toHaveBeenCalledTimes(2);
  await store.close();
});

it("goes on over a new connection, whatever the old one had gathered", async () => {
  const store = await openStore(target);
  const { redis, key } = store;
  if (!(redis instanceof Redis)) throw new Error("no single connection");
  const lost = redis.set(key("lost"), "1").catch((error: unknown) => error);
  redis.stream.destroy();
  expect(await redis.set(key("kept"), "1")).toBe("OK");
  await lost;
  expect(await redis.get(key("kept"))).toBe("1");
  await store.close();
});
