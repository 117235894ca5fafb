import { describe, expect, it } from "vitest";
import type { Policy } from "../../../src/config/policy-set.ts";
import type { PredecessorState } from "../../../src/model/slot-record.ts";
import { alwaysNewest, type FollowerInput, planFollower } from "../../../src/schedule/plan-follower.ts";
import { followerPolicy } from "../../support/chain-fixture.ts";

const minute = 60_000;
const slotMs = 100 * minute;
const policy = followerPolicy("report", "nightly", { root: "nightly" });
const slot = { v: 1, policy: "report", after: "nightly", followers: 0, openedMs: slotMs, slotMs } as const;

const ended = (changes: object = {}): PredecessorState => ({
  state: "ended",
  kind: "run",
  endedMs: slotMs + 10_000,
  isReleased: true,
  endings: [{ target: "42", status: "succeeded" }],
  ...changes,
});
const plan = (changes: Partial<FollowerInput>) =>
  planFollower({
    policy,
    slot,
    predecessor: ended(),
    nowMs: slotMs + 10_000,
    pauses: [],
    newestSinceMs: alwaysNewest,
    ...changes,
  });
const closedAt = (cron: string): Policy => ({
  ...policy,
  closed: { blackouts: [{ cron, durationMs: minute }], holidays: [] },
});

describe("a slot that waits", () => {
  it("starts when every task of its predecessor has ended as wanted and holds nothing", () => {
    const note = "nightly ended: 1 succeeded";
    expect(plan({})).toEqual({ state: "started", detail: "followed", note });
    expect(plan({ predecessor: ended({ isReleased: false }) })).toBeUndefined();
    expect(plan({ predecessor: ended({ isReleased: false }), nowMs: slotMs + 15_000 })?.state).toBe("started");
  });

  it("is skipped when the policy needs another whose last success is too old", () => {
    const needing = { ...policy, needs: { policy: "orders", withinMs: minute } };
    const with_ = (successMs: number) => plan({ policy: needing, inputs: new Map([["orders", successMs]]) })?.detail;
    expect(with_(slotMs + 10_000 - minute)).toBe("followed");
    expect(with_(slotMs + 9_999 - minute)).toBe("stale-input");
    expect(plan({ policy: needing, inputs: new Map() })?.detail).toBe("stale-input");
  });

  it("waits while a task is open, up to within, and is missed then", () => {
    const open = { state: "open" } as const;
    expect(plan({ predecessor: open, nowMs: slotMs + minute })).toBeUndefined();
    const note = "nightly had not ended";
    expect(plan({ predecessor: open, nowMs: slotMs + minute + 1 })).toEqual({
      state: "missed",
      detail: "after-within",
      note,
    });
    expect(plan({ nowMs: slotMs + minute + 1 })).toEqual({
      state: "missed",
      detail: "after-within",
      note: "nightly ended 10s after its slot",
    });
  });

  it("is skipped when a task ended otherwise, however late that is noticed", () => {
    const endings = [
      { target: "1", status: "succeeded" },
      { target: "2", status: "timed-out" },
      { target: "3", status: "failed" },
    ];
    const note = "nightly__run__2__6000 ended timed-out, and 1 more";
    const skipped = { state: "skipped", detail: "predecessor", note };
    expect(plan({ predecessor: ended({ endings }) })).toEqual(skipped);
    expect(plan({ predecessor: ended({ endings }), nowMs: slotMs + 9 * minute })).toEqual(skipped);
  });

  it("is skipped when its predecessor did not start, or is forgotten", () => {
    const record = { slotMs, state: "skipped", detail: "holiday", note: "1970-01-01" } as const;
    expect(plan({ predecessor: { state: "not-started", record } })?.note).toBe(
      "nightly did not start: skipped (holiday): 1970-01-01",
    );
    expect(plan({ predecessor: { state: "nothing" } })?.detail).toBe("predecessor");
  });

  it("is missed when it was left out and its predecessor's end is not known", () => {
    const about = { slot: { ...slot, isLeftOut: true }, predecessor: { state: "nothing" } } as const;
    expect(plan(about)).toMatchObject({ state: "missed", detail: "left-out" });
    expect(plan({ ...about, newestSinceMs: Number.POSITIVE_INFINITY })).toBeUndefined();
    expect(plan({ ...about, policy: closedAt("40 1 * * *") })?.detail).toBe("blackout");
    // What a pause skips, `resume --catch-up` starts.
    const paused = { v: 1, scope: "all", name: "", note: "", actor: "ada@desk", sinceMs: 0 } as const;
    expect(plan({ ...about, pauses: [{ ...paused, untilMs: null, endedBy: null }] })?.detail).toBe("left-out");
    expect(plan({ ...about, predecessor: ended() })?.detail).toBe("followed");
  });

  it("is skipped in a blackout over its predecessor's end, not over its slot", () => {
    const late = ended({ endedMs: slotMs + 30 * minute });
    const wide = { ...policy, after: { ...policy.after, withinMs: 90 * minute } as NonNullable<Policy["after"]> };
    const closed = (cron: string) => ({ ...wide, closed: closedAt(cron).closed });
    const nowMs = slotMs + 30 * minute;
    expect(plan({ policy: closed("10 2 * * *"), predecessor: late, nowMs })?.detail).toBe("blackout");
    expect(plan({ policy: closed("40 1 * * *"), predecessor: late, nowMs })?.state).toBe("started");
  });

  it("waits for a policy that only newer policies may have", () => {
    const nowMs = slotMs + 60 * minute;
    const asked = (newestSinceMs: number) => plan({ policy: undefined, nowMs, newestSinceMs });
    expect(asked(Number.POSITIVE_INFINITY)).toBeUndefined();
    expect(asked(nowMs - 10 * minute + 1)).toBeUndefined();
    expect(asked(nowMs - 10 * minute)?.detail).toBe("removed");
  });

  it("is skipped as removed once its policy has followed another or none for a while", () => {
    const removed = { state: "skipped", detail: "removed", note: "report does not follow nightly any more" };
    const other = followerPolicy("report", "other", { root: "other" });
    for (const one of [undefined, other]) {
      expect(plan({ policy: one, nowMs: slotMs + 10 * minute - 1 })).toBeUndefined();
      expect(plan({ policy: one, nowMs: slotMs + 10 * minute })).toEqual(removed);
    }
  });
});

