// A run of a policy that the processes of a test do not know.
import { type Task, taskId } from "../../src/model/task.ts";
import { Producer } from "../../src/queue/producer.ts";
import { openStore, type RedisTarget } from "../../src/store/redis.ts";
import { StartJournal } from "../../src/store/start-journal.ts";
import { TestLog } from "./test-log.ts";

/** Sends and queues it; its slot was so long ago. */
export async function startUnknown(target: RedisTarget, service: string, agoMs = 60_000) {
  const run = { policy: "theirs", kind: "run", target: "7", slotMs: Date.now() - agoMs, origin: "manual" } as const;
  const startByMs = Date.now() + 3_600_000;
  const task: Task = { v: 1, id: taskId(run), ...run, service, repository: "HR", startByMs, covers: [] };
  const store = await openStore(target);
  const journal = new StartJournal(store);
  await journal.claim(task.id, "they");
  const permission = await journal.beginSending(task, "they", { startByMs, slotMs: task.slotMs, baseline: "" });
  await store.close();
  if (permission !== "permitted") throw new Error(`its start is ${permission}`);
  const producer = new Producer(target, new TestLog());
  await producer.enqueue([task]);
  return { task, producer };
}
