// Changes of a process that dies after any of its steps in Redis: none is without its record.
import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { readTasksInFlight } from "../../../src/queue/tasks-in-flight.ts";
import { Changes } from "../../../src/store/changes.ts";
import { History } from "../../../src/store/history.ts";
import { changeOperations } from "../../../src/web/api/change-operations.ts";
import { createToken } from "../../../src/web/tokens.ts";
import { createWebApp } from "../../../src/web/web-app.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { stateOfRedis } from "../../support/redis-state.ts";
import { webForTest } from "../../support/web-fixture.ts";

const ana = createToken({ name: "ana", scope: "operate", services: [] });
// Time flies, so that no request is refused for being too fast.
let flownMs = 0;
const clock = { ...systemClock, monotonicMs: () => (flownMs += 10_000) };
const web = await webForTest({ tokens: () => ana.line, clock });
const { store } = web;
const context = web.parts.context();
const stepsMax = 60;

/** Lets so many calls pass, and refuses all later ones: the process is dead. */
function dying(stepsLeft: { count: number }) {
  const wrap = <T extends object>(inner: T): T =>
    new Proxy(inner, {
      get(_, name) {
        const member: unknown = Reflect.get(inner, name, inner);
        if (typeof member !== "function") return member;
        return (...args: unknown[]) => {
          if (stepsLeft.count <= 0) throw new Error("killed");
          stepsLeft.count -= 1;
          const answer: unknown = member.apply(inner, args);
          return answer instanceof Promise || typeof answer !== "object" || answer === null ? answer : wrap(answer);
        };
      },
    });
  return {
    ...context,
    store: { ...store, redis: wrap(store.redis) },
    producer: wrap(context.producer),
    notices: wrap(context.notices),
  };
}

const request = async (app: ReturnType<typeof createWebApp>, [method, path, body]: Sent, key: string) => {
  const answer = await app.request(`http://127.0.0.1/api/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${ana.token}`,
      "idempotency-key": key,
      ...(body && { "content-type": "application/json" }),
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: JSON.parse(await answer.text()) };
};
type Sent = readonly [string, string, object?];
const alive = createWebApp(web.parts);
const send = (...sent: Sent) => request(alive, sent, randomUUID());
// The first use of a queue notes its settings in Redis.
await send("POST", "/policies/deliveries/runs", { reason: "first" });
const why = (reason: string) => `reason=${reason}`;

/** What each operation is sent, after what is needed for it. */
const operations: Record<string, (reason: string) => Promise<Sent> | Sent> = {
  pause: (reason) => ["POST", "/pauses", { target: "policy:invoices", reason }],
  resume: async (reason) => {
    await send("POST", "/pauses", { target: "policy:invoices", reason: "before" });
    return ["DELETE", `/pauses/policy:invoices?catchUp=true&${why(reason)}`];
  },
  runPolicy: (reason) => ["POST", "/policies/deliveries/runs", { reason }],
  runSyncJob: (reason) => ["POST", "/services/main/runs", { syncJob: 7, repository: "HR", reason }],
  acknowledge: (reason) => ["PUT", "/policies/personnel/acknowledgement", { reason }],
  endAcknowledgement: async (reason) => {
    await send("PUT", "/policies/personnel/acknowledgement", { reason: "before" });
    return ["DELETE", `/policies/personnel/acknowledgement?${why(reason)}`];
  },
  replayFailed: async (reason) => ["POST", "/failed/replay", { ids: await twoFailed(), reason }],
  discardFailed: async (reason) => ["POST", "/failed/discard", { ids: await twoFailed(), reason }],
  cancelTask: async (reason) => {
    const { body } = await send("POST", "/policies/deliveries/runs", { reason: "before" });
    return ["POST", `/tasks/${body.tasks[0]}/cancel`, { reason }];
  },
};

let endedMs = Date.now();
async function writeFailed(): Promise<string> {
  endedMs += 1_000;
  const at = new Date(endedMs).toISOString();
  const taskId = `invoices__run__42__${Math.floor(endedMs / 1_000)}`;
  const failed = { status: "failed", reason: "server-error", evidence: "direct" } as const;
  await new History(store).record(testOutcome({ taskId, policy: "invoices", slot: at, finishedAt: at, ...failed }));
  return taskId;
}

const twoFailed = async () => [await writeFailed(), await writeFailed()];
const changes = () => new Changes(store).newest(100);
const inFlight = async () =>
  (await readTasksInFlight(store, ["main"], () => true)).tasks.map(({ task }) => task.id).toSorted();

describe("a process that dies after any step of a change", () => {
  it.each(changeOperations.map(({ name }) => name).filter((name) => name !== "validateConfig"))(
    "leaves no %s without its record, and no record of a change that was not",
    async (name) => {
      let stepsToDo = 0;
      for (let steps = 0; steps < stepsMax && stepsToDo === 0; steps += 1) {
        const reason = `${name}-killed-after-${steps}`;
        const sent = await operations[name]?.(reason);
        if (sent === undefined) throw new Error(`say here what ${name} is sent`);
        const before = await stateOfRedis(store);
        const left = { count: steps };
        const app = createWebApp({ ...web.parts, context: () => dying(left) });
        const { status } = await request(app, sent, reason);
        const isChanged = (await stateOfRedis(store)) !== before;
        const record = (await changes()).find((change) => change.reason === reason);
        if (isChanged) expect([steps, record?.actor, record?.what !== undefined]).toEqual([steps, "ana", true]);
        if (record && !record.isBegun) expect([steps, isChanged]).toEqual([steps, true]);
        if (status !== 200 || left.count === 0) continue;
        expect([record?.reason, record?.isBegun]).toEqual([reason, undefined]);
        stepsToDo = steps;
      }
      expect(stepsToDo).toBeGreaterThan(2);
    },
  );

  it("loses no entry of the failed list, and starts it once when it is replayed again", async () => {
    const queued = async (steps: number) => {
      const ids = [await writeFailed()];
      const before = new Set(await inFlight());
      const app = createWebApp({ ...web.parts, context: () => dying({ count: steps }) });
      await request(app, ["POST", "/failed/replay", { ids, reason: "killed" }], `lost-${steps}`);
      const again = await send("POST", "/failed/replay", { ids, reason: "again" });
      const left = JSON.stringify((await send("GET", "/failed")).body).includes(`"${ids[0]}"`);
      const tasks = (await inFlight()).filter((id) => !before.has(id));
      return { told: again.body.done.length + again.body.left.length, left, tasks: tasks.length };
    };
    for (let steps = 0; steps < 60; steps += 1)
      expect([steps, await queued(steps)]).toEqual([steps, { told: 1, left: false, tasks: 1 }]);
  });
});

describe("two people who replay the same at once", () => {
  it("start it once", async () => {
    const ids = [await writeFailed()];
    const before = new Set(await inFlight());
    await Promise.all(times(4, () => send("POST", "/failed/replay", { ids, reason: "both" })));
    expect((await inFlight()).filter((id) => !before.has(id))).toHaveLength(1);
  });
});

function times<Item>(count: number, item: () => Promise<Item>): Promise<Item>[] {
  return Array.from({ length: count }, item);
}
