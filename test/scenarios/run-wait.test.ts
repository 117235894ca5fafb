// `run --wait` tells every change, and within seconds why nothing goes on. Also the run of a sync
// job without a policy.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { silentLog } from "../../src/core/event-log.ts";
import { NoticeQueues } from "../../src/queue/notice-queues.ts";
import { startSandbox } from "../../src/sandbox/sandbox.ts";
import { History } from "../../src/store/history.ts";
import { openStore } from "../../src/store/redis.ts";
import { runHere } from "../support/commands-here.ts";
import { folderForTest } from "../support/folder.ts";
import { keepSet } from "../support/kept-set.ts";
import { testOutcome } from "../support/outcomes.ts";
import { testPolicy } from "../support/policies.ts";
import { often } from "../support/processes.ts";
import { noticeOf, Receiver } from "../support/receiver.ts";
import { redisForTest } from "../support/redis.ts";
import { startUnknown } from "../support/unknown-start.ts";
import { worldForTest } from "../support/world.ts";

const policies = `
  - { name: nightly, service: main, repository: HR, run: { syncJobs: [3] }, schedule: { cron: "0 3 1 1 *", timezone: Asia/Tokyo } }
  - { name: fast, service: main, repository: HR, run: { syncJobs: [4] }, follow: { until: accepted } }
  - { name: many, service: main, repository: HR, run: { syncJobs: [${Array.from({ length: 25 }, (_, index) => index + 100)}] }, follow: { until: accepted } }`;

/** Runs a command until a line on standard error says this, then stops it as Ctrl-C does. */
async function runUntil(said: RegExp, args: readonly string[], variables: Readonly<Record<string, string>> = {}) {
  const stop = new AbortController();
  // From its first line on: what it costs to load the command is another matter.
  let beganMs: number | undefined;
  let afterMs = Number.POSITIVE_INFINITY;
  const ended = await runHere(args, variables, {
    signal: stop.signal,
    onErr: (line) => {
      beganMs ??= performance.now();
      if (!said.test(line)) return;
      afterMs = performance.now() - beganMs;
      stop.abort();
    },
  });
  return { ...ended, afterMs };
}

