import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { folderForTest } from "../../support/folder.ts";
import { commandHere } from "../../support/simulate-command.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const watchOnly = ["simulate", "--config", `${root}config/watch-only.yaml`, "--from", "2026-12-01"];

it("refuses what is no simulation, and says what to write", async () => {
  const cases: readonly [readonly string[], string][] = [
    [["--to", "2026-11-01"], "--to is not after --from"],
    [["--to", "+800d"], "more than two years"],
    [
      ["--duration", "approvals=20m"],
      "there is no policy approvals; did you mean approvals-waiting? there are: approvals-waiting, triggers-active",
    ],
    [["--duration", "30m-10m"], "write the shorter one first"],
    [["--duration", "10m-20m-30m"], "write a duration such as 20m, or two such as 10m-30m"],
    [["--duration", "triggers-active=20m=3"], "write VALUE or POLICY=VALUE"],
    [["--mask-jobs", "1.5"], "write a whole number up to 1000"],
    [["--outage", "+1d"], "is no interval: write FROM/TO"],
    [["--to", "+1d", "--outage", "+12h/+13h"], "an outage ends after --to"],
    [["--pause", "nobody=+1h/+2h"], "there is no policy nobody"],
    [["nobody"], "there is no policy nobody"],
    [["--timezone", "Wien"], "--timezone Wien is no zone"],
    [["--problems", "0"], "write a whole number from 1 to 1000"],
  ];
  for (const [args, said] of cases) expect((await commandHere([...watchOnly, ...args])).text).toContain(said);
});

it("tells the problems of a file named by hand at once: Redis is not asked", async () => {
  const file = join(folderForTest(), "policies.yaml");
  writeFileSync(file, "apiVersion: syncline/v1\npolicies: [{ name: a, service: nowhere }]\n");
  for (const command of ["simulate", "plan"]) {
    const { text } = await commandHere([command, "--config", file, "--redis-url", "redis://127.0.0.1:1"]);
    expect(text).toContain("cannot be used");
    expect(text).not.toContain("Redis");
  }
});

it("shows progress on a terminal, clears it at the end, and stops when told to", async () => {
  const shown: string[] = [];
  const progress = (text: string) => shown.push(text);
  const done = await commandHere([...watchOnly, "--to", "+100d"], { progress });
  expect(done.code).toBe(0);
  // 144 + 24 slots a day and one on workdays, two events each: 5,000 are reached in mid-December.
  expect(shown[0]).toMatch(/^simulated up to 2026-12-1\d.\d\d:\d\dZ: \d{4} slots$/);
  expect(shown.at(-1)).toBe("");
  const stop = new AbortController();
  stop.abort();
  const stopped = await commandHere([...watchOnly, "--to", "+100d"], { signal: stop.signal });
  expect(stopped).toEqual({ text: "stopped before its end", code: 1 });
});

it("prints what docs/simulate.md says, example by example", async () => {
  const page = readFileSync(`${root}docs/simulate.md`, "utf8");
  const examples = [...page.matchAll(/```console\n\$ syncline (.*)\n([\s\S]*?)\n```/g)];
  expect(examples.length).toBeGreaterThanOrEqual(2);
  for (const [, line = "", expected = ""] of examples) {
    const args = line.split(" ").map((word) => (word.startsWith("config/") ? root + word : word));
    const { text, code } = await commandHere(args);
    const printed = text.replace(/, in \d+\.\d s\./, ", in 0.0 s.");
    const exit = code === 0 ? "" : `\n$ echo $?\n${code}`;
    expect(`${printed}${exit}`, line).toBe(expected);
  }
});

it("plans a follower: whom, until when, at what time; alone, it includes its chain", async () => {
  const chain = ["--config", `${root}config/chain.yaml`, "--from", "2026-12-01"];
  const { text } = await commandHere([
    "plan",
    ...chain,
    "--count",
    "1",
    "--duration",
    "40m",
    "--duration",
    "letters=5m",
  ]);
  // 02:30 in Vienna is 01:30Z; contracts take 40 minutes, letters 5.
  expect(text).toMatch(
    /letters +run +after contracts \(succeeded, conflicts\), within 90m of its slot +about 2026-12-01 02:10:00Z/,
  );
  expect(text).toMatch(
    /approvals-after-letters +poll +after letters \(succeeded\), within 1d of its slot +about 2026-12-01 02:15:00Z/,
  );
  const late = await commandHere(["plan", "letters", ...chain, "--duration", "2h", "--json"]);
  expect(JSON.parse(late.text)).toMatchObject([
    { policy: "letters", slots: [], expected: null, after: { policy: "contracts" } },
  ]);
  const alone = await commandHere(["simulate", "letters", ...chain, "--to", "+1d", "--json"]);
  const { policies, notSimulated } = JSON.parse(alone.text);
  expect(policies.map(({ policy, started }: { policy: string; started: number }) => [policy, started])).toEqual([
    ["contracts", 1],
    ["letters", 1],
  ]);
  expect(notSimulated).toEqual([]);
  expect((await commandHere(["simulate", ...chain, "--failure", "101%"])).text).toContain(
    "write a percentage such as 5%",
  );
});
