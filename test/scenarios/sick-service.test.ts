// Issue: one service asks for patience, or is down. All replicas leave it alone, other services go
// on, and no worker slot is held.
import { writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { folderForTest } from "../support/folder.ts";
import { often } from "../support/processes.ts";
import { type World, worldForTest } from "../support/world.ts";

type Answering = (request: IncomingMessage, response: ServerResponse) => void;

/** A service that answers as told, and counts what really arrives. */
async function sickService() {
  const seen: { method: string; url: string; atMs: number }[] = [];
  let waiting: (() => void)[] = [];
  const service = { answer: healthy, seen, url: "", until };
  const server = createServer((request, response) => {
    seen.push({ method: request.method ?? "", url: request.url ?? "", atMs: performance.now() });
    service.answer(request, response);
    for (const wake of waiting.splice(0)) wake();
  });
  async function until(fits: () => boolean): Promise<void> {
    while (!fits()) await new Promise<void>((resolve) => waiting.push(resolve));
  }
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    waiting = [];
    server.closeAllConnections();
    server.close();
  });
  service.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return service;
}

const healthy: Answering = (request, response) => {
  const { pathname } = new URL(request.url ?? "", "http://x");
  response.writeHead(200, { "content-type": "application/json" });
  if (request.method === "POST") response.end();
  else if (pathname.endsWith("$count")) response.end("0");
  else if (pathname.includes("syncjobs(")) response.end('{"syncJobId":1,"name":"one"}');
  else response.end('{"value":[]}');
};

const patience: Answering = (_, response) => {
  response.writeHead(429, { "retry-after": "900" });
  response.end();
};

const broken: Answering = (_, response) => {
  response.writeHead(500);
  response.end();
};

const policies = `
  - { name: many, service: sick, activate: { syncJobs: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12] } }
  - { name: one, service: sick, activate: { syncJobs: [99] } }
  - { name: look, service: sick, poll: { list: approvals } }
  - { name: followed, service: sick, run: { syncJobs: [20] } }
  - { name: masked, service: sick, run: { fromMasks: {} } }
  - { name: declared, service: sick, apply: { syncJobs: { 21: { name: Contracts } } } }
  - { name: retired, service: sick, delete: { syncJob: 22, name: Contracts } }
  - { name: story, service: main, poll: { list: approvals } }`;

async function twoReplicas(url: string, moreKeys: string, token: { moreToken?: string } = {}): Promise<World> {
  return worldForTest({ policies, replicas: 2, moreServices: { sick: url }, moreKeys, ...token });
}

/** Until all these tasks sleep in the queue and none is being worked on. */
function asleep(world: World, count: number): PromiseLike<void> {
  return expect.poll(() => world.actions("sick"), often).toEqual({ active: 0, delayed: count });
}

describe("a service that answers 429 with Retry-After 900", () => {
  // No worker is held meanwhile.
  it("is left alone by both replicas; other services go on, late slots are missed", async () => {
    const sick = await sickService();
    sick.answer = patience;
    const world = await twoReplicas(sick.url, "limits: { concurrency: 1 }");
    await world.enqueue("one");
    await world.log.until(({ event, service }) => event === "service.throttled" && service === "sick");
    // What was under way in that moment may still arrive; after the replicas' view has aged,
    // nothing may.
    await asleep(world, 1);
    expect(sick.seen).toHaveLength(1);
    for (const policy of ["many", "look", "followed", "masked", "declared", "retired"]) await world.enqueue(policy);
    await asleep(world, 17);
    // One slot each, and it is free: a task whose start-by time passes meanwhile ends at once.
    const late = Date.now() - 3_600_000 + 60_000;
    await world.enqueue("one", late);
    await world.log.until(() => world.log.outcomesOf("one").length > 0);
    expect(world.log.outcomesOf("one")).toMatchObject([{ status: "missed", reason: "throttled", attempts: 1 }]);
    expect(world.log.outcomesOf("one")[0]?.detail).toMatch(
      /^its start-by time passes while it waits: held back for \S+: the service throttles$/,
    );
    expect(await world.run("story")).toMatchObject({ status: "succeeded" });
    expect(await world.actions("sick")).toEqual({ active: 0, delayed: 17 });
    expect(sick.seen).toHaveLength(1);
    expect(world.log.named("service.throttled")).toHaveLength(1);
    expect(world.log.named("task.retried")).toEqual([]);
  });
});

