// A whole Syncline in this process, for scenarios: a real sandbox over HTTP, a real Redis, policies
// from YAML text, and a log that tests wait on. Everything is stopped by `stop`.
import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type AppOptions, type RunningApp, startApp } from "../../src/app/app.ts";
import { policyChecks } from "../../src/cli/shared-options.ts";
import { loadPolicies } from "../../src/config/load-policies.ts";
import type { PolicySet } from "../../src/config/policy-set.ts";
import type { Outcome } from "../../src/model/outcome.ts";
import { Producer } from "../../src/queue/producer.ts";
import { parseFault } from "../../src/sandbox/faults.ts";
import { type Sandbox, startSandbox } from "../../src/sandbox/sandbox.ts";
import { tasksOf } from "../../src/schedule/slot-tasks.ts";
import type { RedisTarget } from "../../src/store/redis.ts";
import type { TaskTiming } from "../../src/tasks/timing.ts";
import { redisForTest } from "./redis.ts";
import { shortTiming } from "./short-timing.ts";
import { type LoggedEvent, TestLog } from "./test-log.ts";

const mapping = `
      activity: { id: item.activityId, syncJobId: item.syncJobId, finished: 'item.state in ["Finished", "Failed"]', succeeded: item.state == "Finished" }
      conflict: { id: item.conflictId, syncJobId: item.syncJobId }`;

const timed = mapping.replace("finished:", "startedAt: item.startedAt, finished:");

/** What a scenario starts with. */
export interface WorldOptions {
  readonly redis: { readonly url: string; readonly prefix: string };
  /** The items of `policies:`, indented by two. */
  readonly policies: string;
  readonly faults?: readonly string[];
  readonly sandbox?: Parameters<typeof startSandbox>[0];
  /** `timed`: it also says when activities began. */
  readonly mapping?: boolean | "timed";
  /** `timeouts.request` of the sandbox's service, such as `2s`; 5 s unless set. */
  readonly requestTimeout?: string;
  /** A CEL text: by what a sync job shows that it is active. */
  readonly active?: string;
  /** Further services: name → base URL. */
  readonly moreServices?: Readonly<Record<string, string>>;
  /** What else stands in each further service, as YAML in one line. */
  readonly moreKeys?: string;
  /** Where the token of each further service comes from; the sandbox's own unless set. */
  readonly moreToken?: string;
  /** After how long another one takes over a task; 5 s unless set. */
  readonly takeOverAfterMs?: number;
  /** How many apps work side by side; 1 unless set. All write to one log. */
  readonly replicas?: number;
  readonly timing?: TaskTiming;
  /** The owner of the policies; none unless set. */
  readonly owner?: string;
  /** How fast lists are read; at least a third of a second apart unless set. */
  readonly pace?: NonNullable<AppOptions["pace"]>;
  /** Where notices go; nothing is told unless set. */
  readonly deliver?: NonNullable<AppOptions["enqueueNotices"]>;
  /** What stands in Redis already when the app starts: whatever others have left there. */
  readonly before?: (target: RedisTarget, set: PolicySet) => Promise<void>;
}

/** A started scenario. */
export interface World {
  readonly sandbox: Sandbox;
  readonly log: TestLog;
  readonly app: RunningApp;
  /** Where its keys are. */
  readonly target: { readonly url: string; readonly prefix: string };
  /** Queues a policy by hand, for this instant unless another is named. */
  enqueue(policy: string, slotMs?: number): Promise<void>;
  /** How many tasks of a service's actions are being worked on, and how many sleep. */
  actions(service: string): Promise<{ active: number; delayed: number }>;
  /** Queues a policy by hand as a process with these policies would, whatever the app knows. */
  enqueueOf(policies: string, policy: string): Promise<void>;
  /** Runs a policy by hand and waits for its next outcome. */
  run(policy: string): Promise<Outcome>;
  /**
   * Writes the policy file anew and waits until it is taken over or rejected; answers that event.
   * `text` instead of a right file.
   */
  configure(
    change: Partial<Pick<WorldOptions, "policies" | "mapping" | "moreServices">> | { text: string },
  ): Promise<LoggedEvent>;
  /** Starts of a sync job that the sandbox really did. */
  starts(syncJobId: number): number;
  stop(): Promise<void>;
}

let worlds = 0;

/**
 * A world that ends with its test, over the test Redis with keys of its own unless one is named.
 */
export async function worldForTest({
  redis = redisForTest(onTestFinished),
  ...options
}: Omit<WorldOptions, "redis"> & Partial<Pick<WorldOptions, "redis">>): Promise<World> {
  const world = await startWorld({ ...options, redis });
  onTestFinished(() => world.stop());
  return world;
}

