// A policy that fails again and again is left out, and comes back when a run by hand goes well.
import { describe, expect, it } from "vitest";
import { worldForTest } from "../support/world.ts";

const policy = (expect: string) => `
  - { name: watched, service: main, poll: { list: approvals, expect: "${expect}" }, schedule: { every: 1s }, quarantine: { after: 3, for: 1h } }
  - { name: other, service: main, poll: { list: approvals, expect: "${expect}" }, schedule: { every: 1s } }`;

describe("a policy in quarantine", () => {
  it("is skipped with the reason after failures in a row, until a run by hand succeeds", async () => {
    // An expectation that is neither true nor false ends unknown: the policy is of no use.
    const world = await worldForTest({ policies: policy("count") });
    const { log } = world;
    await log.until(({ event }) => event === "policy.quarantined");
    const skipped = await log.until(({ event, reason }) => event === "slot.skipped" && reason === "quarantine");
    expect(skipped).toMatchObject({ policy: "watched" });
    expect(skipped["note"]).toMatch(/^3 slots in a row failed; the last ended unknown \(expectation-unreadable\): /);
    const others = log.outcomesOf("other").length;
    await log.until(() => log.outcomesOf("other").length > others);
    await world.configure({ policies: policy("count >= 0") });
    expect(await world.run("watched")).toMatchObject({ status: "succeeded" });
    const released = await log.until(({ event }) => event === "policy.released");
    expect(released["by"]).toMatch(/^a success: watched__/);
    const last = String(log.named("slot.skipped").at(-1)?.["slot"]);
    await log.until(
      ({ event, policy: name, slot }) => event === "slot.queued" && name === "watched" && String(slot) > last,
    );
    expect(log.named("policy.quarantined")).toHaveLength(1);
  });

  it("goes on when its file has no quarantine any more", async () => {
    const failing = policy("count");
    const world = await worldForTest({ policies: failing });
    const { log } = world;
    await log.until(({ event }) => event === "policy.quarantined");
    await log.until(({ event, reason }) => event === "slot.skipped" && reason === "quarantine");
    await world.configure({ policies: failing.replace(", quarantine: { after: 3, for: 1h }", "") });
    const released = await log.until(({ event }) => event === "policy.released");
    expect(released).toMatchObject({ policy: "watched", by: "its file, which has no quarantine any more" });
    const last = String(log.named("slot.skipped").at(-1)?.["slot"]);
    await log.until(
      ({ event, policy: name, slot }) => event === "slot.queued" && name === "watched" && String(slot) > last,
    );
  });
});
