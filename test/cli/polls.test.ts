// A poll that looks back, over real processes: killed while it reads, and started again.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { runHere } from "../support/commands-here.ts";
import { type ListServer, startListServer } from "../support/list-server.ts";
import { Syncline } from "../support/processes.ts";
import { redisForTest } from "../support/redis.ts";

const redis = redisForTest();
const running: Syncline[] = [];
let server: ListServer;
let folder: string;

afterEach(async () => {
  for (const one of running.splice(0)) {
    one.kill("SIGKILL");
    await one.ended();
  }
  await server.stop();
  await rm(folder, { recursive: true });
});

const approvals = (...ids: readonly number[]) =>
  ids.map((approvalId) => ({ approvalId, itemName: `Draft ${approvalId}` }));

it("loses nothing new when a worker dies reading, and forgets nothing on restart", async () => {
  server = await startListServer({ approvals: approvals(1, 2) });
  folder = await mkdtemp(join(tmpdir(), "syncline-"));
  const file = join(folder, "policies.yaml");
  const policy = '{ name: news, service: main, poll: { list: approvals, expect: "new == []" } }';
  const service = `{ baseUrl: "${server.url}", token: { env: TEST_TOKEN } }`;
  await writeFile(file, `apiVersion: syncline/v1\nservices: { main: ${service} }\npolicies: [${policy}]\n`);
  const environment = { REDIS_URL: redis.url, TEST_TOKEN: "secret" };
  const about = ["--prefix", redis.prefix];
  const serve = async () => {
    const one = new Syncline(
      ["serve", "--config", file, ...about, "--take-over-after", "2s", "--drain", "5s"],
      environment,
    );
    running.push(one);
    await one.until(({ event }) => event === "serve.ready");
    return one;
  };
  const run = (...more: string[]) => runHere(["run", "news", "--config", file, ...about, ...more], environment);

  const first = await serve();
  expect(await run("--wait")).toMatchObject({ code: 0 });
  const arrived = server.hold();
  await run();
  await arrived;
  first.kill("SIGKILL");
  await first.ended();
  server.lists["approvals"] = approvals(1, 2, 3, 4);

  const second = await serve();
  const told = await second.until(({ event }) => event === "task.finished");
  expect(told).toMatchObject({
    status: "failed",
    changed: true,
    count: 4,
    offending: 2,
    offendingItems: ["Draft 3 (3)", "Draft 4 (4)"],
  });
  second.kill("SIGTERM");
  await second.ended();

  // Nobody serves: this command works itself, and knows what the others saw.
  server.lists["approvals"] = approvals(1, 2, 3, 4, 5);
  const third = await run("--wait");
  expect(third.code).toBe(1);
  expect(third.out).toContain("new == [] does not hold: count is 5");
  expect(third.out).toContain("; Draft 5 (5)");
  expect(third.out).not.toContain("Draft 4");
  const { out } = await runHere(["history", "news", ...about], environment);
  expect(out.match(/Draft \d \(\d\)/g)).toEqual(["Draft 5 (5)", "Draft 3 (3)", "Draft 4 (4)"]);
});
