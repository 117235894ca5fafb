// One contender of the benchmark of starts, in a process of its own:
// start-contender.ts NAME REDIS_URL SERVICE_URL CONCURRENCY. Started by starts.ts.
import { Worker } from "bullmq";
import { Redis } from "ioredis";
import { bareQueue, bareStart } from "./bare-queue.ts";
import { startBenchApp } from "./bench-app.ts";
import { answerParent } from "./child.ts";

const [name = "", url = "", serviceUrl = "", concurrency = "20"] = process.argv.slice(2);

// Counts what this process sends to Redis, whoever sends it; what scripts call there is another
// figure.
let sent = 0;
const send = Redis.prototype.sendCommand;
Redis.prototype.sendCommand = function (...args) {
  sent += 1;
  return send.apply(this, args);
};

const stop = name === "syncline" ? await startSyncline() : await startBare();
answerParent({ sent: () => ({ sent }) }, stop);

async function startSyncline(): Promise<() => Promise<unknown>> {
  const app = await startBenchApp({ url, services: { main: serviceUrl }, concurrency: Number(concurrency) });
  return () => app.stop();
}

async function startBare(): Promise<() => Promise<unknown>> {
  const start = bareStart(serviceUrl, name === "bare-fresh");
  const worker = new Worker(bareQueue(name), ({ data }) => start(data.target), {
    connection: { url },
    prefix: "bench",
    concurrency: Number(concurrency),
  });
  await worker.waitUntilReady();
  return () => worker.close();
}
