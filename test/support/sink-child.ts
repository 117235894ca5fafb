// A worker of one sink in a process of its own, to be killed. Arguments: Redis URL, prefix, URL of
// the receiver, secret file, take-over time.
import { RunningSinks } from "../../src/app/running-sinks.ts";
import { silentLog } from "../../src/core/event-log.ts";
import { WorkerConnections } from "../../src/queue/worker-connections.ts";
import { openStore } from "../../src/store/redis.ts";

const [url = "", prefix = "", hook = "", secretFile = "", takeOverAfterMs = ""] = process.argv.slice(2);
const target = { url, prefix };
const to = { kind: "webhook", url: hook, secretFile, previousSecretFile: undefined, format: "cloudevents" } as const;
const settings = { name: "ops", to: { ...to, timeoutMs: 10_000 }, giveUpAfterMs: 86_400_000, queueMax: 100_000 };
const sinks = new RunningSinks({
  set: { sinks: new Map([["ops", settings]]) },
  redis: target,
  connections: new WorkerConnections(target, silentLog),
  store: await openStore(target),
  log: silentLog,
  roles: ["worker"],
  takeOverAfterMs: Number(takeOverAfterMs),
  drainMs: 1_000,
});
await sinks.deliveries.start();
