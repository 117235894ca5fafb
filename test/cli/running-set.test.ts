// Commands without a policy file: they look with the policies that run, which Redis keeps.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, inject, it, onTestFinished, vi } from "vitest";
import { readKeptNote, readReplicas } from "../../src/store/kept-policies.ts";
import { openStore } from "../../src/store/redis.ts";
import { runHere } from "../support/commands-here.ts";
import { folderForTest } from "../support/folder.ts";
import { worldForTest } from "../support/world.ts";

const often = (name: string) => `
  - { name: ${name}, service: main, run: { syncJobs: [1] }, schedule: { cron: "0 3 1 1 *", timezone: Asia/Tokyo } }
`;

it("a run by a file of one's own leaves the policies that run as they are", async () => {
  const world = await worldForTest({ policies: often("first"), replicas: 1 });
  const { url, prefix } = world.target;
  const store = await openStore(world.target);
  onTestFinished(() => store.close());
  const kept = async () => (await readKeptNote(store))?.hash;
  await expect.poll(kept).toBeDefined();
  const before = await kept();
  const file = join(folderForTest(), "mine.yaml");
  const service = `  mine: { baseUrl: "${world.sandbox.baseUrl}", token: { env: TEST_TOKEN }, mapping: {} }`;
  const policy = "  - { name: mine, service: mine, run: { syncJobs: [1] }, follow: { until: accepted } }";
  writeFileSync(file, `apiVersion: syncline/v1\nservices:\n${service}\npolicies:\n${policy}\n`);
  const args = ["run", "mine", "--config", file, "--wait", "--redis-url", url, "--prefix", prefix, "--reason", "trial"];
  expect((await runHere(args, { TEST_TOKEN: world.sandbox.token })).code).toBe(0);
  expect(await kept()).toBe(before);
});

describe("commands without --config", () => {
  it("look with the policies that run, also while a broken file lies on the disk", async () => {
    const world = await worldForTest({ policies: often("first"), replicas: 2 });
    const { url, prefix } = world.target;
    let variables: Record<string, string> = {};
    const command = (...args: string[]) => runHere([...args, "--prefix", prefix, "--redis-url", url], variables);
    const store = await openStore(world.target);
    const running = async () => (await readReplicas(store)).map(({ hash, rejected }) => ({ hash, rejected }));
    await world.run("first");
    const explained = await command("explain", "first");
    expect([explained.code, explained.err]).toEqual([0, ""]);
    expect(explained.out).toContain("first, by hand ");
    const audited = await command("audit", "first");
    expect(audited.out).toContain("first ");
    const paused = await command("pause", "first", "--reason", "x", "--until", "02:30");
    expect(paused.out).toMatch(/ until \S+ 17:30:00Z \(\S+ 02:30:00 GMT\+9\): x$/);
    await command("resume", "first");
    expect(JSON.parse((await command("status", "--json")).out).services).toMatchObject([{ service: "main" }]);

    const [{ hash } = { hash: "" }] = await running();
    await world.configure({ policies: often("second") });
    const hashes = async () => (await running()).map((one) => one.hash);
    await expect.poll(hashes).not.toContain(hash);
    expect(new Set(await hashes()).size).toBe(1);
    expect((await command("explain", "second")).err).toBe("");
    expect(await command("explain", "first").catch(String)).toMatchObject({ code: 2 });

    await world.configure({ text: "apiVersion: syncline/v1\nservices: {}\npolicies: [{ name: third }]\n" });
    const wrong = { problems: expect.any(Number), where: expect.stringMatching(/policies\.yaml:3$/) };
    await expect.poll(async () => (await running()).map(({ rejected }) => rejected)).toMatchObject([wrong, wrong]);
    expect((await command("explain", "second")).code).toBe(0);
    const status = await command("status");
    expect(status.code).toBe(1);
    expect(status.out).toMatch(/config: \w{8}, in force on 2 processes since .*\n {2}from \S+/);
    expect(status.out).toMatch(/newer files are rejected since \S+ \S+ by 2 of 2 processes: \S+policies\.yaml:3: /);

    variables = { TEST_TOKEN: world.sandbox.token };
    const examined = await command("doctor", "--json");
    expect(examined.code).toBe(1);
    const { checks } = JSON.parse(examined.out);
    expect(checks.filter(({ level }: { level: string }) => level === "problem")).toEqual([
      {
        ...{ check: "replicas", subject: "config", level: "problem" },
        what: expect.stringMatching(/rejected since .* by 2 of 2 processes: \S+policies\.yaml:3: /),
        cure: expect.stringMatching(/^correct the files; `syncline validate \S+policies\.yaml` shows/),
      },
    ]);
    expect(checks).toContainEqual(expect.objectContaining({ check: "sync jobs", level: "ok" }));

    const file = join(folderForTest(), "other.yaml");
    writeFileSync(file, "apiVersion: syncline/v1\npolicies: [{ name: third }]\n");
    const meant = await command("status", "--config", file);
    expect([meant.code, meant.out]).toEqual([2, ""]);
    variables = { SYNCLINE_CONFIG: file };
    vi.stubEnv("SYNCLINE_CONFIG", file);
    onTestFinished(() => void vi.unstubAllEnvs());
    expect((await command("status")).err).toMatch(
      /other\.yaml cannot be used \(\d problems?; `syncline validate \S+` shows all\): shown is what the set \w{8}, taken \S+ \S+Z by \S+, says/,
    );
    for (const args of [
      ["plan"],
      ["pause", "second", "--reason", "x"],
      ["resume", "second"],
      ["run", "second", "--wait"],
    ]) {
      const { code, err } = await command(...args);
      expect([args[0], code, err]).toEqual([args[0], 0, expect.stringContaining("shown is what the set")]);
    }
    writeFileSync(
      file,
      `apiVersion: syncline/v1\nservices: { main: { baseUrl: "http://a.example", token: { env: T } } }\npolicies:${often("x")}`,
    );
    const other = await command("explain", "x");
    expect(other.err).toMatch(/other\.yaml is not what runs: the set \w{8}, taken .* is in force/);
    await store.close();
  });

  it("say what to do where no policies are known, or no Redis answers", async () => {
    const none = await runHere(["status", "--prefix", "test-none", "--redis-url", inject("redis").url], {});
    expect([none.code, none.out]).toEqual([2, ""]);
    const closed = await runHere(["doctor", "--redis-url", "redis://127.0.0.1:1"], {});
    expect(closed.code).toBe(1);
    expect(closed.out).toMatch(/problem +redis: Redis at \S+ does not answer.*→ check REDIS_URL or --redis-url/s);
    expect(none.err).toMatch(/no policies are known under the prefix test-none.*--config, or check --prefix/);
  });
});
