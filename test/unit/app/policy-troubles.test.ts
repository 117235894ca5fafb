import { describe, expect, it } from "vitest";
import { countTroubles, findTroubles, type PolicyFacts, worstOf } from "../../../src/app/metric-gauges.ts";
import { PolicySlots } from "../../../src/app/policy-slots.ts";
import type { Pause } from "../../../src/model/pause.ts";
import type { NotedTrouble } from "../../../src/store/troubles.ts";
import { testPolicy } from "../../support/policies.ts";

const at = (text: string) => Date.parse(text);
const dst = { gap: "next", overlap: "first" } as const;
/** At 02:30 from Monday to Friday. 2026-11-23 is a Monday. */
const nightly = testPolicy({
  name: "nightly",
  schedule: { kind: "cron", expressions: ["30 2 * * 1-5"], timezone: "UTC", dst, spreadMs: 0 },
});
const note = (trouble: NotedTrouble, atText: string, policy = "nightly") => ({ trouble, policy, atMs: at(atText) });

function find(nowText: string, facts: Partial<PolicyFacts>, policies = [nightly]): string[] {
  const instants = { successes: new Map(), keptSince: new Map(), begun: new Map() };
  const calm = { ...instants, pauses: [], notes: [], late: new Map() };
  const found = findTroubles(policies, { nowMs: at(nowText), ...calm, ...facts }, new PolicySlots());
  return found.map(({ trouble, atMs }) => `${trouble} ${new Date(atMs).toISOString().slice(0, 16)}`);
}

const friday = { successes: new Map([["nightly", at("2026-11-20T02:40:00Z")]]) };

