// What commands tell must be so: of starts without an answer, of what is inferred, of what is cut,
// not known or not there.
import { hash } from "node:crypto";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { Redis } from "ioredis";
import { describe, expect, it, onTestFinished } from "vitest";
import { History } from "../../src/store/history.ts";
import { loadLua } from "../../src/store/script.ts";
import { commandFixture } from "../support/command-fixture.ts";
import { runHere } from "../support/commands-here.ts";
import { folderForTest } from "../support/folder.ts";
import { testOutcome } from "../support/outcomes.ts";
import { often, syncline } from "../support/processes.ts";
import { redisForTest } from "../support/redis.ts";

describe("a start whose answer got lost", () => {
  const activity =
    'id: item.activityId, syncJobId: item.syncJobId, startedAt: item.startedAt, finished: \'item.state in ["Finished", "Failed"]\', succeeded: item.state == "Finished"';
  const fixture = commandFixture(
    `  - { name: lost, service: main, run: { syncJobs: [1] }, schedule: { every: 5s }, follow: { until: settled, deadline: 60s } }`,
    `{ activity: { ${activity} } }`,
  );

  it("is confirmed in the words of explain, and never answered", async () => {
    const prefix = `${fixture.redis.prefix}-lost`;
    fixture.sandbox().setFaults([{ kind: "lost-answer", operation: "RunSyncJob", times: 1 }]);
    const one = await fixture.serve(prefix);
    const { taskId } = await one.until(({ event }) => event === "task.start-confirmed");
    const { slot } = await one.until((event) => event["event"] === "task.finished" && event["taskId"] === taskId);
    const explain = (...more: string[]) =>
      fixture.command(prefix, "explain", "lost", String(slot), "--config", fixture.file(), ...more);
    const [task] = JSON.parse((await explain("--json")).out).tasks;
    expect(task).toMatchObject({
      answered: null,
      confirmed: expect.stringMatching(/Z$/),
      outcome: { status: "succeeded" },
    });
    const { code, out } = await explain();
    expect(out).toMatch(/sent \+\S+, confirmed \+\S+, finished \+/);
    expect(out).not.toContain("answered");
    expect(code).toBe(0);
    one.kill("SIGTERM");
    await one.ended();
    // At its end it may have had no time to take its name back.
    await expect.poll(async () => (await explain()).code, often).toBe(1);
    const alone = await explain();
    expect(alone.out).toContain("no scheduler is alive");
    expect(alone.code).toBe(1);
  });
});

describe("what commands tell", () => {
  const fixture = commandFixture(`
  - { name: quiet, service: main, run: { syncJobs: [2] }, follow: { until: settled, quietFor: 1s, deadline: 60s } }
  - { name: hourly, service: main, run: { syncJobs: [3] }, schedule: { every: 1h } }
  - { name: wide, service: main, run: { syncJobs: [${Array.from({ length: 120 }, (_, index) => index + 1)}] } }`);

  it("of a run by hand of many sync jobs is each task, not only what its record names", async () => {
    const prefix = `${fixture.redis.prefix}-wide`;
    await fixture.command(prefix, "run", "wide", "--config", fixture.file());
    const { out } = await fixture.command(prefix, "explain", "wide", "--config", fixture.file(), "--json");
    expect(JSON.parse(out).tasks).toHaveLength(120);
  });

  it("of a run by hand is that its end is inferred, where it is", async () => {
    const prefix = `${fixture.redis.prefix}-inferred`;
    const run = await fixture.command(prefix, "run", "quiet", "--config", fixture.file(), "--wait");
    expect(run.out).toMatch(/sync job 2, by hand .* succeeded \(inferred\)/);
    expect((await fixture.command(prefix, "history")).out).toMatch(/sync job 2, by hand .* succeeded \(inferred\)/);
    expect((await fixture.command(prefix, "history", "--status", "failed")).err).toContain(
      "none of those that are kept",
    );
  });

  it("of a policy or sink that is not known here is not that all is quiet", async () => {
    const prefix = `${fixture.redis.prefix}-nobody`;
    for (const args of [
      ["history", "nosuch"],
      ["failed", "list", "nosuch"],
      ["failed", "replay", "--policy", "nosuch", "--reason", "slip", "--yes"],
    ]) {
      const { code, err } = await fixture.command(prefix, ...args);
      expect([args.join(" "), code, err]).toEqual([
        args.join(" "),
        2,
        expect.stringContaining("nothing is known of a policy nosuch"),
      ]);
    }
    const none = await fixture.command(prefix, "history");
    expect(none.err).toContain(`no process has run under the prefix ${prefix}: check --prefix and --redis-url`);
    const sink = await fixture.command(prefix, "failed", "list", "--sink", "nosuch");
    expect([sink.code, sink.err]).toEqual([2, expect.stringContaining("no worker has had a sink nosuch here")]);
  });

  it("of a server that is no Redis is not that it found a bug", async () => {
    const server = createServer((socket) => socket.write("HTTP/1.1 400 Bad Request\r\n\r\n")).listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await once(server, "listening");
    const address = server.address();
    const port = typeof address === "object" ? address?.port : undefined;
    const { code, err } = await syncline(["history", "--redis-url", `redis://127.0.0.1:${port}`]);
    expect(code).toBe(3);
    expect(err).toContain("answers in another protocol than that of Redis");
    expect(err).not.toContain("report");
  });
});

