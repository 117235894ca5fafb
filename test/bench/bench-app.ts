// The real app of the benchmarks: policies from YAML text, its log written to standard output as
// `serve` does. Used by contenders.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type RunningApp, startApp } from "../../src/app/app.ts";
import { policyChecks } from "../../src/cli/shared-options.ts";
import { loadPolicies } from "../../src/config/load-policies.ts";
import type { Policy, PolicySet } from "../../src/config/policy-set.ts";
import { createLogger } from "../../src/ops/logger.ts";

/** The prefix of every key of the app. */
export const benchPrefix = "bench";

/** What an app is started with. `services`: name → base URL. */
export interface BenchAppOptions {
  readonly url: string;
  readonly services: Readonly<Record<string, string>>;
  readonly concurrency: number;
}

/** All outcomes are kept: they are counted. */
const variables = { BENCH_TOKEN: "bench", SYNCLINE_OUTCOMES_KEPT: "100000" };

/** Starts a worker whose policies are those of `benchSet`. */
export async function startBenchApp(options: BenchAppOptions): Promise<RunningApp> {
  const log = createLogger("info", (line) => process.stdout.write(`${line}\n`));
  return startApp({
    set: await benchSet(options),
    redis: { url: options.url, prefix: benchPrefix },
    roles: ["worker"],
    variables,
    log,
    takeOverAfterMs: 30_000,
    drainMs: 5_000,
  });
}

/** Two policies for each service: `accepted-NAME` does not follow its runs, `settled-NAME` does. */
export async function benchSet({ services, concurrency }: Omit<BenchAppOptions, "url">): Promise<PolicySet> {
  const folder = await mkdtemp(join(tmpdir(), "syncline-bench-"));
  const file = join(folder, "policies.yaml");
  await writeFile(file, policyFile(services, concurrency));
  const result = await loadPolicies(file, { variables, checks: policyChecks });
  await rm(folder, { recursive: true });
  if (!result.ok) throw new Error(result.problems.map(({ line, message }) => `${line}: ${message}`).join("\n"));
  return result.set;
}

/** A policy of the set. */
export function policyOf(set: PolicySet, name: string): Policy {
  const policy = set.policies.find((one) => one.name === name);
  if (policy === undefined) throw new Error(`no policy ${name}`);
  return policy;
}

function policyFile(services: BenchAppOptions["services"], concurrency: number): string {
  const names = Object.keys(services);
  const service = (name: string) => `  ${name}:
    baseUrl: ${services[name]}
    token: { env: BENCH_TOKEN }
    limits: { concurrency: ${concurrency} }
    mapping:
      activity: { id: item.activityId, syncJobId: item.syncJobId, finished: item.state == "Finished", succeeded: item.state == "Finished" }`;
  const policy = (name: string, until: string) =>
    `  - { name: ${until}-${name}, service: ${name}, repository: HR, run: { syncJobs: [1] }, follow: { until: ${until}, deadline: 1h } }`;
  return `apiVersion: syncline/v1
services:
${names.map(service).join("\n")}
policies:
${names.flatMap((name) => [policy(name, "accepted"), policy(name, "settled")]).join("\n")}
`;
}