describe("run --wait", () => {
  it("tells each change, and ends well without a policy file", async () => {
    const { target } = await worldForTest({ policies, sandbox: { jobs: 200, runMs: [10_000, 10_000] } });
    const at = ["--prefix", target.prefix, "--redis-url", target.url];
    const { code, out, err } = await runHere(["run", "nightly", "--wait", ...at], {});
    expect({ code, err }).toMatchObject({ code: 0 });
    expect(out).toContain("succeeded");
    expect(err).toMatch(/^1 task of nightly queued: nightly__run__3__m\d+\n/);
    const many = await runHere(["run", "many", "--wait", ...at], {});
    expect(many.err.split("\n").at(-1)).toBe("25 of 25 have ended");
    expect(out).toMatch(/sync job 3, by hand \d\d:\d\d(:\d\d)? GMT\+9/);
    expect(err).toMatch(
      /\nstart permitted \d\d:\d\d(:\d\d)? GMT\+9\nanswered: [\s\S]*its first activity is seen[\s\S]*\nsucceeded \(completed\)$/,
    );
  });

  it("runs a sync job without a policy, for a reason, and journals it like any other", async () => {
    const world = await worldForTest({ policies });
    const { target } = world;
    const at = ["--prefix", target.prefix, "--redis-url", target.url];
    const args = ["run", "--sync-job", "7", "--repository", "HR", ...at];
    expect(await runHere(args, {})).toMatchObject({ code: 2, err: expect.stringContaining("--reason is required") });
    expect(await runHere(["run", "nightly", "--service", "main", ...at], {})).toMatchObject({ code: 2 });
    const { code, out } = await runHere([...args, "--reason", "ticket 7", "--wait", "--json"], {});
    expect(code).toBe(0);
    const [outcome] = JSON.parse(out);
    expect(outcome).toMatchObject({ policy: "by-hand.run", target: "7", status: "succeeded", origin: "manual" });
    expect(world.starts(7)).toBe(1);
    const [change] = JSON.parse((await runHere(["changes", "--json", ...at], {})).out);
    expect(change).toMatchObject({ what: "run", subject: "sync job 7 of main, HR", reason: "ticket 7" });
    expect((await runHere(["explain", outcome.taskId, ...at], {})).out).toContain("succeeded");
    expect((await runHere(["history", "by-hand.run", ...at], {})).out).toContain("succeeded");
  });

  it("says what goes on when it is stopped, or when there is one more", async () => {
    const { target } = await worldForTest({ policies, sandbox: { runMs: [60_000, 60_000] } });
    const at = ["--prefix", target.prefix, "--redis-url", target.url];
    const { code, err } = await runUntil(/^answered/, ["run", "nightly", "--wait", ...at]);
    expect(code).toBe(1);
    expect(err).toMatch(
      /the wait ends here; still without an outcome, and not stopped: (nightly__run__3__m\d+)\nlook again: syncline explain \1\nstop it: syncline cancel \1$/,
    );
    await expect.poll(async () => (await runHere(["running", ...at], {})).out, often).toContain("following");
    expect((await runHere(["explain", "nightly", ...at], {})).out).toMatch(
      /no outcome yet: answered at [^;]+GMT\+9; followed until [^;]+GMT\+9; waits for the end of its run/,
    );
    const second = await runHere(["run", "nightly", ...at], {});
    expect(second.err).toMatch(
      /^in flight before these: nightly__run__3__m\d+; while they go on, these are skipped \(overlap: skip\); `/,
    );
  });

  it("goes on to the true exit code when its progress is read no more", async () => {
    const { url, prefix } = redisForTest(onTestFinished);
    const store = await openStore({ url, prefix });
    onTestFinished(() => store.close());
    await keepSet(store, [testPolicy()]);
    const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
    const args = ["run", "nightly", "--wait", "--json", "--prefix", prefix, "--redis-url", url];
    const child = spawn(process.execPath, [main, ...args]);
    const closed = once(child, "close");
    let out = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      out += text;
    });
    let said = "";
    // To break off closes the stream, as `| grep -m1` does.
    for await (const text of child.stderr.setEncoding("utf8")) {
      said += text;
      if (/queued: \S+\n/.test(said)) break;
    }
    const [, taskId = ""] = /queued: (\S+)\n/.exec(said) ?? [];
    const failed = { status: "failed", reason: "run-failed", origin: "manual" } as const;
    await new History(store).record(testOutcome({ taskId, ...failed }));
    const [code] = await closed;
    expect([code, JSON.parse(out)]).toEqual([1, [expect.objectContaining({ taskId, status: "failed" })]]);
  });

  it("calls a start confirmed, never answered, where only an activity shows it", async () => {
    const { target } = await worldForTest({
      ...{ policies, mapping: "timed", sandbox: { runMs: [60_000, 60_000] } },
      faults: ["lost-answer,op=RunSyncJob,first=1"],
    });
    const at = ["--prefix", target.prefix, "--redis-url", target.url];
    const { err } = await runUntil(/^(answered|confirmed)/, ["run", "nightly", "--wait", ...at]);
    expect(err).toMatch(/\nconfirmed: an activity shows that the run has started; waits for the end of its run/);
    const { out } = await runHere(["explain", "nightly", ...at], {});
    expect(out).toMatch(
      /no outcome yet: confirmed at [^;]+GMT\+9; followed until [^;]+GMT\+9; waits for the end of its run/,
    );
    expect(err + out).not.toContain("answered");
  });

  it("works itself when the last worker ends while its run goes on", async () => {
    const { app, sandbox, target } = await worldForTest({ policies, sandbox: { runMs: [8_000, 8_000] } });
    const file = join(folderForTest(), "policies.yaml");
    const activity =
      "{ id: item.activityId, syncJobId: item.syncJobId, finished: item.state != 'Running', succeeded: item.state == 'Finished' }";
    const service = `main: { baseUrl: "${sandbox.baseUrl}", token: { env: TEST_TOKEN }, mapping: { activity: ${activity}, conflict: { id: item.conflictId, syncJobId: item.syncJobId } } }`;
    await writeFile(file, `apiVersion: syncline/v1\nservices: { ${service} }\npolicies:${policies}\n`);
    const at = ["--prefix", target.prefix, "--redis-url", target.url];
    let ending: Promise<void> | undefined;
    const { code, err } = await runHere(
      ["run", "nightly", "--wait", "--config", file, ...at],
      { TEST_TOKEN: sandbox.token },
      {
        onErr: (line) => {
          if (/^answered/.test(line)) ending ??= app.stop();
        },
      },
    );
    await ending;
    expect(err).toMatch(
      /\nanswered[\s\S]*\nno worker is alive for this service: this process works until the outcome is there; [^\n]+\n/,
    );
    expect({ code, err }).toMatchObject({ code: 0 });
  });

  it("works itself, but ends no task of a policy that its file lacks", async () => {
    const { app, sandbox, target } = await worldForTest({ policies });
    await app.stop();
    const { task, producer } = await startUnknown(target, "main", 3_600_000);
    onTestFinished(() => producer.close());
    const file = join(folderForTest(), "policies.yaml");
    const service = `main: { baseUrl: "${sandbox.baseUrl}", token: { env: TEST_TOKEN } }`;
    const own = "{ name: own, service: main, repository: HR, run: { syncJobs: [4] }, follow: { until: accepted } }";
    await writeFile(file, `apiVersion: syncline/v1\nservices: { ${service} }\npolicies: [${own}]\n`);
    const at = ["--prefix", target.prefix, "--redis-url", target.url];
    const args = ["run", "own", "--wait", "--config", file, ...at];
    const { code, err } = await runHere(args, { TEST_TOKEN: sandbox.token });
    expect({ code, err }).toMatchObject({ code: 0, err: expect.stringContaining("this process works") });
    const store = await openStore(target);
    onTestFinished(() => store.close());
    expect(await new History(store).outcome(task)).toBeUndefined();
    expect(await producer.pending("main")).toBe(1);
  });

  it("works itself, but leaves notices to serve", async () => {
    const { app, sandbox, target } = await worldForTest({ policies });
    await app.stop();
    const receiver = await new Receiver().start();
    onTestFinished(() => receiver.stop());
    const queues = new NoticeQueues(target, silentLog);
    onTestFinished(() => queues.close());
    await queues.add("ops", [noticeOf("n:1")], 10);
    const file = join(folderForTest(), "policies.yaml");
    const service = `main: { baseUrl: "${sandbox.baseUrl}", token: { env: TEST_TOKEN } }`;
    const sink = `ops: { webhook: { url: "${receiver.url}", format: slack } }`;
    const own =
      "{ name: own, service: main, repository: HR, run: { syncJobs: [4] }, follow: { until: accepted }, notify: [{ sink: ops, on: [every] }] }";
    await writeFile(
      file,
      `apiVersion: syncline/v1\nservices: { ${service} }\nsinks: { ${sink} }\npolicies: [${own}]\n`,
    );
    const at = ["--prefix", target.prefix, "--redis-url", target.url];
    const { code, err } = await runHere(["run", "own", "--wait", "--config", file, ...at], {
      TEST_TOKEN: sandbox.token,
    });
    expect({ code, err }).toMatchObject({ code: 0, err: expect.stringContaining("notices and heartbeats wait for") });
    expect(receiver.received).toEqual([]);
    expect(await queues.backlog("ops")).toMatchObject({ waiting: 1 });
    const store = await openStore(target);
    onTestFinished(() => store.close());
    expect(await store.redis.xlen(store.key("outcome-events"))).toBe(1);
  });

  it("says within seconds that the token is wrong, the port closed, or no worker alive", async () => {
    const sandbox = await startSandbox({});
    onTestFinished(() => sandbox.stop());
    const file = join(folderForTest(), "policies.yaml");
    const setUp = async (baseUrl: string) => {
      const service = `main: { baseUrl: "${baseUrl}", token: { env: TEST_TOKEN } }`;
      await writeFile(file, `apiVersion: syncline/v1\nservices: { ${service} }\npolicies:${policies}\n`);
    };
    const run = (policy: string, said: RegExp, config = ["--config", file]) => {
      const { url, prefix } = redisForTest(onTestFinished);
      const at = ["--prefix", prefix, "--redis-url", url];
      return runUntil(said, ["run", policy, "--wait", ...config, ...at], { TEST_TOKEN: "wrong" });
    };
    await setUp(sandbox.baseUrl);
    const answers = [
      await run("fast", /not-started \(no-access\): .*401/),
      await run("nightly", /; but activities cannot be read: unauthorized: .*401/),
    ];
    await setUp("http://127.0.0.1:9");
    answers.push(await run("fast", /1 failed in a row, the last one: unreachable/));
    answers.push(
      await run(
        "nightly",
        /held back: service main at 127\.0\.0\.1:9 counts as down: .*unreachable.*`syncline doctor`/,
      ),
    );
    // What it logs as an error while it works is told here, too.
    expect(answers.at(-1)?.err).toMatch(/\nbreaker\.opened: \{.*"service":"main"/);
    const { app, target } = await worldForTest({ policies });
    await app.stop();
    const at = ["--prefix", target.prefix, "--redis-url", target.url];
    answers.push(await runUntil(/no worker is alive for this service/, ["run", "nightly", "--wait", ...at]));
    for (const { code, err, afterMs } of answers)
      expect({ code, err, isSoon: afterMs < 60_000 }).toMatchObject({ code: 1, isSoon: true });
  });
});
