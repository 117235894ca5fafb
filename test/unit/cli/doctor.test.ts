import { describe, expect, it } from "vitest";
import { type Finding, stageOf, withinLines } from "../../../src/cli/doctor/finding.ts";
import { judgePresence, nextSlots } from "../../../src/cli/doctor/installation-checks.ts";
import { testPolicy } from "../../support/policies.ts";

describe("the step to a service that failed", () => {
  it.each([
    ["ENOTFOUND", "DNS"],
    ["EAI_AGAIN", "DNS"],
    ["ETIMEDOUT (lookup)", "DNS"],
    ["ECONNREFUSED", "TCP"],
    ["EHOSTUNREACH", "TCP"],
    ["ETIMEDOUT (connect)", "TCP"],
    ["ETIMEDOUT (secureConnect)", "TLS"],
    ["DEPTH_ZERO_SELF_SIGNED_CERT", "TLS"],
    ["ERR_TLS_CERT_ALTNAME_INVALID", "TLS"],
    ["TLS_FILES", "TLS"],
  ])("is read from the code %s", (code, stage) => {
    expect(stageOf(code)).toBe(stage);
  });
});

describe("who is alive", () => {
  const levels = (schedulers: number, workers: number, hasRun = false) =>
    judgePresence({ schedulers, workers }, hasRun).map(({ level }) => level);

  it("is a problem when a role is missing, and a warning where none ever ran", () => {
    expect(levels(2, 2)).toEqual(["ok"]);
    expect(levels(1, 0)).toEqual(["problem"]);
    expect(levels(0, 3)).toEqual(["problem"]);
    expect(levels(0, 0)).toEqual(["warning"]);
    expect(levels(0, 0, true)).toEqual(["problem"]);
  });
});

it("the next slot of a policy is the first that no holiday closes", () => {
  const schedule = { kind: "every", everyMs: 3_600_000, spreadMs: 0 } as const;
  const closed = { blackouts: [], holidays: ["2026-12-25"] };
  const [policy, nowMs] = [testPolicy({ schedule, closed, timezone: "UTC" }), Date.parse("2026-12-25T06:30:00Z")];
  expect(nextSlots({ policies: [policy] } as never, nowMs)).toEqual([
    { policy: policy.name, slotMs: Date.parse("2026-12-26T00:00:00Z") },
  ]);
});

describe("many findings of one kind", () => {
  it("shows the twenty worst, and the rest as one line, as bad as the worst of them", () => {
    const findings = (...levels: Finding["level"][]) =>
      levels.map((level, index): Finding => ({ check: "masks", subject: `p${index}`, level, what: "so" }));
    const [fine, wrong] = [Array<"ok">(21).fill("ok"), Array<"problem">(22).fill("problem")];
    const shown = withinLines(findings(...fine, "problem", "warning"));
    expect(shown.slice(0, 3).map(({ subject }) => subject)).toEqual(["p21", "p22", "p0"]);
    expect(shown.at(-1)).toEqual({ check: "masks", subject: "", level: "ok", what: "and 3 more like these" });
    expect(withinLines(findings(...wrong, "ok")).at(-1)).toMatchObject({ level: "problem" });
    const cured = (cure: string) => ({ ...findings("warning")[0], cure }) as Finding;
    const [same, others] = [Array(22).fill(cured("pay")), ["a", "b", "c"].map(cured)];
    expect(withinLines(same).at(-1)?.cure).toBe("pay");
    expect(withinLines([...same, ...others]).at(-1)?.cure).toBe(
      "mend these first: the next look shows those that are left",
    );
    const few = findings(...fine.slice(2), "problem");
    expect(withinLines(few)).toEqual(few);
  });
});
