// The table of declared state in docs/outcomes.md, walked over real HTTP: what the server does to
// the look or to the PUT, what becomes of the task.
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { type DeclaredObject, objectName } from "../../../src/core/declared-object.ts";
import { silentLog } from "../../../src/core/event-log.ts";
import { type Denial, isDenied, resourceKey } from "../../../src/core/limiter.ts";
import type { Task } from "../../../src/model/task.ts";
import { SyncService, staticToken } from "../../../src/service/client.ts";
import { leaseKey, leaseMs } from "../../../src/store/leases.ts";
import { redisTimeMs } from "../../../src/store/redis.ts";
import { ServiceLimiter } from "../../../src/store/service-limiter.ts";
import { stepApply } from "../../../src/tasks/apply.ts";
import { deferIfDenied } from "../../../src/tasks/defer.ts";
import type { ProcessDependencies } from "../../../src/tasks/process-task.ts";
import { answeringService, status as answers } from "../../support/answering-service.ts";
import { testPolicy } from "../../support/policies.ts";
import { redisForTest, storeForTest } from "../../support/redis.ts";
import { steppedTask, told as toldEnding } from "../../support/stepped-task.ts";
import { testDeps } from "../../support/task-deps.ts";

const target = redisForTest();

const store = await storeForTest(target);

type Answer = (response: ServerResponse) => void;

const object: DeclaredObject = { kind: "syncJob", id: 42, fields: { name: "Contracts" } };
let cells = 0;

/**
 * A server where one method fails in one way; the others work on a sync job that is called
 * something else.
 */
