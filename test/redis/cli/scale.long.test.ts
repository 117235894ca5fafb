// That commands cost in proportion to the policies: CPU for four times as many, where the pure
// part is much, and commands of Redis. bench/commands.ts measures the same at full size.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterAll, expect, it, vi } from "vitest";
import { policyChecks } from "../../../src/cli/shared-options.ts";
import { loadPolicies } from "../../../src/config/load-policies.ts";
import { keepPolicySet } from "../../../src/store/kept-policies.ts";
import { openStore } from "../../../src/store/redis.ts";
import { writePolicyFolder } from "../../bench/policy-folder.ts";
import { runHere } from "../../support/commands-here.ts";
import { redisForTest } from "../../support/redis.ts";

const variables = { BENCH_TOKEN: "bench" };

/** An installation of so many policies, of which each second follows another. */
async function installationOf(count: number) {
  const folder = mkdtempSync(join(tmpdir(), "syncline-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  const files = join(folder, "policies");
  writePolicyFolder(files, count, Date.now(), { followsEach: 2 });
  const loaded = await loadPolicies(files, { variables, checks: policyChecks });
  if (!loaded.ok) throw new Error(loaded.problems[0]?.message);
  const { url, prefix } = redisForTest();
  const store = await openStore({ url, prefix });
  await keepPolicySet(store, loaded.set, "host/1");
  await store.close();
  const place = { ...variables, REDIS_URL: url, SYNCLINE_PREFIX: prefix };
  return { run: (line: string) => runHere(line.replace("FILES", files).split(" "), place) };
}

const [some, many] = [await installationOf(350), await installationOf(1_400)];

/** CPU of this thread in milliseconds, the lesser of two: the first makes the code warm. */
async function cpuOf({ run }: typeof some, line: string): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < 2; round += 1) {
    const before = process.threadCpuUsage();
    const { code, err } = await run(line);
    expect([err, code === 0 || code === 1]).toEqual([err, true]);
    const { user, system } = process.threadCpuUsage(before);
    times.push((user + system) / 1_000);
  }
  return Math.min(...times);
}

it.each(["validate FILES", "plan", "plan --to +36h --duration 2h", "plan --requests", "simulate --to +24h"])(
  "`%s` takes CPU in proportion to the policies",
  async (line) => {
    const ratios: number[] = [];
    // Four times in proportion, sixteen times where it is quadratic. A pair may meet another load.
    for (let round = 0; round < 3 && !ratios.some((ratio) => ratio < 8); round += 1) {
      const few = await cpuOf(some, line);
      ratios.push((await cpuOf(many, line)) / few);
    }
    expect(Math.min(...ratios)).toBeLessThan(8);
  },
);

it.each(["status --json", "digest", "report", "audit"])("`%s` asks Redis in proportion to them", async (line) => {
  const commandsOf = async ({ run }: typeof some) => {
    const send = vi.spyOn(Redis.prototype, "sendCommand");
    await run(line);
    const { length } = send.mock.calls;
    send.mockRestore();
    return length;
  };
  const few = await commandsOf(some);
  expect((await commandsOf(many)) / few).toBeLessThan(4.5);
});