describe("a change whose answer Redis lost, so that it was sent again", () => {
  const fixture = commandFixture(
    "  - { name: nightly, service: main, repository: HR, run: { syncJobs: [1] }, schedule: { every: 1h } }",
  );

  /** The connection breaks behind the first such command; `meanwhile` happens before the next. */
  const loseAnswerOf = (name: "evalsha" | "zrem", script = "", meanwhile = async () => {}) => {
    const commands = Redis.prototype as unknown as Record<typeof name, (...args: unknown[]) => Promise<unknown>>;
    const send = commands[name];
    const lua = script === "" ? "" : loadLua(script);
    commands[name] = async function (this: Redis, ...args: unknown[]) {
      const [sha, count, ...rest] = args;
      if (name === "zrem") await send.apply(this, args);
      else if (sha === hash("sha1", lua)) {
        await this.eval(lua, Number(count), ...rest.map(String));
        await meanwhile();
      }
      return send.apply(this, args);
    };
    onTestFinished(() => {
      commands[name] = send;
    });
  };
  const commandsAt = (name: string) => {
    const prefix = `${fixture.redis.prefix}-${name}`;
    const here = (...args: string[]) => fixture.command(prefix, ...args, "--config", fixture.file());
    return { prefix, here, changes: async () => JSON.parse((await here("changes", "--json")).out) };
  };
  const fails = async (prefix: string) => {
    const at = new Date().toISOString();
    const facts = { target: "1", status: "failed", reason: "run-failed", slot: at, finishedAt: at } as const;
    const outcome = testOutcome({ ...facts, taskId: `nightly__run__1__m${Date.now()}` });
    await fixture.inStore(prefix, (store) => new History(store).record(outcome));
    return outcome.taskId;
  };

  it("is a resume: it names what it did not catch up, and its record stays", async () => {
    const { here, changes } = commandsAt("resume");
    await here("pause", "nightly", "--reason", "release 14");
    loseAnswerOf("evalsha", "change-pause");
    const { code, out, err } = await here("resume", "nightly", "--catch-up");
    expect([code, out]).toEqual([1, "policy nightly: not paused now"]);
    expect(err).toMatch(/^not caught up: .*: nightly$/m);
    expect(await changes()).toMatchObject([{ what: "resume", isBegun: true }, { what: "pause" }]);
    const again = await here("resume", "nightly", "--catch-up");
    expect([again.code, again.out]).toEqual([0, "policy nightly: not paused now"]);
    expect(again.err).toContain("nothing is caught up");
    expect(await changes()).toHaveLength(2);
  });

  it("is a cancel: a worker has ended the task meanwhile, and it is cancelled", async () => {
    const { prefix, here, changes } = commandsAt("cancel");
    await here("run", "nightly");
    loseAnswerOf("evalsha", "start/cancel", async () => {
      const worker = await fixture.serve(prefix, "--roles", "worker");
      await worker.until(({ event }) => event === "task.finished");
    });
    const { code, out } = await here("cancel", "nightly", "--yes", "--reason", "freeze");
    expect([code, out]).toEqual([0, expect.stringMatching(/^cancelled by .+@.+: freeze; nothing was sent$/)]);
    expect(await changes()).toMatchObject([{ what: "cancel", before: { state: "claimed" } }, { what: "run" }]);
  });

  it("is the end of an acknowledgement: it is taken back, and recorded", async () => {
    const { prefix, here, changes } = commandsAt("acknowledge");
    await fails(prefix);
    await here("acknowledge", "nightly", "--reason", "ticket 7");
    loseAnswerOf("evalsha", "acknowledge");
    const { out } = await here("acknowledge", "nightly", "--end");
    expect(out).toBe("policy nightly is not acknowledged any more");
    expect(await changes()).toMatchObject([{ what: "acknowledge --end" }, { what: "acknowledge" }]);
  });

  it("is a discard: the task is off the list, and that is recorded", async () => {
    const { prefix, changes } = commandsAt("discard");
    const id = await fails(prefix);
    loseAnswerOf("zrem");
    const { err } = await fixture.command(prefix, "failed", "discard", id, "--reason", "retired");
    expect(err).toBe(`${id}: it is not on the list any more`);
    const after = { unlisted: [id] };
    expect(await changes()).toMatchObject([{ what: "discard", subject: `task ${id}`, after }]);
  });
});

