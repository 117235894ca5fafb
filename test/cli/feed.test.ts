import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { readerGone } from "../../src/cli/command-io.ts";
import { FeedStore } from "../../src/store/feed-store.ts";
import { commandFixture } from "../support/command-fixture.ts";
import { runHere } from "../support/commands-here.ts";
import { Syncline } from "../support/processes.ts";

const fixture = commandFixture("  - { name: a, service: main, repository: HR, run: { syncJobs: [3] } }");
const feed = { service: "main", repository: "HR", list: "activities" } as const;

function facts(id: string, label?: string) {
  return {
    id,
    fingerprint: "00ff",
    syncJobId: "3",
    startedAtMs: 1_700_000_000_000,
    finished: true,
    succeeded: id !== "a2",
    label,
  };
}

async function takeIn(prefix: string, items: readonly ReturnType<typeof facts>[]): Promise<void> {
  await fixture.inStore(prefix, async (store) => {
    const book = new FeedStore(store);
    await book.takeIn(feed, { generation: 0 }, { items, sinceSeq: 0 });
    await book.endWalk(feed, { startedAtMs: 1, count: items.length, whole: true });
  });
}

describe("syncline feed tail", () => {
  it("prints what was discovered last, in the order of discovery, with when", async () => {
    const prefix = `${fixture.redis.prefix}-tail`;
    await takeIn(
      prefix,
      ["a1", "a2", "a3"].map((id) => facts(id)),
    );
    const told = await fixture.command(
      prefix,
      "feed",
      "tail",
      "--service",
      "main",
      "activities",
      "--repository",
      "HR",
      "-n",
      "2",
      "--json",
    );
    const rows = told.out.split("\n").map((line) => JSON.parse(line));
    expect(rows).toMatchObject([
      {
        id: "a2",
        syncJobId: "3",
        startedAt: "2023-11-14T22:13:20.000Z",
        finished: true,
        succeeded: false,
        label: null,
      },
      { id: "a3", succeeded: true },
    ]);
    expect(Date.parse(rows[0].firstSeen)).toBeGreaterThan(1_700_000_000_000);
    const people = await fixture.command(
      prefix,
      "feed",
      "tail",
      "activities",
      "--service",
      "main",
      "--repository",
      "HR",
    );
    expect(people.out).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ {2}a1 {2}sync job 3 {2}succeeded$/m);
  });

  it("goes on with what is discovered until it is stopped", async () => {
    const prefix = `${fixture.redis.prefix}-follow`;
    await takeIn(prefix, [facts("b1")]);
    const args = [
      "feed",
      "tail",
      "activities",
      "--service",
      "main",
      "--repository",
      "HR",
      "--follow",
      "--json",
      "--prefix",
      prefix,
    ];
    const tail = new Syncline(args, { REDIS_URL: fixture.redis.url });
    await tail.until(({ id }) => id === "b1");
    await takeIn(prefix, [facts("b1"), facts("b2")]);
    await tail.until(({ id }) => id === "b2");
    tail.kill("SIGTERM");
    const { code, out } = await tail.ended();
    expect(code).toBe(0);
    expect(out.split("\n")).toHaveLength(2);
  });

  it("says why there is nothing, and which lists there are", async () => {
    const prefix = `${fixture.redis.prefix}-none`;
    expect(await fixture.command(prefix, "feed", "tail", "activities", "--service", "main")).toMatchObject({
      code: 0,
      out: "",
      err: expect.stringContaining("not read yet"),
    });
    const wrong = await fixture.command(prefix, "feed", "tail", "activity");
    expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining("there are: activities, conflictDetails") });
  });
});

describe("syncline feed export", () => {
  it("writes facts as CSV in which no cell is a formula", async () => {
    const prefix = `${fixture.redis.prefix}-csv`;
    await takeIn(prefix, [facts("=1+1", 'He said "no", twice'), facts("c2", "-2")]);
    const { out } = await fixture.command(
      prefix,
      "feed",
      "export",
      "--service",
      "main",
      "activities",
      "--repository",
      "HR",
      "--format",
      "csv",
    );
    const [head, ...lines] = out.split("\n");
    expect(head).toBe("firstSeen,id,syncJobId,startedAt,finished,succeeded,label");
    expect(lines.map((line) => line.slice(line.indexOf(",")))).toEqual([
      `,'=1+1,3,2023-11-14T22:13:20.000Z,true,true,"He said ""no"", twice"`,
      ",c2,3,2023-11-14T22:13:20.000Z,true,true,'-2",
    ]);
  });

  it("reads the service's own list with --live, page by page, as far as asked", async () => {
    const prefix = `${fixture.redis.prefix}-live`;
    const live = (...more: string[]) =>
      fixture.command(
        prefix,
        "feed",
        "export",
        "activities",
        "--service",
        "main",
        "--repository",
        "HR",
        "--live",
        ...more,
      );
    const all = await live("--config", fixture.file());
    expect(all.out.split("\n").map((line) => JSON.parse(line).activityId)).toEqual(
      Array.from({ length: 20 }, (_, index) => index + 1),
    );
    const three = await live("--config", fixture.file(), "--format", "csv", "-n", "3");
    expect(three.out.split("\n")).toHaveLength(4);
    expect(three.out).toMatch(/^activityId,syncJobId,state,/);
    expect(await live()).toMatchObject({ code: 2, err: expect.stringContaining("--live needs --config") });
  });

  it("says that it is not whole when it is stopped", async () => {
    const prefix = `${fixture.redis.prefix}-stopped`;
    await takeIn(prefix, [facts("s1"), facts("s2")]);
    const args = ["feed", "export", "activities", "--service", "main", "--repository", "HR", "--prefix", prefix];
    const variables = { REDIS_URL: fixture.redis.url, TEST_TOKEN: fixture.sandbox().token };
    for (const more of [[], ["--live", "--config", fixture.file()]]) {
      const { code, err } = await runHere([...args, ...more], variables, { signal: AbortSignal.abort() });
      expect([code, err]).toEqual([1, expect.stringContaining("the export is not whole")]);
    }
  });

  it("ends well when its reader has gone", async () => {
    const prefix = `${fixture.redis.prefix}-pipe`;
    await takeIn(
      prefix,
      Array.from({ length: 5_000 }, (_, index) => facts(`d${index}`, "x".repeat(100))),
    );
    const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
    const args = ["feed", "export", "activities", "--service", "main", "--repository", "HR", "--prefix", prefix];
    const child = spawn(process.execPath, [main, ...args], { env: { ...process.env, REDIS_URL: fixture.redis.url } });
    let err = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      err += text;
    });
    child.stdout.once("data", () => child.stdout.destroy());
    const [code] = await once(child, "close");
    expect({ code, err: err.replace(/^.*redis.*$/gim, "") }).toEqual({ code: 0, err: "" });
    const all = ["api", "GetActivities", "--all", "--config", fixture.file()];
    const signal = AbortSignal.abort(readerGone);
    expect(await runHere(all, { TEST_TOKEN: fixture.sandbox().token }, { signal })).toMatchObject({ code: 0, err: "" });
  });
});
