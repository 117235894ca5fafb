import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { commandFixture } from "../support/command-fixture.ts";
import { runHere } from "../support/commands-here.ts";
import { folderForTest } from "../support/folder.ts";

const fixture = commandFixture("  - { name: nightly, service: main, repository: HR, run: { syncJobs: [1] } }");
const prefix = fixture.redis.prefix;

it("shows what is known under the role web, to owners of a token only", async () => {
  const made = await runHere(["token", "ana", "--until", "2099-01-01"]);
  const token = /shown this once: (\S+)/.exec(made.err)?.[1] ?? "";
  const file = join(folderForTest(), "web-tokens");
  writeFileSync(file, made.out);
  const web = await fixture.serve(
    prefix,
    "--roles",
    "web",
    "--web-port",
    "0",
    "--web-host",
    "0.0.0.0",
    "--web-tokens",
    file,
  );
  const { url } = await web.until(({ event }) => event === "web.listening");
  const api = `${String(url).replace("0.0.0.0", "127.0.0.1")}api/v1`;
  expect((await fetch(`${api}/policies`)).status).toBe(401);
  const headers = { authorization: `Bearer ${token}` };
  const { items } = JSON.parse(await (await fetch(`${api}/policies`, { headers })).text());
  expect(items).toMatchObject([{ name: "nightly", health: "new" }]);
  expect((await fetch(`${api}/policies/nightly`, { headers, method: "DELETE" })).status).toBe(403);
  expect((await fixture.command(prefix, "changes")).out).toMatch(/ana +refused +DELETE \/api\/v1\/policies\/nightly/);
  // An open stream of events does not keep the process from its end.
  const events = await fetch(`${api.replace("/api/v1", "")}/events`, { headers });
  expect(events.headers.get("content-type")).toBe("text/event-stream");
  web.kill("SIGTERM");
  expect((await web.ended()).code).toBe(0);
});

it("refuses to be seen from elsewhere without tokens, and a file that is none", async () => {
  const serve = (...more: string[]) =>
    fixture.command(prefix, "serve", "--config", fixture.file(), "--roles", "web", ...more);
  expect(await serve("--web-host", "0.0.0.0")).toMatchObject({ code: 2, err: expect.stringContaining("--web-tokens") });
  const wrong = join(folderForTest(), "web-tokens");
  writeFileSync(wrong, "ana:secret\n");
  expect(await serve("--web-tokens", wrong)).toMatchObject({ code: 2, err: expect.stringContaining(`${wrong}:1`) });
});