describe("a waiting slot whose start Redis may have lost", () => {
  const losses = [{ fromMs: slotMs + 5_000, untilMs: slotMs + 15_000 }];
  const late = { nowMs: slotMs + minute + 1 };
  const needing = { ...policy, needs: { policy: "orders", withinMs: minute } };
  const ending = (status: "unknown" | "failed") => ended({ endings: [{ target: "42", status }] });

  it("is planned as started, so that its task ends as unknown", () => {
    expect(plan({ ...late, losses })?.state).toBe("started");
    expect(plan({ ...late, predecessor: { state: "open" }, losses })?.state).toBe("started");
    expect(plan({ policy: needing, inputs: new Map(), losses })?.state).toBe("started");
    expect(plan({ predecessor: ending("unknown"), losses })?.state).toBe("started");
    const polled = ended({ kind: "poll", endings: [{ target: "triggers", status: "failed" }] });
    expect(plan({ predecessor: polled, losses })?.state).toBe("started");
  });

  it("stays as it is where it could not have started in the loss", () => {
    const before = [{ fromMs: slotMs - 5_000, untilMs: slotMs - 1 }];
    expect(plan({ ...late, losses: before })?.state).toBe("missed");
    expect(plan({ ...late, losses: [{ fromMs: slotMs + minute + 1, untilMs: slotMs + 9 * minute }] })?.state).toBe(
      "missed",
    );
    expect(plan({ predecessor: ending("failed"), losses })?.state).toBe("skipped");
    const applying = { ...policy, action: { kind: "apply", objects: [] } } as const;
    expect(plan({ policy: applying, predecessor: ending("unknown"), losses })?.state).toBe("skipped");
    expect(plan({ predecessor: ending("unknown"), losses: [{ fromMs: 0, untilMs: slotMs - 1 }] })?.state).toBe(
      "skipped",
    );
    expect(plan({ policy: closedAt("* * * * *"), losses })?.state).toBe("skipped");
  });
});
