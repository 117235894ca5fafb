// `npm run demo`: the main job, live, on one machine. A private Redis, the sandbox service with
// faults, two replicas of `syncline serve` as processes of their own, and a narrator that turns
// their log lines into something to read. Everything it starts ends with it, also on Ctrl-C.
import { parseArgs } from "node:util";
import { typeNext } from "../../src/cli/dev.ts";
import { parseDuration } from "../../src/core/duration.ts";
import { startPrivateRedis } from "../redis.mjs";
import { Narrator } from "./narrator.ts";
import { Replica, startSandbox } from "./processes.ts";
import { summarize } from "./summary.ts";

const prefix = "{demo}";
const usage = `npm run demo [-- --for 30s --keep]

Watches policies start sync jobs of a sandbox service and says what happened to each.
  --for <duration>   how long, e.g. 30s or 5m (default 60s)
  --keep             afterwards leave Redis and the sandbox up until Ctrl-C, to look around
Ctrl-C ends it early. Kill a replica while it runs: another one takes over.`;

try {
  process.exitCode = await demo(readArguments());
} catch (error) {
  process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}

async function demo({ forMs, keep }: { readonly forMs: number; readonly keep: boolean }): Promise<number> {
  const stopped = stopRequest(forMs);
  const narrator = new Narrator(process.stdout);
  const redis = await startPrivateRedis();
  const stops: (() => Promise<void>)[] = [() => redis.stop()];
  try {
    const sandbox = await startSandbox();
    stops.push(() => sandbox.stop());
    const environment = { REDIS_URL: redis.url, SANDBOX_URL: sandbox.baseUrl, SANDBOX_TOKEN: sandbox.token };
    const replicas = [1, 2].map(
      (number) => new Replica(number, { environment, prefix, onEvent: (event) => narrator.tell(event) }),
    );
    stops.push(async () => {
      await Promise.all(replicas.map((replica) => replica.stop()));
    });
    const pids = await Promise.all(replicas.map((replica) => replica.start()));
    const dashboard = replicas[0]?.dashboard ?? "";
    narrator.welcome({ redis: redis.url, sandbox: sandbox.baseUrl, dashboard, pids, forMs });
    await stopped;
    narrator.tell({ event: "demo.stopping", detail: "no new starts; what is in work ends or stays in the queue" });
    await Promise.all(replicas.map((replica) => replica.stop()));
    const exitCode = await summarize({ sandbox, redisUrl: redis.url, prefix, narrator });
    if (keep) await lookAround({ ...environment, SYNCLINE_PREFIX: prefix }, narrator);
    return exitCode;
  } finally {
    for (const stop of stops.toReversed()) await stop();
  }
}

/** Says what to type next, and leaves Redis and the sandbox up until Ctrl-C. */
async function lookAround(environment: Readonly<Record<string, string>>, { colours }: Narrator): Promise<void> {
  const variables = { npm_lifecycle_event: "demo" };
  const next = typeNext({ ...environment, SYNCLINE_CONFIG: "config/demo.yaml" }, "contracts", { colours, variables });
  process.stdout.write(`\n${next.join("\n")}\n`);
  await stopRequest();
}

function stopRequest(forMs?: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = forMs === undefined ? undefined : setTimeout(resolve, forMs);
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      process.on(signal, () => {
        clearTimeout(timer);
        resolve();
      });
    }
  });
}

function readArguments(): { forMs: number; keep: boolean } {
  const { values } = parseArgs({
    options: {
      for: { type: "string", default: "60s" },
      keep: { type: "boolean", default: false },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help) {
    process.stdout.write(`${usage}\n`);
    process.exit(0);
  }
  return { forMs: parseDuration(values.for), keep: values.keep };
}
