import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { noticeOf, Receiver } from "../../support/receiver.ts";
import { redisForTest } from "../../support/redis.ts";
import { sinkOf, startSinks, webhookTo } from "../../support/sink-fixture.ts";

const redis = redisForTest();
const childFile = fileURLToPath(new URL("../../support/sink-child.ts", import.meta.url));
const takeOverAfterMs = 10_000;

it("a worker that is killed in mid delivery loses nothing and lets nothing pass", async () => {
  const hook = await new Receiver().start();
  onTestFinished(() => hook.stop());
  const to = webhookTo(hook.url);
  const start = () => {
    const args = [childFile, redis.url, redis.prefix, hook.url, to.secretFile ?? "", String(takeOverAfterMs)];
    const child = spawn(process.execPath, args, { stdio: "inherit" });
    onTestFinished(() => void child.kill("SIGKILL"));
    return child;
  };
  const { sinks } = await startSinks(redis, [sinkOf("ops", to)], { roles: [] });
  const ids = Array.from({ length: 20 }, (_, index) => `n${index + 1}`);
  await sinks.enqueue(ids.map((id) => ({ sink: "ops", notice: noticeOf(id) })));
  // Two deaths over two deliveries, while a second worker waits for its turn.
  hook.answer = (id, earlier) => (earlier === 0 && ["n4", "n9"].includes(id) ? "hold" : { status: 200 });
  const [first, second] = [start(), start()];
  await hook.until(() => hook.received.at(-1)?.id === "n4");
  // Whichever has it: the receiver holds the answer, so both die in mid delivery or waiting for it.
  first.kill("SIGKILL");
  second.kill("SIGKILL");
  await Promise.all([once(first, "exit"), once(second, "exit")]);
  const third = start();
  await hook.until(() => hook.received.at(-1)?.id === "n9");
  third.kill("SIGKILL");
  start();
  await hook.until(() => hook.accepted.length === ids.length);
  expect(hook.accepted).toEqual(ids);
  expect(hook.received.map(({ id }) => id)).toEqual(
    ids.flatMap((id) => (id === "n4" || id === "n9" ? [id, id] : [id])),
  );
  const twice = hook.received.filter(({ id }) => id === "n4");
  expect(twice[1]?.body).toBe(twice[0]?.body);
});
