// One contender of the benchmark of starts, in a process of its own:
// start-contender.ts NAME REDIS_URL SERVICE_URL CONCURRENCY. Started by starts.ts.
import { Agent } from "node:http";
import { Worker } from "bullmq";
import got from "got";
import { Redis } from "ioredis";
import { bareQueue } from "./bare-queue.ts";
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

/** What one would write in half an hour. Its time-outs are set: without any, got waits for ever. */
async function startBare(): Promise<() => Promise<unknown>> {
  const agent = name === "bare-fresh" ? { agent: { http: new Agent({ keepAlive: false }) } } : {};
  const client = got.extend({
    ...agent,
    retry: { limit: 0 },
    followRedirect: false,
    timeout: { connect: 5_000, response: 30_000, request: 60_000 },
    headers: { authorization: "Bearer bench" },
  });
  const start = async ({ data }: { readonly data: { readonly target: string } }) => {
    await client.post(`${serviceUrl}/api/syncjobs/run(${data.target})?repository=HR`);
  };
  const worker = new Worker(bareQueue(name), start, {
    connection: { url },
    prefix: "bench",
    concurrency: Number(concurrency),
  });
  await worker.waitUntilReady();
  return () => worker.close();
}