async function step(method: "GET" | "PUT", answer: Answer, stopping = new AbortController().signal) {
  cells += 1;
  let puts = 0;
  const server = createServer((request, response) => {
    if (request.method === "PUT") puts += 1;
    if (request.method === method) answer(response);
    else response.end(`{"syncJobId":42,"name":"${request.method === "PUT" ? "Contracts" : "Old"}"}`);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const timeouts = { requestMs: 4_500 };
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const service = new SyncService({ baseUrl, token: staticToken("secret"), timeouts, retries: 0 });
  onTestFinished(() => {
    service.close();
    server.closeAllConnections();
    server.close();
  });
  const nowMs = await redisTimeMs(store);
  const task: Task = {
    v: 1,
    id: `cell-${cells}`,
    kind: "apply",
    policy: "names",
    service: `main-${cells}`,
    repository: "HR",
    target: "syncJob-42",
    slotMs: nowMs,
    origin: "schedule",
    covers: [],
    startByMs: nowMs + 60_000,
  };
  const result = await stepApply(task, partsOver(service, stopping), { attempt: 1, attemptsMax: 8, signal: stopping });
  /** The same task once more, at its next attempt, after its start-by time or not. */
  const again = (isTooLate: boolean, more: Partial<ProcessDependencies> = {}) =>
    stepApply(
      isTooLate ? { ...task, startByMs: 0 } : task,
      { ...partsOver(service, stopping), ...more },
      {
        attempt: 2,
        attemptsMax: 8,
        signal: stopping,
      },
    );
  return { result, puts, again, task };
}

function partsOver(service: SyncService, stopping: AbortSignal): ProcessDependencies {
  return testDeps(store, {
    policy: () => testPolicy({ name: "names", action: { kind: "apply", objects: [object] } }),
    service: () => service,
    stopping,
  });
}

const first = { attempt: 1, attemptsMax: 8, signal: new AbortController().signal };

const status = (code: number, headers: Record<string, string> = {}): Answer => {
  return (response) => response.writeHead(code, headers).end();
};

/** A short name for what becomes of a task. */
function told({ result, puts }: Pick<Awaited<ReturnType<typeof step>>, "result" | "puts">): string {
  const sent = `, ${puts} PUT`;
  if (result.verdict === "snooze") return `snooze${sent}`;
  const { verdict, ending } = result;
  return `${verdict === "complete" ? "end" : verdict} ${ending?.status} ${ending?.reason}${sent}`;
}

const rows: readonly (readonly [what: string, answer: Answer, look: string, put: string])[] = [
  ["302", status(302, { location: "/login" }), "end failed bad-answer, 0 PUT", "end unknown bad-answer, 2 PUT"],
  ["400", status(400), "end failed refused, 0 PUT", "end failed read-only-field, 1 PUT"],
  [
    "a proxy's 400",
    (response) => response.writeHead(400).end("<html><title>400 The SSL certificate error</title>"),
    "end failed bad-answer, 0 PUT",
    "end unknown bad-answer, 2 PUT",
  ],
  ["401", status(401), "end failed no-access, 0 PUT", "end failed no-access, 1 PUT"],
  ["403", status(403), "end failed no-access, 0 PUT", "end failed no-access, 1 PUT"],
  ["404", status(404), "end failed no-target, 0 PUT", "end failed no-target, 1 PUT"],
  [
    "a proxy's 404",
    (response) => response.writeHead(404).end("<!doctype html>"),
    "end failed bad-answer, 0 PUT",
    "end unknown bad-answer, 2 PUT",
  ],
  ["409", status(409), "end failed refused, 0 PUT", "end failed refused, 1 PUT"],
  ["412", status(412), "end failed refused, 0 PUT", "end failed refused, 1 PUT"],
  ["422", status(422), "end failed refused, 0 PUT", "end failed read-only-field, 1 PUT"],
  ["428", status(428), "end failed refused, 0 PUT", "end failed refused, 1 PUT"],
  ["429", status(429), "snooze, 0 PUT", "snooze, 1 PUT"],
  ["503 with Retry-After", status(503, { "retry-after": "7" }), "snooze, 0 PUT", "snooze, 1 PUT"],
  ["408", status(408), "retry failed answer-lost, 0 PUT", "retry unknown answer-lost, 1 PUT"],
  ["500", status(500), "retry failed server-error, 0 PUT", "retry unknown server-error, 1 PUT"],
  ["502", status(502), "retry failed answer-lost, 0 PUT", "retry unknown answer-lost, 1 PUT"],
  [
    "a reset",
    (response) => response.socket?.resetAndDestroy(),
    "retry failed answer-lost, 0 PUT",
    "retry unknown answer-lost, 1 PUT",
  ],
  ["no answer in time", () => {}, "retry failed answer-lost, 0 PUT", "retry unknown answer-lost, 1 PUT"],
  [
    "a login page",
    (response) => response.end("<html>"),
    "end failed bad-answer, 0 PUT",
    "end unknown bad-answer, 2 PUT",
  ],
];

describe("what becomes of an apply task", () => {
  it.each(rows)("when the look is answered by %s", async (_, answer, look) => {
    expect(told(await step("GET", answer))).toBe(look);
  });

  it.each(rows)("when the PUT is answered by %s", async (_, answer, _look, put) => {
    expect(told(await step("PUT", answer))).toBe(put);
  });

  it("when the process stops meanwhile: it goes on where it was", async () => {
    const stop = new AbortController();
    const stopped = await step("PUT", () => stop.abort(), stop.signal);
    expect(told(stopped)).toBe("snooze, 1 PUT");
  });

  it("past its start-by time is not called missed once it may have changed something", async () => {
    let isTaken = false;
    const taken = await step("GET", (response) => {
      if (isTaken) response.writeHead(429, { "retry-after": "900" }).end();
      else response.end('{"syncJobId":42,"name":"Old"}');
      isTaken = true;
    });
    expect(taken.result).toMatchObject({
      verdict: "complete",
      ending: {
        status: "failed",
        reason: "throttled",
        detail: expect.stringMatching(/while it waits: .*; but .*Old.*Contracts/),
      },
    });
    const lost = await step("PUT", (response) => response.socket?.resetAndDestroy());
    expect(told(lost)).toBe("retry unknown answer-lost, 1 PUT");
    expect(await lost.again(true)).toMatchObject({
      ending: { status: "unknown", evidence: "none", reason: "too-late", answerLost: true },
    });
    expect(await lost.again(false, { policy: () => undefined })).toMatchObject({
      ending: { status: "unknown", evidence: "none", reason: "policy-removed", answerLost: true },
    });
    const refused = await step("PUT", status(429, { "retry-after": "900" }));
    expect(told(refused)).toBe("end missed throttled, 1 PUT");
    expect(told({ result: await refused.again(true), puts: refused.puts })).toBe("end missed too-late, 1 PUT");
  });

  it("waits for a run whose workers were away for long, as long as the queue has it", async () => {
    const { task, again } = await step("GET", status(500));
    const lease = leaseKey(store, { ...task, target: "42" });
    await store.redis.set(lease, "nightly__run__42__1", "PX", leaseMs - 360_000);
    // It can only be read: an update of it would throw.
    const service = { getSyncJobById: async () => ({ syncJobId: 42, name: "Old" }) } as unknown as SyncService;
    const step2 = await again(false, { service: () => service, jobStatus: async () => "pending" });
    expect(step2.verdict).toBe("snooze");
  });

  it("when it has a cure: it says which field, and what to do", async () => {
    const { result } = await step("PUT", (response) =>
      response.writeHead(400).end('{"error":{"code":"","message":"The property \'name\' is read-only."}}'),
    );
    expect(result).toMatchObject({
      ending: {
        detail:
          "sync job 42: name cannot be changed at this service, which says: The property 'name' is read-only; take it out of the policy, or change it in the service",
      },
    });
    const precondition = await step("PUT", status(428));
    expect(precondition.result).toMatchObject({ ending: { detail: expect.stringContaining("If-Match") } });
  });
});

const drive: DeclaredObject = { kind: "driveTarget", id: 9, fields: { siteName: "HR", folderName: "In" } };

it.each([
  ["direct", "a read shows it", object, ',"name":"Contracts"', "sync job 42 is as declared"],
  ["inferred", "a read does not show it", object, "", "sync job 42 is declared as last applied; name cannot be read"],
  [
    "inferred",
    "nothing reads it",
    drive,
    "",
    "drive-type target 9 is declared as last applied; siteName, folderName cannot be read",
  ],
] as const)("nothing to do is %s where %s", async (evidence, _why, declared, shown, detail) => {
  const deps = { policy: () => testPolicy({ action: { kind: "apply", objects: [declared] } }) };
  const by = (task: Task, parts: ProcessDependencies) => stepApply(task, parts, first);
  const reads = [answers(200, '{"syncJobId":42,"name":"Old"}'), answers(200, `{"syncJobId":42${shown}}`)];
  const task = { kind: "apply", target: objectName(declared) } as const;
  const stepped = await steppedTask(store, { task, by, reads, writes: [answers(204)], deps });
  expect(toldEnding(await stepped.step())).toBe("succeeded direct applied");
  const next = await by({ ...stepped.task, id: `${stepped.task.id}-next` }, stepped.deps);
  expect(next).toMatchObject({ ending: { status: "succeeded", evidence, reason: "nothing-to-do", detail } });
  expect(stepped.asked.filter((method) => method === "PUT")).toHaveLength(1);
});

it("an apply task probes an open breaker by a read that its own work needs", async () => {
  const probed = async (target: string) => {
    const denials: Denial[] = [{ deniedBy: "breaker", waitMs: 0 }];
    const by = (task: Task, deps: ProcessDependencies) => stepApply(task, deps, first);
    const deps = { policy: () => testPolicy({ action: { kind: "apply", objects: [object] } }) };
    const read = { reads: [answers(403)], writes: [], deps: { ...deps, denialOf: async () => denials.pop() } };
    const { urls, step } = await steppedTask(store, { task: { kind: "apply", target }, by, ...read });
    await step();
    return urls[0]?.split("?")[0];
  };
  expect(await probed("syncJob-42")).toBe("/odata/syncjobs(42)");
});

it.each([
  ["run", "42", { operation: "GetSyncJobById", key: "42" }],
  ["apply", "siteTarget-9", { operation: "GetJobMasks" }],
] as const)("a task (%s %s) probes an open breaker by another list where its read has failed", async (...given) => {
  const [kind, name, read] = given;
  const limits = { concurrencyMax: undefined, requestsPerSecond: undefined, failuresMax: 1, leaseMs: 10_000 };
  const parts = { store, clock: systemClock, log: silentLog };
  const limiter = new ServiceLimiter({ ...limits, service: `${kind}-fails`, probeEveryMs: 60_000 }, parts);
  const { urls, service } = await answeringService({ reads: [answers(200, '{"value":[]}')], writes: [], limiter });
  const permit = await limiter.acquire({ isRead: true, resource: resourceKey(read) });
  if (!isDenied(permit)) await permit.release({ kind: "server", retryAfterMs: undefined });
  const task: Task = {
    ...{ v: 1, id: `${kind}-probe`, kind, policy: "nightly", service: "main", repository: null, target: name },
    ...{ slotMs: 0, origin: "schedule", covers: [], startByMs: Number.MAX_SAFE_INTEGER },
  };
  const deps = { service: () => service, denialOf: () => limiter.denial() };
  expect(await deferIfDenied(task, deps, { nowMs: await redisTimeMs(store) })).toBeUndefined();
  expect(urls.map((url) => url.split("?")[0])).toEqual(["/odata/trigger"]);
});
