// `syncline dev` as a newcomer starts it: what it says to type next works, and nothing is left.
import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";
import { Syncline, syncline } from "../support/processes.ts";

it("runs all of it, says what to type next, and is gone at Ctrl-C", async () => {
  const dev = new Syncline(["dev"]);
  await dev.until(({ event }) => event === "serve.ready");
  expect(dev.err).toMatch(/next slots\n {2}contracts-nightly: \d{4}-\d\d-\d\d 02:30:00 CES?T\n {2}invoices: /);
  const exported = [...dev.err.matchAll(/(\w+)='([^']*)'/g)].map(([, name = "", value = ""]) => [name, value]);
  const environment: Record<string, string> = Object.fromEntries(exported);
  const [run] = /(?<= syncline (?:-- )?)run .*/.exec(dev.err) ?? [""];
  expect(await syncline(run.split(" "), environment)).toMatchObject({ code: 0 });
  expect((await syncline(["history"], environment)).out).toMatch(/contracts-nightly +sync job 4.* succeeded/);

  // Under `npm run` a Ctrl-C comes twice: still an end in order.
  dev.kill("SIGINT");
  dev.kill("SIGINT");
  expect((await dev.ended()).code).toBe(0);
  expect(dev.events.at(-1)).toMatchObject({ event: "serve.stopped" });
  const { port } = new URL(environment["REDIS_URL"] ?? "");
  expect(execFileSync("ps", ["-eo", "args"], { encoding: "utf8" })).not.toContain(`:${port}`);
}, 60_000);

it("says what is wrong with policies of one's own, and leaves nothing running", async () => {
  expect(await syncline(["dev", "--config", "absent.yaml"])).toMatchObject({
    code: 2,
    err: expect.stringContaining("absent.yaml"),
  });
}, 30_000);
