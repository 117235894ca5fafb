// Issue: 1,000 policies fail because one service is down: one message, one recovery message. Here
// 200 of them, unless OUTAGE_POLICIES says how many: with a service that really does not answer,
// and everything between its port and what is handed to the sinks.
import { createServer, type Server } from "node:http";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { PolicySet } from "../../src/config/policy-set.ts";
import { silentLog } from "../../src/core/event-log.ts";
import type { Notice } from "../../src/model/notice.ts";
import { Producer } from "../../src/queue/producer.ts";
import { tasksOf } from "../../src/schedule/slot-tasks.ts";
import { often } from "../support/processes.ts";
import { redisForTest } from "../support/redis.ts";
import { freePort } from "../support/redis-servers.ts";
import { startWorld, type World } from "../support/world.ts";

const redis = redisForTest();
const count = Number(process.env["OUTAGE_POLICIES"] ?? 200);
/** The one that only has a heartbeat fails with them. */
const total = count + 1;
let world: World | undefined;
let server: Server | undefined;
let asked: string[] = [];
let producer: Producer | undefined;

afterEach(async () => {
  await producer?.close();
  await world?.stop();
  server?.closeAllConnections();
  server?.close();
  world = undefined;
  asked = [];
});

/** A service that takes everything. */
async function listen(port: number): Promise<void> {
  const opened = createServer((request, response) => {
    asked.push(request.url ?? "");
    response.writeHead(200, { "content-type": "application/json" });
    response.end(request.method === "POST" ? undefined : '{"syncJobId":1,"name":"one"}');
  });
  server = opened;
  await new Promise<void>((resolve) => opened.listen(port, "127.0.0.1", resolve));
}

const names = Array.from({ length: count }, (_, index) => `p${index}`);
const policiesAt = (port: number) => `${names
  .map((name, index) => `  - { name: ${name}, service: away, activate: { syncJobs: [${index + 1}] }, notify: [ops] }`)
  .join("\n")}
  - { name: elsewhere, service: main, poll: { list: approvals, expect: "count < 0" }, notify: [ops] }
  - name: quiet
    service: main
    poll: { list: approvals, expect: count }
    schedule: { every: 1s }
    # Only a person's pause keeps it from being told as stale.
    quarantine: { after: 1, for: 1h }
    notify: [{ sink: ops, on: [stale] }]
  - name: beating
    service: away
    activate: { syncJobs: [9999] }
    heartbeat: { url: "http://127.0.0.1:${port}/tick" }
sinks: { ops: { file: { path: outcomes.jsonl } } }
notifications: { groupWait: 2s }`;

describe("a service that is down", () => {
  it("is one message for all its policies, and one when it is back; others go on", async () => {
    const port = await freePort();
    const delivered: Notice[] = [];
    let set: PolicySet | undefined;
    world = await startWorld({
      redis,
      policies: policiesAt(port),
      moreServices: { away: `http://127.0.0.1:${port}` },
      moreKeys: "breaker: { after: 5, probe: 1s }",
      replicas: 2,
      before: async (_, loaded) => {
        set = loaded;
      },
      deliver: async (deliveries) => void delivered.push(...deliveries.map(({ notice }) => notice)),
    });
    const { log, target } = world;
    const queues = new Producer(target, silentLog);
    producer = queues;
    const enqueue = (slotMs = Date.now()) =>
      queues.enqueue(
        (set?.policies ?? [])
          .filter(({ name }) => name !== "quiet")
          .flatMap((one) => tasksOf(one, { slotMs, origin: "manual", covers: [] })),
      );
    const outcomes = () => log.named("task.finished").filter(({ service }) => service === "away");
    // Counted at the newest event only: with thousands of them, asking for each would be all that
    // this process does.
    const ended = (most: number) => log.until((event) => event === log.events.at(-1) && outcomes().length === most);
    const told = (kind: Notice["kind"]) => vi.waitUntil(() => delivered.some((notice) => notice.kind === kind), often);
    // Their start-by time is near, so that they end while the service is away.
    const slotMs = Date.now() - 3_600_000 + 10_000;
    await enqueue(slotMs);
    await ended(total);
    expect(new Set(outcomes().map(({ status }) => status)).has("accepted")).toBe(false);
    await told("service-down");
    await listen(port);
    await enqueue();
    await ended(2 * total);
    await told("service-up");
    await told("stale");
    await vi.waitUntil(() => asked.includes("/tick"), often);
    const [down, up] = ["service-down", "service-up"].map((kind) => delivered.filter((notice) => notice.kind === kind));
    expect(new Set(down?.map(({ id }) => id)).size).toBe(1);
    expect(new Set(up?.map(({ id }) => id)).size).toBe(1);
    expect(down?.[0]).toMatchObject({ service: "away", policy: null, orderKey: "service:away" });
    expect(up?.[0]?.data["policiesCount"]).toBe(total);
    const others = delivered.filter(({ kind }) => !kind.startsWith("service-"));
    expect(others.map(({ kind, policy }) => `${kind} ${policy}`).toSorted()).toEqual([
      "failing elsewhere",
      "stale quiet",
    ]);
  });
});
