// Starts and deletions whose service asks for patience while they are under way: nothing is asked
// meanwhile, and what can be known after it is waited for.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { shortTiming } from "../support/short-timing.ts";
import { type World, worldForTest } from "../support/world.ts";

/**
 * How long the service wants to be left alone unless said: longer than a start or a deletion is
 * looked for where no request of it is denied.
 */
const patienceMsDefault = 5_000;
const timing = { ...shortTiming, baselineWithinMs: 4_000, verifyForMs: 500, unreadableForMs: 3_500 };
const follow = (more = "") => `follow: { unreadableFor: 3500ms${more} }`;

interface Script {
  /** What a request starts or deletes is done, and its answer lost. */
  readonly losesAnswers: boolean;
  /**
   * The request that the service answers with 429 first: the first look at the activities, or the
   * first one after the change.
   */
  readonly throttles: "first look" | "after the change";
  readonly patienceMs?: number;
}

/** A service with one sync job, that asks for patience once. */
async function patientService({ losesAnswers, throttles, patienceMs = patienceMsDefault }: Script) {
  const service = { url: "", changes: 0, early: 0 };
  let quietUntilMs: number | undefined;
  const server = createServer((request, response) => {
    const nowMs = performance.now();
    if (request.method !== "GET") return change(response);
    const isDue = throttles === "first look" ? request.url?.includes("activities") : service.changes > 0;
    if (quietUntilMs === undefined && isDue) quietUntilMs = nowMs + patienceMs;
    if (quietUntilMs === undefined || nowMs >= quietUntilMs) return answer(request, response, service.changes > 0);
    service.early += 1;
    response.writeHead(429, { "retry-after": String(Math.ceil((quietUntilMs - nowMs) / 1_000)) }).end();
  });
  const change = (response: ServerResponse) => {
    service.changes += 1;
    if (losesAnswers) response.destroy();
    else response.writeHead(200, { "content-type": "application/json" }).end("true");
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
  });
  service.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return service;
}

function answer(request: IncomingMessage, response: ServerResponse, isChanged: boolean): void {
  const path = request.url ?? "";
  const json = (status: number, body: unknown) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  if (path.includes("$count")) json(200, 0);
  else if (path.includes("/syncjobs(")) isChanged ? json(404, {}) : json(200, { syncJobId: 3, name: "Contracts" });
  else if (path.includes("activities") && isChanged)
    json(200, { value: [{ activityId: 1, syncJobId: 3, state: "Finished" }] });
  else json(200, { value: [] });
}

const mapping = `mapping: { activity: { id: item.activityId, syncJobId: item.syncJobId, finished: 'item.state == "Finished"', succeeded: 'item.state == "Finished"' }, conflict: { id: item.conflictId, syncJobId: item.syncJobId } }`;

async function start(url: string, policy: string): Promise<World> {
  const policies = `  - { name: story, service: patient, repository: HR, ${policy} }`;
  return worldForTest({ policies, moreServices: { patient: url }, moreKeys: mapping, timing });
}

describe("a service that asks for patience right after the answer to a start got lost", () => {
  it.each(["verify", "retry"])(
    "is left alone, and asked afterwards whether it happened (onUnknown: %s)",
    async (word) => {
      const service = await patientService({ losesAnswers: true, throttles: "after the change" });
      const { run, log } = await start(service.url, `run: { syncJobs: [3] }, onUnknown: ${word}, ${follow()}`);
      expect(await run("story")).toMatchObject({ status: "succeeded", answerLost: true });
      expect(service.changes).toBe(1);
      // Both lists may be under way when the first is refused.
      expect(service.early).toBeLessThanOrEqual(2);
      expect(log.named("task.start-confirmed")).toHaveLength(1);
    },
  );

  it("is waited for no longer than the run is followed", async () => {
    const service = await patientService({ losesAnswers: true, throttles: "after the change", patienceMs: 900_000 });
    const { run } = await start(service.url, `run: { syncJobs: [3] }, ${follow(", deadline: 1s")}`);
    expect(await run("story")).toMatchObject({ status: "unknown", reason: "answer-lost" });
    expect(service.early).toBeLessThanOrEqual(2);
  });
});

describe("a service that asks for patience while a run is followed", () => {
  it("is left alone, and its lists are read on afterwards", async () => {
    const service = await patientService({ losesAnswers: false, throttles: "after the change" });
    const { run } = await start(service.url, "run: { syncJobs: [3] }");
    expect(await run("story")).toMatchObject({ status: "succeeded", evidence: "direct", answerLost: false });
    expect(service.changes).toBe(1);
    expect(service.early).toBeLessThanOrEqual(2);
  });
});

describe("a service that asks for patience right after the answer to a deletion got lost", () => {
  it("is left alone, and asked afterwards whether the sync job is gone", async () => {
    const service = await patientService({ losesAnswers: true, throttles: "after the change" });
    const { run } = await start(service.url, "delete: { syncJob: 3, name: Contracts }");
    expect(await run("story")).toMatchObject({ status: "succeeded", reason: "deletion-confirmed" });
    expect(service).toMatchObject({ changes: 1, early: 1 });
  });
});

describe("a service that asks for patience while a start waits for its first look", () => {
  it("is looked at after it, so that the start does not go out blind", async () => {
    const service = await patientService({ losesAnswers: false, throttles: "first look" });
    const { run, log } = await start(service.url, "run: { syncJobs: [3] }");
    expect(await run("story")).toMatchObject({ status: "succeeded", evidence: "direct" });
    expect(log.named("run.without-baseline")).toEqual([]);
    expect(service.changes).toBe(1);
    expect(service.early).toBeLessThanOrEqual(2);
  });
});
