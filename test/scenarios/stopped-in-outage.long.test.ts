// A process that is told to stop while Redis is away: it ends in its time all the same, and says
// which start's answer, that it alone knows, is lost with it.
import { expect, it, onTestFinished } from "vitest";
import { redisForTest } from "../support/redis.ts";
import { freePort, startProxy } from "../support/redis-servers.ts";
import { worldForTest } from "../support/world.ts";

it("a process that stops in an outage of Redis ends in time and tells what is lost", async () => {
  const { url, prefix } = redisForTest(onTestFinished);
  const port = Number(new URL(url).port);
  const front = await startProxy(port);
  const nowhere = await freePort();
  const { enqueue, log, app } = await worldForTest({
    redis: { url: `redis://127.0.0.1:${front.port}`, prefix },
    policies: "  - { name: story, service: main, repository: HR, run: { syncJobs: [3] } }",
  });
  await enqueue("story");
  // The service has answered, and the journal does not know it yet.
  const { taskId } = await log.until(({ event }) => event === "task.started");
  front.heal(nowhere);
  const beganMs = performance.now();
  await app.stop();
  // About eight seconds of time-outs, each of which a busy machine may notice late.
  expect(performance.now() - beganMs).toBeLessThan(20_000);
  expect(log.named("start.unwritten")).toMatchObject([{ taskId, what: "answer" }]);
  front.heal(port);
});
