// What is told of polls: what changed about them, or each, as `poll.notifyOn` says; and never an
// outage policy by policy.
import { describe, expect, it } from "vitest";
import type { NotifyRule, PollAction } from "../../../src/config/policy-set.ts";
import type { Outcome } from "../../../src/model/outcome.ts";
import { changeRule, NotifyFixture, notifiedPolicy, silentRule } from "../../support/notify-fixture.ts";

/** A policy that polls the approvals. */
function pollPolicy(name: string, notifyOn: NonNullable<PollAction["notifyOn"]>, rule: Partial<NotifyRule> = {}) {
  const action: PollAction = { kind: "poll", list: "approvals", expect: "count == 0", notifyOn };
  return { ...notifiedPolicy(name, [{ ...changeRule, ...rule }]), action };
}

type PollEnd = Pick<Outcome, "status" | "reason"> & { readonly changed: boolean };
const good = (changed: boolean): PollEnd => ({ status: "succeeded", reason: "expectation-met", changed });
const bad = (changed: boolean): PollEnd => ({ status: "failed", reason: "expectation-not-met", changed });
const unread = (changed: boolean): PollEnd => ({ status: "unknown", reason: "bad-answer", changed });
const gone = (changed: boolean): PollEnd => ({ status: "unknown", reason: "unreachable", changed });

/** One policy whose polls end so, a minute apart; what was told after each, by kind and title. */
async function storyOf(policy: ReturnType<typeof pollPolicy>, endings: readonly PollEnd[]): Promise<string[][]> {
  const fixture = new NotifyFixture([policy]);
  const story: string[][] = [];
  for (const ending of endings) {
    const before = fixture.delivered.length;
    fixture.ended(policy.name, { kind: "poll", target: "approvals", ...ending });
    await fixture.after(60_000);
    story.push(fixture.delivered.slice(before).map(({ notice: { kind, title } }) => `${kind}: ${title}`));
  }
  return story;
}

describe("a poll with notifyOn: change", () => {
  it("is reported when it turns bad, unknown or good again, once each", async () => {
    const endings = [good(false), bad(true), bad(false), unread(true), unread(false), good(true), good(false)];
    expect(await storyOf(pollPolicy("watch", "change"), endings)).toEqual([
      [],
      ["failing: watch: failing (expectation-not-met), approvals"],
      [],
      ["failing: watch: unknown (bad-answer), approvals"],
      [],
      ["recovered: watch: recovered after 4m (was unknown)"],
      [],
    ]);
  });

  it("is told of again when it stays bad because of something else", async () => {
    expect(await storyOf(pollPolicy("watch", "change"), [bad(true), bad(true), bad(false)])).toEqual([
      ["failing: watch: failing (expectation-not-met), approvals"],
      ["outcome: watch: failed (expectation-not-met), approvals"],
      [],
    ]);
  });
});

describe("a poll with notifyOn: always", () => {
  it("is told of each time, in one message", async () => {
    const endings = [good(false), bad(true), bad(false), good(true), good(false)];
    expect(await storyOf(pollPolicy("watch", "always"), endings)).toEqual([
      ["outcome: watch: succeeded (expectation-met), approvals"],
      ["failing: watch: failing (expectation-not-met), approvals"],
      ["outcome: watch: failed (expectation-not-met), approvals"],
      ["recovered: watch: recovered after 2m (was failing)"],
      ["outcome: watch: succeeded (expectation-met), approvals"],
    ]);
  });

  it("goes to sinks that take every change, and to no sink that takes less", async () => {
    const policy = pollPolicy("watch", "always", { ...silentRule, failuresInRow: 3 });
    expect(await storyOf(policy, [good(false), bad(true), good(true)])).toEqual([[], [], []]);
    // Some of what `change` stands for, written out.
    const some = { ...silentRule, blocked: true, unknown: true, missed: true, recovery: true };
    expect(await storyOf(pollPolicy("watch", "always", some), [good(false), bad(true)])).toEqual([[], []]);
  });
});

describe("a poll that is stale", () => {
  it.each([
    [{ ...silentRule, recovery: true }, ["stale", "recovered", "stale"]],
    [changeRule, ["failing", "stale", "stale"]],
  ])("is not when it reads, met or not, and is told of the next time", async (rule, kinds) => {
    const fixture = new NotifyFixture([pollPolicy("watch", "change", { ...rule, stale: true })]);
    for (let round = 0; round < 2; round += 1) {
      fixture.ended("watch", { kind: "poll", target: "approvals", ...bad(false) });
      await fixture.after(60_000);
      fixture.stale = new Map([["watch", fixture.nowMs - 3_600_000]]);
      await fixture.after(60_000);
      fixture.stale = new Map();
    }
    expect(fixture.published()).toEqual(kinds.map((kind) => `ops ${kind} watch`));
  });
});

describe("an outage", () => {
  it("is one message for all polls, and its end another, however many of them changed", async () => {
    const names = ["a", "b", "c", "d", "e"];
    const fixture = new NotifyFixture(names.map((name) => pollPolicy(name, "change")));
    for (const name of names) fixture.ended(name, { kind: "poll", target: "approvals", ...gone(true) });
    await fixture.after(60_000);
    for (const name of names) fixture.ended(name, { kind: "poll", target: "approvals", ...good(true) });
    await fixture.after(60_000);
    await fixture.after(60_000);
    expect(fixture.published()).toEqual(["ops service-down service:main", "ops service-up service:main"]);
  });
});
