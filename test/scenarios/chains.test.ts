import { describe, expect, it } from "vitest";
import { worldForTest } from "../support/world.ts";

describe("a chain", () => {
  it("runs the sync jobs again after their run, then polls: one slot, in order", async () => {
    // Due soon and then not for a minute: a later slot must not come before the sync jobs of the
    // first one have run twice.
    const dueSecond = new Date(Date.now() + 4_000).getUTCSeconds();
    const world = await worldForTest({
      policies: `
  - { name: first, service: main, repository: HR, run: { syncJobs: [3, 4] }, schedule: { cron: "${dueSecond} * * * * *" } }
  - { name: second, service: main, repository: HR, run: { fromMasks: {} }, after: { policy: first, on: [succeeded, conflicts], within: 1m } }
  - { name: third, service: main, repository: HR, poll: { list: triggers }, after: { policy: second, on: [succeeded, conflicts] } }
  - { name: alarm, service: main, repository: HR, poll: { list: approvals }, after: { policy: first, on: [failed] } }`,
      sandbox: { jobs: 6 },
    });
    const { log } = world;
    await log.until(() => log.outcomesOf("third").length > 0);
    const [slot] = log.outcomesOf("third").map((outcome) => outcome.slot);
    const of = (policy: string) => log.outcomesOf(policy).filter((outcome) => outcome.slot === slot);
    const [first, second, third] = [of("first"), of("second"), of("third")];
    const ended = ["succeeded", "conflicts"];
    expect(first.map(({ target }) => target).toSorted()).toEqual(["3", "4"]);
    // Sync jobs 3 and 4 as well, which the runs before had given back: none is skipped.
    expect(second.map(({ target }) => target).toSorted()).toEqual(["1", "2", "3", "4", "5", "6"]);
    expect([...first, ...second].filter(({ status }) => !ended.includes(status))).toEqual([]);
    expect(third.map(({ status }) => status)).toEqual(["succeeded"]);
    const ends = (outcomes: typeof first) => Math.max(...outcomes.map(({ finishedAt }) => Date.parse(finishedAt)));
    const starts = (outcomes: typeof first) =>
      Math.min(...outcomes.map(({ startedAt }) => Date.parse(String(startedAt))));
    expect(starts(second)).toBeGreaterThanOrEqual(ends(first));
    expect(starts(third)).toBeGreaterThanOrEqual(ends(second));
    const skips = log.named("slot.skipped").filter((event) => event["policy"] === "alarm");
    expect(skips.filter((event) => event["slot"] === slot)).toMatchObject([{ reason: "predecessor" }]);
  });
});
