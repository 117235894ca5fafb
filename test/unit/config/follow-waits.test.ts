import { describe, expect, it } from "vitest";
import { fileWith, loadText, problemsOf } from "./policy-fixture.ts";

/** The waits of a run policy with this `follow`. */
async function waitsOf(follow: string) {
  const loaded = await loadText(fileWith(`  - { name: a, service: main, run: { syncJobs: [1] }, follow: ${follow} }`));
  if (!loaded.ok) throw new Error(loaded.problems.map(({ message }) => message).join());
  const { quietForMs, unreadableForMs, blockedAfterMs } = loaded.set.policies[0]?.follow ?? {};
  return [quietForMs, unreadableForMs, blockedAfterMs];
}

describe("how long a run's followers are patient", () => {
  it("is said by the policy, or by the defaults", async () => {
    expect(await waitsOf("{ until: settled }")).toEqual([30_000, 300_000, 300_000]);
    expect(await waitsOf("{ quietFor: 2m, unreadableFor: 15m, blockedAfter: 1h }")).toEqual([
      120_000, 900_000, 3_600_000,
    ]);
  });

  it("leaves approvals unread by `off`, or when the run ends before one could block", async () => {
    expect(await waitsOf("{ blockedAfter: off }")).toEqual([30_000, 300_000, undefined]);
    expect(await waitsOf("{ deadline: 5m }")).toEqual([30_000, 300_000, undefined]);
    expect(await waitsOf("{ deadline: 301s }")).toEqual([30_000, 300_000, 300_000]);
  });

  it("takes appearsWithin from the policy only; it has no default", async () => {
    const appearsWithin = async (follow: string) => {
      const text = fileWith(`  - { name: a, service: main, run: { syncJobs: [1] }, follow: ${follow} }`);
      const loaded = await loadText(text);
      return loaded.ok ? loaded.set.policies[0]?.follow.appearsWithinMs : loaded.problems;
    };
    expect(await appearsWithin("{ appearsWithin: 2m }")).toBe(120_000);
    expect(await appearsWithin("{ until: accepted, appearsWithin: 2m }")).toBe(120_000);
    expect(await appearsWithin("{ until: settled }")).toBeUndefined();
  });

  it("refuses waits of a run without follow", async () => {
    const follow = "{ until: accepted, quietFor: 1m, unreadableFor: 1m, blockedAfter: off }";
    const policy = fileWith(`  - { name: a, service: main, run: { syncJobs: [1] }, follow: ${follow} }`);
    expect((await problemsOf(policy)).map((problem) => problem.replace(/^\S+ /, ""))).toEqual([
      "follow.quietFor needs following: until is accepted",
      "follow.unreadableFor needs following: until is accepted",
      "follow.blockedAfter needs following: until is accepted",
    ]);
  });

  it.each(["never", "30"])("is a duration or off, and not %s", async (wait) => {
    const text = fileWith(`  - { name: a, service: main, run: { syncJobs: [1] }, follow: { blockedAfter: ${wait} } }`);
    expect((await problemsOf(text)).join()).toContain("follow.blockedAfter: a duration is a whole number");
  });
});
