// What tests of whole commands share: a sandbox, a policy file, commands in the test's own process,
// and real `syncline serve` processes that end with each test.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll } from "vitest";
import { readSettings, type Settings } from "../../src/config/settings.ts";
import { type Sandbox, startSandbox } from "../../src/sandbox/sandbox.ts";
import { openStore, type Store } from "../../src/store/redis.ts";
import { runHere } from "./commands-here.ts";
import { type Ended, Syncline } from "./processes.ts";
import { redisForTest } from "./redis.ts";

/** Commands over one policy file. `prefix` keeps tests apart. */
export interface CommandFixture {
  readonly redis: { readonly url: string; readonly prefix: string };
  /** The policy file. */
  file(): string;
  sandbox(): Sandbox;
  /** What the environment says to commands. */
  settings(): Settings;
  /** Starts `syncline serve` and waits until it is ready. */
  serve(prefix: string, ...more: string[]): Promise<Syncline>;
  /** Runs any other command to its end, in the test's own process. */
  command(prefix: string, ...args: string[]): Promise<Pick<Ended, "out" | "err"> & { readonly code: number }>;
  /** Looks into Redis. */
  inStore<T>(prefix: string, look: (store: Store) => Promise<T>): Promise<T>;
}

/**
 * Sets a fixture up for a test file; `policies` are the items of `policies:`, indented by two, of
 * the service `main`. `mapping`: the service's, as flow YAML; none unless given.
 */
export function commandFixture(policies: string, mapping = "{}"): CommandFixture {
  const redis = redisForTest();
  const running: Syncline[] = [];
  let folder: string;
  let sandbox: Sandbox;
  const file = () => join(folder, "policies.yaml");
  const environment = () => ({ REDIS_URL: redis.url, TEST_TOKEN: sandbox.token });
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "syncline-"));
    sandbox = await startSandbox({ runMs: [200, 400], activities: 20, repositories: ["HR"] });
    const service = `  main: { baseUrl: "${sandbox.baseUrl}", token: { env: TEST_TOKEN }, mapping: ${mapping} }`;
    await writeFile(file(), `apiVersion: syncline/v1\nservices:\n${service}\npolicies:\n${policies}\n`);
  });
  afterEach(async () => {
    for (const one of running.splice(0)) {
      one.kill("SIGKILL");
      await one.ended();
    }
  });
  afterAll(async () => {
    await sandbox.stop();
    await rm(folder, { recursive: true });
  });
  return {
    redis,
    file,
    sandbox: () => sandbox,
    settings: () => readSettings(environment()),
    serve: async (prefix, ...more) => {
      const one = new Syncline(["serve", "--config", file(), "--prefix", prefix, ...more], environment());
      running.push(one);
      await one.until(({ event }) => event === "serve.ready");
      return one;
    },
    command: (prefix, ...args) => runHere([...args, "--prefix", prefix], environment()),
    inStore: async (prefix, look) => {
      const store = await openStore({ url: redis.url, prefix });
      try {
        return await look(store);
      } finally {
        await store.close();
      }
    },
  };
}