describe("a service that is down", () => {
  it("costs one read a period over all replicas and one event, and then recovers", async () => {
    const sick = await sickService();
    sick.answer = broken;
    const world = await twoReplicas(sick.url, "breaker: { after: 3, probe: 1s }");
    await world.enqueue("look");
    await world.log.until(({ event }) => event === "breaker.opened");
    const before = sick.seen.length;
    expect(before).toBe(3);
    await world.enqueue("many");
    await sick.until(() => sick.seen.length >= before + 4);
    const probes = sick.seen.slice(before);
    expect(probes.map(({ method }) => method)).toEqual(probes.map(() => "GET"));
    // One list alone had failed, so a read about another sync job was a probe at once. The nth
    // after it comes no earlier than n periods after the breaker opened, which was after the last
    // failure had come; a busy machine adds to that.
    const openedMs = sick.seen[before - 1]?.atMs ?? 0;
    const periods = probes.slice(1).map(({ atMs }, index) => (atMs - openedMs) / (index + 1));
    expect(Math.min(...periods)).toBeGreaterThan(990);
    expect(await world.run("story")).toMatchObject({ status: "succeeded" });
    sick.answer = healthy;
    await world.log.until(() => world.log.outcomesOf("many").length === 12);
    expect(world.log.outcomesOf("many").map(({ status, attempts }) => `${status} ${attempts}`)).toEqual(
      Array.from({ length: 12 }, () => "succeeded 1"),
    );
    expect(world.log.named("breaker.opened")).toHaveLength(1);
    expect(world.log.named("breaker.closed")).toHaveLength(1);
  });
});

describe("a service of which one list always fails", () => {
  it("starts what is due all the same, at once, while the list is left alone", async () => {
    const sick = await sickService();
    sick.answer = (request, response) => (request.url?.includes("approvals") ? broken : healthy)(request, response);
    const world = await twoReplicas(sick.url, "breaker: { after: 3, probe: 1h }");
    await world.enqueue("look");
    await world.log.until(({ event }) => event === "breaker.opened");
    expect(await world.run("one")).toMatchObject({ status: "succeeded" });
    await world.enqueue("look", Date.now() + 1_000);
    await world.enqueue("many");
    await world.log.until(() => world.log.outcomesOf("many").length === 12);
    expect(new Set(world.log.outcomesOf("many").map(({ status }) => status))).toEqual(new Set(["succeeded"]));
    expect(world.log.named("breaker.opened")).toHaveLength(1);
    expect(world.log.named("breaker.closed")).toHaveLength(1);
    expect(sick.seen.filter(({ url }) => url.includes("approvals")).length).toBeLessThanOrEqual(5);
  });
});

describe("a service that there is no token for", () => {
  it("counts as down: one event, no attempt spent by other tasks, and then it recovers", async () => {
    const sick = await sickService();
    const folder = folderForTest();
    const file = join(folder, "token");
    const world = await twoReplicas(sick.url, "breaker: { after: 3, probe: 1s }", { moreToken: `{ file: ${file} }` });
    await world.enqueue("look");
    await world.log.until(({ event }) => event === "breaker.opened");
    await world.enqueue("many");
    await asleep(world, 12);
    const [opened] = world.log.named("breaker.opened");
    expect(opened).toMatchObject({ service: "sick", kind: "unreachable" });
    const why = `token file ${file} cannot be read (ENOENT): check the path and its rights`;
    expect(new Set(world.log.named("token.unusable").map(({ service, message }) => `${service}: ${message}`))).toEqual(
      new Set([`sick: ${why}`]),
    );
    expect(sick.seen).toEqual([]);
    await writeFile(file, "a-token-at-last");
    await world.log.until(() => world.log.outcomesOf("many").length === 12);
    expect(world.log.outcomesOf("many").map(({ status, attempts }) => `${status} ${attempts}`)).toEqual(
      Array.from({ length: 12 }, () => "succeeded 1"),
    );
    expect(world.log.named("task.retried").filter(({ policy }) => policy === "many")).toEqual([]);
    expect(world.log.named("breaker.opened")).toHaveLength(1);
    expect(world.log.named("breaker.closed")).toHaveLength(1);
  });

  it("counts once per request to its token endpoint; others wait without an attempt", async () => {
    const sick = await sickService();
    const folder = folderForTest();
    const clientSecretFile = join(folder, "client");
    await writeFile(clientSecretFile, "a-client-secret-at-last");
    let [asked, isDown] = [0, true];
    sick.answer = (request, response) => {
      if (!request.url?.startsWith("/token")) return healthy(request, response);
      if (isDown) asked += 1;
      response.writeHead(isDown ? 503 : 200, { "content-type": "application/json" });
      response.end('{"access_token":"a-token-at-last","token_type":"bearer","expires_in":3600}');
    };
    const moreToken = `{ oauth2: { tokenUrl: "${sick.url}/token", clientId: me, clientSecretFile: ${clientSecretFile} } }`;
    const world = await twoReplicas(sick.url, "breaker: { after: 3, probe: 1s }", { moreToken });
    await world.enqueue("many");
    await world.log.until(({ event }) => event === "breaker.opened");
    expect(asked).toBeGreaterThanOrEqual(3);
    isDown = false;
    await world.log.until(() => world.log.outcomesOf("many").length === 12);
    expect(new Set(world.log.outcomesOf("many").map(({ status }) => status))).toEqual(new Set(["succeeded"]));
    const spent = world.log.outcomesOf("many").reduce((sum, { attempts }) => sum + Number(attempts) - 1, 0);
    expect(spent).toBeLessThanOrEqual(asked);
    expect(world.log.named("task.retried")).toHaveLength(spent);
    expect(world.log.named("breaker.opened")).toHaveLength(1);
  });
});
