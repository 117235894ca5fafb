// A rolling upgrade: what a newer version puts into the queues stays there, untouched, for a
// replica that can read it.
import { Queue } from "bullmq";
import { expect, it } from "vitest";
import { often } from "../support/processes.ts";
import { worldForTest } from "../support/world.ts";

it("delays a newer version's task and feed walk, and goes on with its own", async () => {
  const world = await worldForTest({
    policies: "  - { name: story, service: main, repository: HR, run: { syncJobs: [3] } }",
  });
  const { target, log, run } = world;
  const newer = [
    { queue: "main-actions", id: "from-tomorrow", data: { v: 3, kind: "run", goal: "not known today" } },
    { queue: "main-polls", id: "walk-from-tomorrow", data: { v: 2, kind: "feed-walk", lists: [] } },
  ];
  const queues = newer.map(({ queue }) => new Queue(queue, { connection: { url: target.url }, prefix: target.prefix }));
  try {
    for (const [index, { id, data }] of newer.entries())
      await queues[index]?.add("newer", data, { jobId: id, attempts: 1 });
    for (const what of ["task", "feed walk"])
      await log.until(
        ({ event, message }) => event === "task.newer-version" && String(message).startsWith(`this ${what}`),
      );
    expect(await run("story")).toMatchObject({ status: "succeeded" });
    for (const [index, { id, data }] of newer.entries()) {
      const found = async () => {
        const job = await queues[index]?.getJob(id);
        return { state: await job?.getState(), data: job?.data, spent: job?.attemptsMade };
      };
      // Every ten seconds it is taken, looked at and put back again.
      await expect.poll(found, often).toEqual({ state: "delayed", data, spent: 0 });
    }
  } finally {
    for (const queue of queues) await queue.close();
  }
});
