// Late is told once a day over real processes and a real Redis, whichever of them is killed when.
// Each process dies at a command about notices, drawn by seed: it judges, saves or delivers then.
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, it, onTestFinished } from "vitest";
import { localDate } from "../../src/core/instant.ts";
import { freshDeadlines } from "../../src/schedule/deadlines.ts";
import { folderForTest } from "../support/folder.ts";
import { Syncline } from "../support/processes.ts";
import { Receiver } from "../support/receiver.ts";
import { redisForTest, storeForTest } from "../support/redis.ts";
import { signingSecret } from "../support/sink-fixture.ts";
import { createRandom } from "./seeded-random.ts";

const target = redisForTest();
const store = await storeForTest(target);
const names = Array.from({ length: 20 }, (_, index) => `p${index}`);
const deaths = 6;

it.each([1, 2])(
  "late is told once a day over killed processes (seed %i)",
  async (seed) => {
    const random = createRandom(seed);
    const prefix = `${target.prefix}-${seed}`;
    const key = (...parts: string[]) => [prefix, "notifications", ...parts].join(":");
    const hook = await new Receiver().start();
    onTestFinished(() => hook.stop());
    const file = policyFile(hook.url);
    // As if judged 25 minutes ago: two deadlines of each policy have been missed since.
    const within = { kind: "within", withinMs: 60_000 } as const;
    const judgedMs = Date.now() - 25 * 60_000;
    const state = JSON.stringify(freshDeadlines(within, judgedMs));
    await store.redis.hset(key("deadlines"), Object.fromEntries(names.map((name) => [name, state])));
    let onCommand = (_text: string) => {};
    await watchCommands((text) => onCommand(text));

    const start = () => {
      const args = ["serve", "--config", file, "--prefix", prefix, "--roles", "worker", "--take-over-after", "2s"];
      const one = new Syncline(args, { REDIS_URL: target.url, TEST_TOKEN: "x" });
      onTestFinished(() => one.kill("SIGKILL"));
      return one;
    };
    /** Resolves at a later command with one of these texts: about notices unless said. */
    const atCommand = (count: number, parts = [`${prefix}:notifications`, "sink.hook"]) =>
      new Promise<void>((resolve) => {
        let seen = 0;
        onCommand = (text) => {
          if (parts.some((part) => text.includes(part))) seen += 1;
          if (seen >= count) resolve();
        };
      });
    for (let death = 0; death < deaths; death += 1) {
      const isOver = atCommand(random.integer(1, 120));
      const one = start();
      await isOver;
      one.kill("SIGKILL");
      await one.ended();
      // As if the 15 s of its lease were over.
      await store.redis.del(key("lease"));
    }
    const told = () => new Map(hook.received.map(({ id, body }) => [id, JSON.parse(body)]));
    const last = start();
    // Around midnight a policy is told of two days.
    const subjects = () => new Set([...told().values()].map(({ subject }) => subject));
    await hook.until(() => subjects().size >= names.length);
    // One more judgement, by the last process, and nothing of it waits.
    await atCommand(1, [`"hmget" "${key("deadlines")}"`]);
    last.kill("SIGTERM");
    await last.ended();
    expect(await store.redis.hlen(key("outbox"))).toBe(0);
    const days = [...told().values()].map(
      ({ subject, type, data }) => `${subject} ${type} ${localDate(Date.parse(data.deadline), "UTC")}`,
    );
    expect([...new Set(days)].toSorted()).toEqual(days.toSorted());
    expect(new Set(days.map((day) => day.split(" ")[0]))).toEqual(new Set(names));
  },
  300_000,
);

/** Tells each command that Redis takes, until the test ends. ioredis loses its place under many. */
async function watchCommands(onCommand: (text: string) => void): Promise<void> {
  const { hostname, port } = new URL(target.url);
  const socket = connect(Number(port), hostname);
  onTestFinished(() => void socket.destroy());
  const lines = createInterface({ input: socket });
  socket.write("MONITOR\r\n");
  await once(lines, "line");
  lines.on("line", (line) => onCommand(line.slice(0, 500)));
}

function policyFile(url: string): string {
  const folder = folderForTest();
  writeFileSync(join(folder, "secret"), signingSecret);
  const policies = names.map(
    (name, index) =>
      `  - { name: ${name}, service: main, run: { syncJobs: [${index}] }, schedule: { every: 10m }, expect: { within: 1m }, notify: [hook] }\n`,
  );
  const file = join(folder, "p.yaml");
  writeFileSync(
    file,
    `apiVersion: syncline/v1
services: { main: { baseUrl: "http://127.0.0.1:1", token: { env: TEST_TOKEN } } }
sinks: { hook: { webhook: { url: "${url}", secretFile: secret } } }
policies:
${policies.join("")}`,
  );
  return file;
}
