// A release of the trial of the alerts: 200 policies over two sandboxes, a receiver of notices, a
// Redis and its pods, which are real processes. Used by test/chart/alert-trial.ts.
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type PrivateRedis, startPrivateRedis } from "../../../scripts/redis.mjs";
import { type Sandbox, startSandbox } from "../../../src/sandbox/sandbox.ts";
import { Receiver } from "../receiver.ts";
import { freePort } from "../redis-servers.ts";

const mainFile = resolve(import.meta.dirname, "../../../src/main.ts");
/**
 * With this seed the first run of sync job 7 fails, that of 3 leaves a conflict, and the second
 * ones end well.
 */
const seed = 155;
const dayMs = 86_400_000;

/** A role's pod; `all` has both roles. */
export type Pod = "scheduler" | "worker" | "all";

/** What a command of a runbook printed, or why it could not. */
export interface Printed {
  readonly code: number;
  readonly text: string;
}

/** One release. */
export class Release {
  readonly name: string;
  readonly ports = new Map<Pod, number>();
  readonly #folder: string;
  readonly #running = new Map<Pod, ChildProcess>();
  readonly parts: {
    readonly main: Sandbox;
    readonly other: Sandbox;
    readonly hook: Receiver;
    readonly redis: PrivateRedis;
  };

  private constructor(name: string, folder: string, parts: Release["parts"]) {
    this.name = name;
    this.#folder = folder;
    this.parts = parts;
  }

  /** Starts the release with these pods. */
  static async start(name: string, folder: string, pods: readonly Pod[]): Promise<Release> {
    const sandbox = () => startSandbox({ activities: 5, repositories: ["HR"], seed });
    const parts = {
      main: await sandbox(),
      other: await sandbox(),
      hook: await new Receiver().start(),
      redis: await startPrivateRedis(),
    };
    mkdirSync(join(folder, "policies"), { recursive: true });
    const release = new Release(name, folder, parts);
    release.writePolicies();
    for (const pod of pods) {
      release.ports.set(pod, await freePort());
      release.serve(pod);
    }
    return release;
  }

  /** The label `job` of its series. */
  get job(): string {
    return `${this.name}-syncline`;
  }

  /**
   * Writes the policy files. `nights`: when the nightly policies are due; otherwise half a day from
   * now.
   */
  writePolicies(nights: Readonly<Record<string, Date>> = {}): void {
    const { main, other, hook } = this.parts;
    const cron = (policy: string) => {
      const at = nights[policy] ?? new Date(Date.now() + dayMs / 2);
      return `"${at.getUTCSeconds()} ${at.getUTCMinutes()} ${at.getUTCHours()} * * *"`;
    };
    const poll = (name: string, service: string, more: string) =>
      `{ name: ${name}, service: ${service}, repository: HR, poll: { list: approvals }, ${more} }`;
    const night = (name: string, syncJob: number) =>
      `{ name: ${name}, service: main, repository: HR, run: { syncJobs: [${syncJob}] }, schedule: { cron: ${cron(name)} } }`;
    const often = Array.from({ length: 195 }, (_, index) => {
      const catchUp = index % 10 === 0 ? "none" : "latest";
      return poll(
        `p${index}`,
        index % 4 === 0 ? "other" : "main",
        `schedule: { every: 10s, spread: 5s }, catchUp: ${catchUp}`,
      );
    });
    const policies = [
      ...often,
      poll("told", "other", "schedule: { every: 10s }, notify: [{ sink: ops, on: [every] }]"),
      night("nightly", 7),
      night("conflicted", 3),
      "{ name: slow, service: other, poll: { list: triggers }, repository: HR, schedule: { every: 20s } }",
      poll("follower", "other", "after: { policy: slow, within: 10s }"),
    ];
    const mapping = `{ activity: { id: item.activityId, syncJobId: item.syncJobId, startedAt: item.startedAt, finished: 'item.state in ["Finished", "Failed"]', succeeded: item.state == "Finished" }, conflict: { id: item.conflictId, syncJobId: item.syncJobId } }`;
    this.write(`apiVersion: syncline/v1
services:
  main: { baseUrl: "${main.baseUrl}", token: { env: MAIN }, mapping: ${mapping} }
  other: { baseUrl: "${other.baseUrl}", token: { env: OTHER } }
sinks: { ops: { webhook: { url: "${hook.url}", format: slack } } }
policies:
${policies.map((policy) => `  - ${policy}\n`).join("")}`);
  }

  /** Writes this text as the policy file. */
  write(text: string): void {
    writeFileSync(join(this.#folder, "policies/all.yaml"), text);
  }

  /** Starts a pod again. */
  serve(pod: Pod): void {
    const roles = pod === "all" ? [] : ["--roles", pod];
    const health = ["--health-port", String(this.ports.get(pod)), "--health-host", "127.0.0.1"];
    this.#running.set(pod, this.#spawn(["--drain", "2s", ...health, ...roles], `sync/${this.name}`));
  }

  /** Starts a process of another release under the same prefix; it refuses and ends by itself. */
  serveForeign(): void {
    this.#spawn([], "sync/newcomer");
  }

  #spawn(args: readonly string[], owner: string): ChildProcess {
    const log = openSync(join(this.#folder, "log"), "a");
    return spawn(process.execPath, [mainFile, "serve", "--config", "policies/", "--owner", owner, ...args], {
      cwd: this.#folder,
      env: { ...this.#environment(), SYNCLINE_LOG_LEVEL: "warn" },
      stdio: ["ignore", log, log],
    });
  }

  #environment(): NodeJS.ProcessEnv {
    const { main, other, redis } = this.parts;
    return { ...process.env, REDIS_URL: redis.url, MAIN: main.token, OTHER: other.token };
  }

  /** Ends a pod as a lost node does. */
  async end(pod: Pod): Promise<void> {
    const child = this.#running.get(pod);
    this.#running.delete(pod);
    if (child === undefined || child.exitCode !== null) return;
    const ended = new Promise((done) => child.once("exit", done));
    if (child.kill("SIGKILL")) await ended;
  }

  /** Runs a command where the policy files are. */
  command(args: readonly string[]): Promise<Printed> {
    const options = { cwd: this.#folder, env: this.#environment(), timeout: 60_000 };
    return new Promise((done) =>
      execFile(process.execPath, [mainFile, ...args], options, (error, out, err) =>
        done({ code: error === null ? 0 : Number(error.code ?? -1), text: out + err }),
      ),
    );
  }

  /** Lines of the log with this event since an instant. */
  logged(event: string, sinceMs: number): string {
    const lines = readFileSync(join(this.#folder, "log"), "utf8").split("\n");
    const isMeant = (line: string) => {
      const [, time = ""] = /"time":"([^"]+)"/.exec(line) ?? [];
      return line.includes(`"event":"${event}"`) && Date.parse(time) >= sinceMs;
    };
    return lines.filter(isMeant).join("\n");
  }

  /** What `/readyz` of each pod says. */
  async readiness(): Promise<string> {
    const said = [...this.ports].map(async ([pod, port]) => {
      const answer = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
      return `${pod}: ${answer === undefined ? "no answer" : `${answer.status} ${await answer.text()}`}`;
    });
    return (await Promise.all(said)).join("\n");
  }

  /** Waits until every pod is ready. */
  async ready(): Promise<void> {
    while (/no answer|: 503/.test(await this.readiness())) await sleep(500);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#running.keys()].map((pod) => this.end(pod)));
    const { main, other, hook, redis } = this.parts;
    await Promise.all([main.stop(), other.stop(), hook.stop(), redis.stop()]);
  }
}