/** Starts a sandbox and an app over it. */
export async function startWorld(options: WorldOptions): Promise<World> {
  const sandbox = await startSandbox({
    runMs: [200, 400],
    activities: 120,
    ...options.sandbox,
    faults: (options.faults ?? []).map(parseFault),
  });
  const folder = await mkdtemp(join(tmpdir(), "syncline-"));
  const file = join(folder, "policies.yaml");
  await writeFile(file, policyFile(sandbox.baseUrl, options));
  const variables = { TEST_TOKEN: sandbox.token };
  const result = await loadPolicies(file, { variables, checks: policyChecks });
  if (!result.ok) throw new Error(result.problems.map(({ line, message }) => `${line}: ${message}`).join("\n"));
  const log = new TestLog();
  worlds += 1;
  const target = { url: options.redis.url, prefix: `${options.redis.prefix}-${worlds}` };
  await options.before?.(target, result.set);
  const producer = new Producer(target, log);
  const appOptions: AppOptions = {
    set: result.set,
    redis: target,
    roles: ["scheduler", "worker"],
    owner: options.owner,
    variables,
    log,
    takeOverAfterMs: options.takeOverAfterMs ?? 5_000,
    drainMs: 5_000,
    watch: { path: file, checks: policyChecks },
    retireAfterMs: 3_000,
    ...(options.deliver === undefined ? {} : { enqueueNotices: options.deliver }),
    timing: options.timing ?? shortTiming,
    pace: options.pace ?? { gapMs: 100, fastestMs: 300, slowestMs: 1_000 },
  };
  const apps = await Promise.all(Array.from({ length: options.replicas ?? 1 }, () => startApp(appOptions)));
  const app: RunningApp = {
    stop: async () => void (await Promise.all(apps.map((one) => one.stop()))),
    unreadiness: () => apps.flatMap((one) => one.unreadiness()),
  };
  const enqueueFrom = async (path: string, name: string, slotMs = Date.now()) => {
    const now = await loadPolicies(path, { variables, checks: policyChecks });
    const policy = now.ok ? now.set.policies.find((one) => one.name === name) : undefined;
    if (policy === undefined) throw new Error(`no policy ${name}`);
    await producer.enqueue(tasksOf(policy, { slotMs, origin: "manual", covers: [] }));
  };
  const enqueue = (name: string, slotMs?: number) => enqueueFrom(file, name, slotMs);
  return {
    sandbox,
    log,
    app,
    target,
    enqueue,
    actions: async (service) => {
      const { active, delayed } = await producer.backlog(service, "actions");
      return { active, delayed };
    },
    enqueueOf: async (policies, name) => {
      const other = `${file}.other`;
      await writeFile(other, policyFile(sandbox.baseUrl, { ...options, policies }));
      await enqueueFrom(other, name);
    },
    run: async (name) => {
      const before = log.outcomesOf(name).length;
      await enqueue(name);
      await log.until(() => log.outcomesOf(name).length > before);
      return log.outcomesOf(name)[before] as Outcome;
    },
    configure: async (change) => {
      const answers = () =>
        log.events.filter(({ event }) => event === "config.reloaded" || event === "config.rejected");
      const before = answers().length;
      const text = "text" in change ? change.text : policyFile(sandbox.baseUrl, { ...options, ...change });
      await writeFile(`${file}.new`, text);
      await rename(`${file}.new`, file);
      await log.until(() => answers().length > before);
      return answers()[before] as LoggedEvent;
    },
    starts: (syncJobId) =>
      sandbox.ledger().filter(({ operation, key }) => operation === "RunSyncJob" && Number(key) === syncJobId).length,
    stop: async () => {
      await producer.close();
      await app.stop();
      await sandbox.stop();
      await rm(folder, { recursive: true });
    },
  };
}

function policyFile(
  baseUrl: string,
  {
    policies,
    mapping: mapped = true,
    active,
    requestTimeout = "5s",
    moreServices = {},
    moreKeys,
    moreToken = "{ env: TEST_TOKEN }",
  }: WorldOptions,
): string {
  const sign = active === undefined ? "" : `\n      syncJob: { active: ${JSON.stringify(active)} }`;
  const more = Object.entries(moreServices).map(
    ([name, url]) =>
      `\n  ${name}: { baseUrl: "${url}", token: ${moreToken}${moreKeys === undefined ? "" : `, ${moreKeys}`} }`,
  );
  return `apiVersion: syncline/v1
services:
  main:
    baseUrl: ${baseUrl}
    token: { env: TEST_TOKEN }
    timeouts: { request: ${requestTimeout} }${mapped === false ? "" : `\n    mapping:${mapped === "timed" ? timed : mapping}${sign}`}${more.join("")}
defaults: { follow: { until: settled, deadline: 20s, quietFor: 1500ms, unreadableFor: 6s } }
policies:
${policies}`;
}
