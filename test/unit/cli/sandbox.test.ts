// The command `syncline sandbox`, run in this process.
import { describe, expect, it } from "vitest";
import type { CommandIo } from "../../../src/cli/command-io.ts";
import { sandboxCommand } from "../../../src/cli/sandbox.ts";
import { readSettings } from "../../../src/config/settings.ts";
import { UsageError } from "../../../src/core/errors.ts";

function start(args: readonly string[]) {
  const stop = new AbortController();
  const lines: string[] = [];
  const ready = Promise.withResolvers<Record<string, string>>();
  const io: CommandIo = {
    out: (line) => {
      lines.push(line);
      ready.resolve(JSON.parse(line));
    },
    err: (line) => lines.push(`stderr: ${line}`),
    colours: false,
    settings: readSettings({}),
    readInput: () => Promise.resolve(""),
    signal: stop.signal,
    exitCode: 0,
  };
  const done = sandboxCommand(io).parseAsync([...args], { from: "user" });
  return { io, lines, stop, done, ready: ready.promise };
}

describe("syncline sandbox", () => {
  it("prints one ready line, serves, and ends with 0 when told to stop", async () => {
    const { io, lines, stop, done, ready } = start([
      "--token",
      "t0",
      "--jobs",
      "7",
      "--seed",
      "3",
      "--base-path",
      "/x",
    ]);
    const line = await ready;
    expect(line).toEqual({
      event: "sandbox.ready",
      baseUrl: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/x$/),
      token: "t0",
      jobs: 7,
      seed: 3,
      pid: process.pid,
    });
    const headers = { Authorization: "Bearer t0" };
    const answer = await fetch(`${line["baseUrl"]}/odata/trigger/$count`, { headers });
    expect(await answer.text()).toBe("7");
    stop.abort();
    await done;
    expect([lines.length, io.exitCode]).toEqual([1, 0]);
    await expect(fetch(`${line["baseUrl"]}/odata/trigger`)).rejects.toThrow();
  });

  it("hands every option on", async () => {
    const { stop, done, ready } = start([
      ...["--port", "0", "--host", "127.0.0.1", "--limited-token", "lim", "--activities", "8", "--run-time", "1h..2h"],
      ...["--repositories", "A,B", "--page-size", "5", "--shape", "opaque", "--fields", "state=status"],
      ...["--next-links", "relative", "--next-tokens", "key", "--order", "descending", "--empty-last-page"],
      ...["--approvals-block", "--missing-status", "404"],
      ...["--fault", "429,op=GetTriggers", "--fault", "reset,op=GetApprovals"],
    ]);
    const { baseUrl, token } = await ready;
    const get = (path: string) => fetch(baseUrl + path, { headers: { Authorization: `Bearer ${token}` } });
    const page = JSON.parse(await (await get("/odata/synchronizationactivities?repository=B")).text());
    expect(page.value).toEqual([]);
    const all = JSON.parse(await (await get("/odata/synchronizationactivities")).text());
    expect(all["@odata.nextLink"]).toBe("synchronizationactivities?$skiptoken=Id-4");
    expect(all.value[0]).toMatchObject({ f1: 8, status: "Finished" });
    const rest = JSON.parse(await (await get("/odata/synchronizationactivities?$skiptoken=Id-4")).text());
    expect([rest.value.length, rest["@odata.nextLink"]]).toEqual([3, undefined]);
    expect((await get("/odata/syncjobs(99)")).status).toBe(404);
    expect((await get("/odata/trigger")).status).toBe(429);
    await expect(get("/odata/approvals")).rejects.toThrow();
    stop.abort();
    await done;
  });

  it("ends at once when it is told to stop before it is ready", async () => {
    const { stop, done } = start([]);
    stop.abort();
    await done;
  });

  it.each([
    [["--port", "x"], '--port: "x" is not a whole number'],
    [["--port", "70000"], "port is 70000"],
    [["--jobs", "-1"], '--jobs: "-1" is not a whole number'],
    [["--run-time", "4"], '--run-time: "4" is not a range of durations'],
    [["--run-time", "4s..1s"], "a run takes 4000 to 1000 ms"],
    [["--run-time", "1s..2s..3s"], "is not a range of durations"],
    [["--shape", "plane"], 'did you mean "plain"?'],
    [["--next-links", "abs"], 'did you mean "absolute"?'],
    [["--next-links", "wrong-scheme"], "Allowed: absolute, relative, path, query, opaque, wrong-host, mixed"],
    [["--next-tokens", "guids"], 'did you mean "guid"?'],
    [["--order", "asc"], 'did you mean "ascending"?'],
    [["--fields", "stat=x"], 'did you mean "state"?'],
    [["--missing-status", "500"], "is neither 400 nor 404"],
    [["--fault", "lost"], 'did you mean "lost-answer"?'],
    [["--repositories", "A,,B"], "repository keys"],
  ])("%o is refused with a clear message", async (args, message) => {
    const { done, lines } = start(args);
    await expect(done).rejects.toThrow(UsageError);
    await expect(done).rejects.toThrow(message);
    expect(lines).toEqual([]);
  });
});
