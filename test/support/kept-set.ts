// Keeps policies in Redis, as `syncline serve` does, for commands that look with those that run.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { policyChecks } from "../../src/cli/shared-options.ts";
import { loadPolicies } from "../../src/config/load-policies.ts";
import { keepPolicySet } from "../../src/store/kept-policies.ts";
import type { Store } from "../../src/store/redis.ts";
import { folderForTest } from "./folder.ts";

/** Keeps the set of one service `main` and these items of `policies:`, indented by two. */
export async function keepPolicies(store: Store, policies: string): Promise<void> {
  const file = join(folderForTest(), "policies.yaml");
  const service = `  main: { baseUrl: "https://sync.example.com", token: { env: TEST_TOKEN } }`;
  writeFileSync(file, `apiVersion: syncline/v1\nservices:\n${service}\npolicies:\n${policies}\n`);
  const loaded = await loadPolicies(file, { variables: { TEST_TOKEN: "x" }, checks: policyChecks });
  if (!loaded.ok) throw new Error(loaded.problems.map(({ message }) => message).join("\n"));
  await keepPolicySet(store, loaded.set, "here/1");
}
