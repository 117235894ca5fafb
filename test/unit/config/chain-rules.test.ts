import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadPolicies } from "../../../src/config/load-policies.ts";
import { outcomeStatuses } from "../../../src/model/outcome.ts";
import { checks, fileWith, folderOf, loadText, problemsOf, variables } from "./policy-fixture.ts";

const run = "service: main, run: { syncJobs: [1] }";
const first = `  - { name: a, ${run}, schedule: { cron: "0 2 * * *", spread: 10m } }\n`;
const follower = (name: string, predecessor: string, more = "") =>
  `  - { name: ${name}, ${run}, after: { policy: ${predecessor}${more} } }\n`;

describe("a policy with after", () => {
  it("has the slots of its chain's first policy; defaults: on succeeded, within a day", async () => {
    const loaded = await loadText(
      fileWith(`${first}${follower("b", "a")}${follower("c", "b", ", on: [succeeded, conflicts], within: 2h")}`),
    );
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
    const dst = { gap: "next", overlap: "first" };
    const root = {
      name: "a",
      schedule: { kind: "cron", expressions: ["0 2 * * *"], timezone: "UTC", dst, spreadMs: 600_000 },
    };
    expect(loaded.set.policies.map((policy) => policy.after)).toEqual([
      undefined,
      { policy: "a", on: ["succeeded"], withinMs: 86_400_000, root },
      { policy: "b", on: ["succeeded", "conflicts"], withinMs: 7_200_000, root },
    ]);
    expect(loaded.set.policies.map(({ schedule }) => schedule?.kind)).toEqual(["cron", undefined, undefined]);
  });

  it("has its times in the zone of that policy, too", async () => {
    const root = `  - { name: a, ${run}, schedule: { cron: "0 2 * * *", timezone: Europe/Vienna } }\n`;
    const loaded = await loadText(fileWith(`${root}${follower("b", "a")}${follower("c", "b")}`));
    const zones = loaded.ok && loaded.set.policies.map(({ timezone }) => timezone);
    expect(zones).toEqual(Array(3).fill("Europe/Vienna"));
  });

  it("may wait for every ending that a task can have, and for no other", async () => {
    const on = (word: string) => fileWith(`${first}${follower("b", "a", `, on: [${word}]`)}`);
    for (const status of outcomeStatuses) expect(await problemsOf(on(status))).toEqual([]);
    expect(await problemsOf(on("done"))).toEqual([
      `6:80 after.on.0: must be ${outcomeStatuses.join(", ").replace(/, (\S+)$/, " or $1")}`,
    ]);
  });

  const cases: readonly (readonly [string, string, string])[] = [
    ["follows itself", follower("b", "b"), "6:72 a policy cannot follow itself"],
    ["follows nobody", follower("b", "aa"), '6:72 there is no policy "aa"'],
    [
      "stands in a circle",
      `${follower("b", "d")}${follower("c", "b")}${follower("d", "c")}${follower("e", "c")}`,
      "6:72 b follows d follows c follows b: a circle never starts",
    ],
    [
      "follows one that only runs by hand",
      `  - { name: h, ${run} }\n${follower("b", "h")}`,
      "7:72 h has no schedule, so nothing ever starts this chain",
    ],
    [
      "waits for success of runs that nobody follows",
      `  - { name: q, ${run}, schedule: { every: 1h }, follow: { until: accepted } }\n${follower("b", "q")}`,
      "7:72 q is not followed, so it ends as accepted and never as succeeded",
    ],
    [
      "has a schedule as well",
      `  - { name: b, ${run}, schedule: { every: 1h }, after: { policy: a } }\n`,
      "6:55 after and schedule exclude each other",
    ],
    [
      "has a rule for late slots",
      `  - { name: b, ${run}, after: { policy: a }, catchUp: all }\n`,
      "6:77 after and catchUp exclude each other",
    ],
  ];

  it.each(cases)("that %s is refused at its place, once", async (_, policies, problem) => {
    const problems = await problemsOf(fileWith(`${first}${policies}`));
    expect(problems).toEqual([problem]);
  });

  it("may be the twentieth of a chain, and not the twenty-first", async () => {
    const chain = (count: number) =>
      Array.from({ length: count - 1 }, (_, index) => follower(`p${index + 1}`, index === 0 ? "a" : `p${index}`)).join(
        "",
      );
    expect(await problemsOf(fileWith(`${first}${chain(20)}`))).toEqual([]);
    expect(await problemsOf(fileWith(`${first}${chain(21)}`))).toEqual([
      "25:74 it is the end of a chain that is too long: 20 policies are the most",
    ]);
  });

  it("that follows a policy of another file is refused, with the place of that one", async () => {
    const folder = await folderOf({
      "a.yaml": fileWith(first),
      "b.yaml": `apiVersion: syncline/v1\npolicies:\n${follower("b", "a")}`,
    });
    const loaded = await loadPolicies(folder, { variables, checks });
    const problems = loaded.ok ? [] : loaded.problems.map(({ line, message, hint }) => ({ line, message, hint }));
    const hint = "move the policies of a chain into one file";
    const message = `"a" stands in another file, ${join(folder, "a.yaml")}:5: a chain stands in one file`;
    expect(problems).toEqual([{ line: 3, message, hint }]);
  });
});
