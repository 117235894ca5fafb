// A policy set as a running `serve` leaves it in Redis, and live processes that run it: for tests
// of commands that look without a policy file.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { policyChecks } from "../../src/cli/shared-options.ts";
import { loadPolicies } from "../../src/config/load-policies.ts";
import type { Policy, PolicySet, ServiceSettings } from "../../src/config/policy-set.ts";
import { keepPolicySet, noteReplica, type Replica } from "../../src/store/kept-policies.ts";
import type { Store } from "../../src/store/redis.ts";
import { RedisWatch } from "../../src/store/redis-watch.ts";
import { folderForTest } from "./folder.ts";
import { testPolicy } from "./policies.ts";

const hash = "1a2b3c4d".padEnd(64, "0");

/** Keeps the set of one service `main` and these items of `policies:`, indented by two. */
export async function keepPolicies(store: Store, policies: string): Promise<void> {
  const file = join(folderForTest(), "policies.yaml");
  const service = `  main: { baseUrl: "https://sync.example.com", token: { env: TEST_TOKEN } }`;
  writeFileSync(file, `apiVersion: syncline/v1\nservices:\n${service}\npolicies:\n${policies}\n`);
  const loaded = await loadPolicies(file, { variables: { TEST_TOKEN: "x" }, checks: policyChecks });
  if (!loaded.ok) throw new Error(loaded.problems.map(({ message }) => message).join("\n"));
  await keepPolicySet(store, loaded.set, "here/1");
}

/** The same for policies as values, without a file: thousands of them take no time. */
export async function keepSet(store: Store, policies: readonly Policy[]): Promise<void> {
  await keepPolicySet(store, setOf(policies), "host/1");
}

/** A set of the service `main`, and others that these policies name. */
export function setOf(policies: readonly Policy[]): PolicySet {
  const main: ServiceSettings = {
    ...{ name: "main", baseUrl: "https://sync.example.com", tls: undefined, pathForm: "parentheses" },
    ...{ concurrency: 8, requestTimeoutMs: 30_000, mapping: {} },
    token: { kind: "env", variable: "T" },
    limits: { concurrencyMax: undefined, requestsPerSecond: undefined },
    breaker: { after: 5, probeMs: 30_000 },
  };
  return {
    ...{
      services: new Map(["main", ...policies.map(({ service }) => service)].map((name) => [name, { ...main, name }])),
      sinks: new Map(),
      policies,
      byHand: testPolicy(),
      contentHash: hash,
      files: ["/p/a.yaml"],
    },
    notifications: { groupWaitMs: 0, muteTiming: undefined },
  };
}

/** A process with both roles that has just ticked, and what it runs. */
export async function liveProcess(store: Store, changes: Partial<Replica> = {}): Promise<void> {
  const watch = new RedisWatch(store, { roles: ["scheduler", "worker"] });
  await watch.check();
  await noteReplica(store, watch.process, {
    ...{ v: 1, where: "host/1", roles: ["scheduler", "worker"], version: "0.1.0", hash, path: "/p" },
    ...{ sinceMs: 1_000, rejected: null },
    ...changes,
  });
}

/** Processes of a test tick once; they count as alive for an hour from now on. */
export async function keepAlive({ redis, key }: Store): Promise<void> {
  for (const process of await redis.zrange(key("processes"), "0", "-1"))
    await redis.zadd(key("processes"), Date.now() + 3_600_000, process);
}
