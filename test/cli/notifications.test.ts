// Real processes, from a schedule to a receiver and a file: the receiver is down, comes up, does
// not answer, and the processes that deliver are killed. Every outcome arrives at least once, with
// the same id and body each time, in the order of its policy, signed.
import { createHmac, timingSafeEqual } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, expect, it } from "vitest";
import { startSandbox } from "../../src/sandbox/sandbox.ts";
import { often, Syncline } from "../support/processes.ts";
import { type Received, Receiver } from "../support/receiver.ts";
import { redisForTest } from "../support/redis.ts";
import { freePort } from "../support/redis-servers.ts";
import { signingSecret } from "../support/sink-fixture.ts";

const redis = redisForTest();
const folder = await mkdtemp(join(tmpdir(), "syncline-"));
const sandbox = await startSandbox({ activities: 0, repositories: ["HR"] });
const hookPort = await freePort();
const running: Syncline[] = [];
const hook = new Receiver();

afterEach(async () => {
  for (const one of running.splice(0)) {
    one.kill("SIGKILL");
    await one.ended();
  }
});
afterAll(async () => {
  await sandbox.stop();
  await hook.stop();
  await rm(folder, { recursive: true });
});

const lines = join(folder, "told.jsonl");
const policy = (name: string, syncJob: number) =>
  `  - { name: ${name}, service: main, repository: HR, activate: { syncJobs: [${syncJob}] }, schedule: { every: 1s } }`;
const policies = `apiVersion: syncline/v1
services: { main: { baseUrl: "${sandbox.baseUrl}", token: { env: TEST_TOKEN } } }
defaults: { notify: [{ sink: hook, on: [every] }, { sink: file, on: [every] }] }
policies:
${policy("one", 1)}
${policy("two", 2)}
sinks:
  hook: { webhook: { url: "http://127.0.0.1:${hookPort}/hook", secretFile: secret } }
  file: { file: { path: "${lines}" } }
`;

async function serve(): Promise<Syncline> {
  const file = join(folder, "policies.yaml");
  await writeFile(file, policies);
  await writeFile(join(folder, "secret"), signingSecret);
  const args = ["serve", "--config", file, "--prefix", redis.prefix, "--take-over-after", "2s"];
  const one = new Syncline(args, { REDIS_URL: redis.url, TEST_TOKEN: sandbox.token });
  running.push(one);
  await one.until(({ event }) => event === "serve.ready");
  return one;
}

const finished = (one: Syncline) =>
  one.events.filter(({ event }) => event === "task.finished").map(({ taskId }) => String(taskId));

/** As the page of Standard Webhooks says, step by step, and not with what made the signature. */
function isSigned({ headers, body }: (typeof hook.received)[number]): boolean {
  const key = Buffer.from(signingSecret.slice("whsec_".length), "base64");
  const signed = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
  const wanted = createHmac("sha256", key).update(signed).digest();
  const isRecent = Math.abs(Number(headers["webhook-timestamp"]) - Date.now() / 1_000) < 300;
  const [version, signature = ""] = String(headers["webhook-signature"]).split(",");
  return isRecent && version === "v1" && timingSafeEqual(Buffer.from(signature, "base64"), wanted);
}

it("every outcome arrives, with its id and in its order, whatever dies on the way", async () => {
  const first = await serve();
  await first.until(() => finished(first).length >= 6);
  await first.until(({ event, sink }) => event === "sink.failing" && sink === "hook");
  first.kill("SIGKILL");
  await first.ended();

  // The receiver is there again, takes two and leaves the third one without an answer: killed in
  // mid delivery. A process that stood still for two seconds delivers one of the two again.
  hook.answer = (_, earlier) => (earlier === 0 && new Set(hook.accepted).size >= 2 ? "hold" : { status: 204 });
  await hook.start(hookPort);
  const second = await serve();
  const isHeld = ({ status }: Received) => status === 0;
  await hook.until(() => hook.received.some(isHeld));
  second.kill("SIGKILL");
  await second.ended();
  const held = hook.received.find(isHeld)?.id ?? "";
  hook.answer = () => ({ status: 204 });

  const third = await serve();
  const tasks = new Set([...finished(first), ...finished(second)]);
  const eventsOf = (all: readonly string[]) => all.map((text) => JSON.parse(text));
  const arrived = () => new Set(eventsOf(hook.received.map(({ body }) => body)).map(({ data }) => data.taskId));
  await hook.until(() => hook.accepted.includes(held) && tasks.isSubsetOf(arrived()));

  expect(hook.received.filter((one) => !isSigned(one))).toEqual([]);
  const byId = Map.groupBy(hook.received, ({ id }) => id);
  expect([...byId.values()].filter((all) => new Set(all.map(({ body }) => body)).size > 1)).toEqual([]);
  // The id goes with the task: neither has a second one.
  expect(arrived().size).toBe(byId.size);
  const [unanswered, ...answers] = byId.get(held)?.map(({ status }) => status) ?? [];
  // At least once: who gets no time to renew its lock has it delivered by another worker, too.
  expect([unanswered, new Set(answers)]).toEqual([0, new Set([204])]);
  const firstOfEach = eventsOf([...byId.values()].map(([one]) => one?.body ?? ""));
  for (const name of ["one", "two"]) {
    const at = firstOfEach.filter(({ partitionkey }) => partitionkey === name).map(({ data }) => data.finishedAt);
    expect(at.length).toBeGreaterThan(2);
    expect(at).toEqual(at.toSorted());
  }

  const written = async () => eventsOf((await readFile(lines, "utf8")).trimEnd().split("\n"));
  const inFile = async () => tasks.isSubsetOf(new Set((await written()).map(({ data }) => data.taskId)));
  await expect.poll(inFile, often).toBe(true);
  third.kill("SIGTERM");
  expect((await third.ended()).code).toBe(0);
  const ids = new Map((await written()).map(({ data, id }) => [data.taskId, id]));
  // A sink says it of the same event under the same id as any other sink.
  expect(firstOfEach.filter(({ id, data }) => ids.has(data.taskId) && ids.get(data.taskId) !== id)).toEqual([]);
});