describe("the troubles of policies", () => {
  it("are reported in the night a nightly run fails, and end with the next success", () => {
    const notes = [note("failing", "2026-11-23T02:40:00Z")];
    expect(find("2026-11-23T02:41:00Z", { ...friday, notes })).toEqual(["failing 2026-11-23T02:40"]);
    expect(find("2026-11-24T02:29:00Z", { ...friday, notes })).toEqual(["failing 2026-11-23T02:40"]);
    expect(find("2026-11-24T02:41:00Z", friday)).toEqual([]);
  });

  it("make a policy stale at its third slot, and then not failing too", () => {
    const notes = [note("failing", "2026-11-25T02:31:00Z")];
    expect(find("2026-11-25T02:32:00Z", { ...friday, notes })).toEqual(["stale 2026-11-25T02:30"]);
    expect(find("2026-11-25T02:29:00Z", friday)).toEqual([]);
    expect(find("2026-11-25T02:32:00Z", { keptSince: friday.successes })).toEqual(["stale 2026-11-25T02:30"]);
  });

  it("are not stale or failing too while a deadline is missed", () => {
    const notes = [note("failing", "2026-11-24T02:40:00Z"), note("conflicts", "2026-11-24T02:40:00Z")];
    const late = new Map([["nightly", { sinceMs: at("2026-11-24T04:00:00Z") }]]);
    for (const now of ["2026-11-24T05:00:00Z", "2026-11-25T02:32:00Z"])
      expect(find(now, { ...friday, notes, late })).toEqual(["late 2026-11-24T04:00", "conflicts 2026-11-24T02:40"]);
  });

  it("count slots from where the schedule began, if that is after the last success", () => {
    const begun = new Map([["nightly", at("2026-11-24T09:00:00Z")]]);
    expect(find("2026-11-26T23:00:00Z", { ...friday, begun })).toEqual([]);
    expect(find("2026-11-27T02:31:00Z", { ...friday, begun })).toEqual(["stale 2026-11-27T02:30"]);
    // Dropped records say nothing of it.
    const keptSince = new Map([["nightly", at("2026-11-27T02:30:00Z")]]);
    expect(find("2026-11-27T02:31:00Z", { begun, keptSince })).toEqual(["stale 2026-11-27T02:30"]);
  });

  it("forget a failure after three slots without an end: its sync job was removed", () => {
    const successes = new Map([["nightly", at("2026-11-26T02:40:00Z")]]);
    const notes = [note("failing", "2026-11-23T02:40:00Z")];
    expect(find("2026-11-26T02:29:00Z", { successes, notes })).toEqual(["failing 2026-11-23T02:40"]);
    expect(find("2026-11-26T02:41:00Z", { successes, notes })).toEqual([]);
  });

  it("tell a missed slot and an unknown start for an hour, also in a pause", () => {
    const notes = [note("missed", "2026-11-23T10:00:00Z"), note("unknown", "2026-11-23T10:30:00Z")];
    const pauses = [pause({})];
    expect(find("2026-11-23T10:45:00Z", { ...friday, notes, pauses })).toEqual([
      "unknown 2026-11-23T10:30",
      "missed 2026-11-23T10:00",
    ]);
    expect(find("2026-11-23T11:15:00Z", { ...friday, notes })).toEqual(["unknown 2026-11-23T10:30"]);
  });

  it("are no failure and not stale in a pause; a quarantine is told as that", () => {
    const notes = [note("failing", "2026-11-25T02:31:00Z"), note("conflicts", "2026-11-25T02:31:00Z")];
    expect(find("2026-11-27T00:00:00Z", { ...friday, notes, pauses: [pause({})] })).toEqual([]);
    expect(find("2026-11-27T00:00:00Z", { ...friday, notes, pauses: [pause({ cause: "quarantine" })] })).toEqual([
      "quarantined 2026-11-23T00:00",
    ]);
  });

  it("are stale as ever after a quarantine, and later after a pause", () => {
    const ended = { ...pause({}), sinceMs: at("2026-11-24T03:00:00Z"), untilMs: at("2026-11-24T09:00:00Z") };
    const now = "2026-11-25T02:31:00Z";
    expect(find(now, { ...friday, pauses: [{ ...ended, cause: "quarantine" }] })).toEqual(["stale 2026-11-25T02:30"]);
    expect(find(now, { ...friday, pauses: [ended] })).toEqual([]);
  });

  it("are found without a look at the ended quarantines of other policies", () => {
    const policies = Array.from({ length: 1_000 }, (_, index) => testPolicy({ ...nightly, name: `p${index}` }));
    const [sinceMs, untilMs] = [at("2026-11-23T00:00:00Z"), at("2026-11-23T01:00:00Z")];
    let looks = 0;
    const pauses = policies.map(({ name }) => ({
      ...pause({ name, cause: "quarantine", sinceMs, untilMs }),
      get scope() {
        looks += 1;
        return "policy" as const;
      },
    }));
    const successes = new Map(policies.map(({ name }) => [name, at("2026-11-20T02:40:00Z")]));
    expect(find("2026-11-25T02:31:00Z", { successes, pauses }, policies)).toHaveLength(1_000);
    expect(looks).toBeLessThan(10_000);
  });

  it("are counted for every policy, whatever their number, and the first are named", () => {
    const policies = Array.from({ length: 5_000 }, (_, index) => testPolicy({ ...nightly, name: `p${index}` }));
    const keptSince = new Map(policies.map(({ name }, index) => [name, at("2026-11-16T00:00:00Z") + index]));
    const facts = {
      nowMs: at("2026-11-27T00:00:00Z"),
      successes: new Map(),
      keptSince,
      begun: new Map(),
      pauses: [],
      notes: [],
      late: new Map(),
    };
    const [group = []] = countTroubles(findTroubles(policies, facts, new PolicySlots())).values();
    expect(group).toHaveLength(5_000);
    expect(worstOf(group).map(({ policy }) => policy)).toEqual(["p0", "p1", "p2", "p3", "p4"]);
  });
});

function pause(changes: Partial<Pause>): Pause {
  const sinceMs = at("2026-11-23T00:00:00Z");
  return { v: 1, scope: "all", name: "", note: "", actor: "a@b", sinceMs, untilMs: null, endedBy: null, ...changes };
}
