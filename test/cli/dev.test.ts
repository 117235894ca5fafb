// `syncline dev` as a newcomer starts it: what it says to type next works, and nothing is left.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { startSandbox } from "../../src/sandbox/sandbox.ts";
import { folderForTest } from "../support/folder.ts";
import { Syncline, syncline } from "../support/processes.ts";

/** What a shell exports by the line that is to be typed. */
function exportedBy({ err }: Syncline): Record<string, string> {
  const typed = `${/export .*/.exec(err)?.[0]}\nenv`;
  const lines = execFileSync("sh", ["-c", typed], { env: { PATH: process.env["PATH"] }, encoding: "utf8" }).split("\n");
  return Object.fromEntries(lines.map((line) => line.split(/=(.*)/)));
}

it("runs all of it, says what to type next, and is gone at Ctrl-C", async () => {
  const shell = { SYNCLINE_PREFIX: "of-another" };
  const dev = new Syncline(["dev"], shell);
  await dev.until(({ event }) => event === "serve.ready");
  expect(dev.err).toMatch(
    /next slots\n {2}contracts-nightly: \d{4}-\d\d-\d\d 0[01]:30:00Z \(\d{4}-\d\d-\d\d 02:30:00 CES?T\)\n {2}invoices: /,
  );
  const environment = { ...shell, ...exportedBy(dev) };
  const [run] = /(?<= syncline (?:-- )?)run .*/.exec(dev.err) ?? [""];
  expect(await syncline(run.split(" "), environment)).toMatchObject({ code: 0 });
  // Its own worker did it, under the prefix that is exported.
  await dev.until(({ event, policy }) => event === "task.finished" && policy === "contracts-nightly");
  expect((await syncline(["history"], environment)).out).toMatch(/contracts-nightly +sync job 4.* succeeded/);

  // Under `npm run` a Ctrl-C comes twice: still an end in order.
  dev.kill("SIGINT");
  dev.kill("SIGINT");
  expect((await dev.ended()).code).toBe(0);
  expect(dev.events.at(-1)).toMatchObject({ event: "serve.stopped" });
  const { port } = new URL(exportedBy(dev)["REDIS_URL"] ?? "");
  expect(execFileSync("ps", ["-eo", "args"], { encoding: "utf8" })).not.toContain(`:${port}`);
});

it("exports the place of one's own policies, and never prints their service's token", async () => {
  const sandbox = await startSandbox({ jobs: 3, activities: 5 });
  onTestFinished(() => sandbox.stop());
  const file = join(mkdtempSync(join(folderForTest(), "o'brien-")), "own.yaml");
  copyFileSync(new URL("../../config/first-light.yaml", import.meta.url), file);
  const own = { SYNC_URL: sandbox.baseUrl, SYNC_TOKEN: "own-token-4711-of-a-service" };
  for (const token of [sandbox.token, own.SYNC_TOKEN]) {
    const dev = new Syncline(["dev", "--config", file], { ...own, SYNC_TOKEN: token });
    await dev.until(({ event }) => event === "serve.ready");
    const { REDIS_URL: url = "", SYNCLINE_CONFIG } = exportedBy(dev);
    expect(SYNCLINE_CONFIG).toBe(file);
    const run = ["run", "contracts-nightly", "--wait", "--timeout", "5s", "--redis-url", url];
    const { out, err } = await syncline(run);
    dev.kill("SIGINT");
    const said = await dev.ended();
    expect(`${said.out}${said.err}${out}${err}`).toContain("contracts-nightly");
    expect(`${said.out}${said.err}${out}${err}`).not.toContain(token);
  }
});

it("says what is wrong with policies of one's own, and leaves nothing running", async () => {
  expect(await syncline(["dev", "--config", "absent.yaml"])).toMatchObject({
    code: 2,
    err: expect.stringContaining("absent.yaml"),
  });
});
