import { describe, expect, it } from "vitest";
import { type Finding, stageOf, withinLines } from "../../../src/cli/doctor/finding.ts";
import { judgePresence } from "../../../src/cli/doctor/installation-checks.ts";

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

describe("many findings of one kind", () => {
  it("shows twenty, and the rest as one line, as bad as the worst of them", () => {
    const findings = Array.from(
      { length: 23 },
      (_, index): Finding => ({
        check: "masks",
        subject: `p${index}`,
        level: index === 22 ? "problem" : "ok",
        what: "so",
      }),
    );
    const shown = withinLines(findings);
    expect(shown).toHaveLength(21);
    expect(shown.at(-1)).toEqual({ check: "masks", subject: "", level: "problem", what: "and 3 more like these" });
    expect(withinLines(findings.slice(0, 20))).toHaveLength(20);
  });
});