describe("wrong use", () => {
  const redis = redisForTest();

  it("is refused with what is wrong, and never guessed or dropped", async () => {
    const folder = folderForTest();
    const file = join(folder, "many.yaml");
    const policies = Array.from(
      { length: 200 },
      (_, at) => `  - { name: p${at}, service: main, poll: { list: masks } }`,
    );
    const service = `services: { main: { baseUrl: "https://sync.example.com", token: { file: /run/token } } }`;
    await writeFile(file, `apiVersion: syncline/v1\n${service}\npolicies:\n${policies.join("\n")}\n`);
    const config = ["--config", file];
    const cases: readonly (readonly [readonly string[], string])[] = [
      [["plan", ...config, "--to", "+1h", "--to", "+2h"], "is given twice"],
      [["plan", ...config, "--duration", "p1=1m", "--duration", "p1=2m"], "is given twice for p1"],
      [["plan", ...config, "--pages", "3"], "--pages does nothing without --requests"],
      [["plan", "--state", file, "--count", "3"], "--count does nothing with --state"],
      [["run", "p1", ...config, "--timeout", "5s"], "--timeout does nothing without --wait"],
      [["run", "nosuch", ...config, "--redis-url", redis.url], "p19 and 180 more (`syncline plan` shows all)"],
      [["explain", "p1x", ...config, "--redis-url", redis.url], "did you mean p1?"],
      [["status", ...config, "--prefix", "{oops"], "write {oops}"],
      [["status", ...config, "--prefix", "a{}b"], "write {ab}"],
      [["plan", ...config, "--timezone", "Europe/Wien"], "write its English name in the tz database"],
      [
        ["audit", ...config, "--since", "2026-12-02T00:00:00Z", "--until", "2026-12-01T00:00:00Z"],
        "--until is before --since: 2026-12-02 00:00:00Z to 2026-12-01 00:00:00Z",
      ],
      [["plan", ...config, "--json", "--wide"], "--wide does nothing with --json"],
      [["history", "--json", "--ids", "--redis-url", redis.url], "--ids does nothing with --json"],
      [["status", "", ...config, "--redis-url", redis.url], 'there is no policy ""; '],
      [["digest", "nosuch", ...config, "--redis-url", redis.url], "there is none in the policy file"],
      [["explain", "by-hand.run", ...config, "--redis-url", redis.url], "`syncline history by-hand.run --ids` shows"],
    ];
    const answers = await Promise.all(cases.map(([args]) => runHere(args, { REDIS_URL: redis.url })));
    for (const [index, [args, said]] of cases.entries())
      expect([args[0], answers[index]?.code, answers[index]?.err]).toEqual([args[0], 2, expect.stringContaining(said)]);
  });
});
