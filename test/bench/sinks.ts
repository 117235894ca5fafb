// A sink whose receiver is down while notices come in, and whose worker is killed: does every
// notice arrive, with its id and in the order of its key? With a Redis, a receiver and worker
// processes of its own; `--notices` and `--keys` change the size.
//
// receiver down ─▶ notices handed over ─▶ kill -9 ─▶ new worker ─▶ receiver up ─▶ kill -9 at a third ─▶ new worker ─▶ all arrived
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { startPrivateRedis } from "../../scripts/redis.mjs";
import { RunningSinks } from "../../src/app/running-sinks.ts";
import type { SinkSettings } from "../../src/config/policy-set.ts";
import { silentLog } from "../../src/core/event-log.ts";
import { WorkerConnections } from "../../src/queue/worker-connections.ts";
import { openStore } from "../../src/store/redis.ts";
import { noticeOf, Receiver } from "../support/receiver.ts";
import { noteFigure } from "./figures.ts";

const { values: given } = parseArgs({
  options: { notices: { type: "string", default: "10000" }, keys: { type: "string", default: "100" } },
});
const notices = Number(given.notices);
const keys = Number(given.keys);
const takeOverAfterMs = 5_000;

const folder = mkdtempSync(join(tmpdir(), "syncline-bench-"));
const secretFile = join(folder, "secret");
writeFileSync(secretFile, `whsec_${Buffer.alloc(32, 1).toString("base64")}`);
const server = await startPrivateRedis();
const target = { url: server.url, prefix: "{bench}" };
const store = await openStore(target);
const reserved = await new Receiver().start();
const { url } = reserved;
await reserved.stop();
const sinks = createSinks();
const children: ChildProcess[] = [];

const worker = startWorker();
const down = await handOver(0, notices);
await kill(worker);
const second = startWorker();
const usedBytes = Number(/^used_memory:(\d+)/m.exec(await store.redis.info("memory"))?.[1]);
const hook = new Receiver();
const heldId = `n${Math.floor(notices / 3)}`;
hook.answer = (id, earlier) => (id === heldId && earlier === 0 ? "hold" : { status: 204 });
await hook.start(Number(new URL(url).port));
await hook.until(() => hook.received.at(-1)?.id === heldId);
await kill(second);
const afterKill = hook.received.length;
startWorker();
const firstAgain = hook.until(() => hook.received.length > afterKill).then(() => performance.now());
const killedAtMs = performance.now();
const restAtMs = await firstAgain;
await hook.until(() => hook.accepted.length >= notices);
const doneAtMs = performance.now();
const up = await handOver(notices, notices + Math.min(notices, 1_000));
report();
for (const child of children) await kill(child);
await sinks.stop();
await store.close();
await hook.stop();
await server.stop();
rmSync(folder, { recursive: true });

function createSinks(): RunningSinks {
  const to = { kind: "webhook", url, secretFile, previousSecretFile: undefined, format: "cloudevents" } as const;
  const ops: SinkSettings = {
    name: "ops",
    to: { ...to, timeoutMs: 10_000 },
    giveUpAfterMs: 86_400_000,
    queueMax: 100_000,
  };
  const set = { sinks: new Map([["ops", ops]]) };
  const connections = new WorkerConnections(target, silentLog);
  const common = { redis: target, connections, store, log: silentLog };
  return new RunningSinks({ ...common, set, roles: [], takeOverAfterMs, drainMs: 1_000 });
}

function startWorker(): ChildProcess {
  const file = fileURLToPath(new URL("../support/sink-child.ts", import.meta.url));
  const args = [file, target.url, target.prefix, url, secretFile, String(takeOverAfterMs)];
  const child = spawn(process.execPath, args, { stdio: "inherit" });
  children.push(child);
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

/** Hands notices over one by one, as outcomes come; answers how long each took. */
async function handOver(from: number, until: number): Promise<number[]> {
  const tookMs: number[] = [];
  for (let index = from; index < until; index += 1) {
    const startedMs = performance.now();
    await sinks.enqueue([{ sink: "ops", notice: noticeOf(`n${index}`, `policy-${index % keys}`) }]);
    tookMs.push(performance.now() - startedMs);
  }
  return tookMs;
}

function report(): void {
  const first = new Map<string, string[]>();
  const seen = new Set<string>();
  for (const { id, body } of hook.received) {
    if (seen.has(id)) continue;
    seen.add(id);
    const key = String(JSON.parse(body).partitionkey);
    first.set(key, [...(first.get(key) ?? []), id]);
  }
  const number = (id: string) => Number(id.slice(1));
  const inOrder = [...first.values()].every((ids) =>
    ids.every((id, index) => index === 0 || number(id) > number(ids[index - 1] ?? "")),
  );
  const bodies = Map.groupBy(hook.received, ({ id }) => id);
  const sameBody = [...bodies.values()].every((all) => new Set(all.map(({ body }) => body)).size === 1);
  const show = (sorted: number[]) =>
    `p50 ${(sorted[Math.floor(sorted.length / 2)] ?? 0).toFixed(2)} ms, p99 ${(sorted[Math.floor(sorted.length * 0.99)] ?? 0).toFixed(2)} ms`;
  const sorted = (values: number[]) => values.toSorted((a, b) => a - b);
  const perSecond = (notices - afterKill) / ((doneAtMs - restAtMs) / 1_000);
  const lines = [
    `notices handed over while the receiver was down: ${notices}, over ${keys} keys; workers killed: 2`,
    `arrived: ${Math.min(seen.size, notices)} of ${notices}; twice: ${[...bodies.values()].filter((all) => all.length > 1).length}`,
    `in order per key: ${inOrder}; the same body each time: ${sameBody}`,
    `handing one over: ${show(sorted(down))} with the receiver down, ${show(sorted(up))} with it up`,
    `Redis with all of them waiting: ${(usedBytes / 1e6).toFixed(1)} MB, ${(usedBytes / notices).toFixed(0)} bytes a notice`,
    `after the second kill the next delivery came in ${((restAtMs - killedAtMs) / 1_000).toFixed(1)} s (take-over after ${takeOverAfterMs / 1_000} s)`,
    `deliveries a second: ${perSecond.toFixed(0)}`,
  ];
  noteFigure({
    what: "notices lost by two kills",
    unit: "notices",
    wants: "less",
    value: notices - Math.min(seen.size, notices),
    goal: 0,
  });
  noteFigure({ what: "notices delivered after them", unit: "a second", wants: "more", value: perSecond });
  process.stdout.write(`${lines.join("\n")}\n`);
  if (!inOrder || !sameBody || seen.size < notices) process.exitCode = 1;
}
