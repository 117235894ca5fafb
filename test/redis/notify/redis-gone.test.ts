import { expect, it, onTestFinished } from "vitest";
import { startPrivateRedis } from "../../../scripts/redis.mjs";
import { noticeOf, Receiver } from "../../support/receiver.ts";
import { sinkOf, startSinks, webhookTo } from "../../support/sink-fixture.ts";

it("sinks stop while Redis is gone, and a hand-over then fails aloud", async () => {
  const server = await startPrivateRedis();
  const hook = await new Receiver().start();
  onTestFinished(() => hook.stop());
  const target = { url: server.url, prefix: "{gone}" };
  const { sinks } = await startSinks(target, [sinkOf("ops", webhookTo(hook.url))]);
  await sinks.enqueue([{ sink: "ops", notice: noticeOf("a") }]);
  await hook.until(() => hook.accepted.length === 1);
  await server.stop();
  await expect(sinks.enqueue([{ sink: "ops", notice: noticeOf("b") }])).rejects.toThrow();
  await sinks.stop();
  expect(hook.accepted).toEqual(["a"]);
});
