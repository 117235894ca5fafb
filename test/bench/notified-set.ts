// The policies of the benchmark notified-starts.ts: a hundred that only start, each outcome told to
// one webhook.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { policyChecks } from "../../src/cli/shared-options.ts";
import { loadPolicies } from "../../src/config/load-policies.ts";
import type { PolicySet } from "../../src/config/policy-set.ts";

/** How many policies there are. */
export const policiesCount = 100;

/** The policies `p0` to `p99`. */
export async function notifiedSet(at: {
  readonly serviceUrl: string;
  readonly hookUrl: string;
  readonly secretFile: string;
}): Promise<PolicySet> {
  const policies = Array.from(
    { length: policiesCount },
    (_, index) => `  - { name: p${index}, service: main, run: { syncJobs: [1] }, follow: { until: accepted } }`,
  );
  const text = `apiVersion: syncline/v1
services: { main: { baseUrl: "${at.serviceUrl}", token: { env: BENCH_TOKEN }, limits: { concurrency: 20 } } }
defaults: { notify: [{ sink: hook, on: [every] }] }
sinks: { hook: { webhook: { url: "${at.hookUrl}", secretFile: "${at.secretFile}" } } }
policies:
${policies.join("\n")}
`;
  const folder = await mkdtemp(join(tmpdir(), "syncline-bench-"));
  const file = join(folder, "policies.yaml");
  await writeFile(file, text);
  const result = await loadPolicies(file, { variables: { BENCH_TOKEN: "bench" }, checks: policyChecks });
  await rm(folder, { recursive: true });
  if (!result.ok) throw new Error(result.problems.map(({ line, message }) => `${line}: ${message}`).join("\n"));
  return result.set;
}
