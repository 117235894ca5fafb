// The totals that end a CI run are the true ones, and green means that Redis was really there.
import { describe, expect, it } from "vitest";
import { countTests, describeFailures } from "../../../scripts/test-totals.mjs";

const file = (name: string, ...statuses: string[]) => ({
  name: `/clone/test/${name}`,
  status: statuses.includes("failed") ? "failed" : "passed",
  assertionResults: statuses.map((status) => ({ status })),
});
const redis = file("redis/smoke.test.ts", "passed");

describe("countTests", () => {
  it("sums over all files", () => {
    const testResults = [redis, file("unit/a.test.ts", "passed", "failed", "skipped", "pending", "todo")];
    expect(countTests({ success: false, testResults })).toEqual({ passed: 2, failed: 1, skipped: 3, complaints: [] });
  });

  it("counts a file that could not be loaded as one failed test", () => {
    const testResults = [redis, { ...file("unit/a.test.ts"), status: "failed" }];
    expect(countTests({ success: false, testResults })).toEqual({ passed: 1, failed: 1, skipped: 0, complaints: [] });
  });

  it("counts a run without any test as one failed test", () => {
    expect(countTests({ success: false, testResults: [] })).toMatchObject({ passed: 0, failed: 1, skipped: 0 });
  });

  it("complains when nothing ran against Redis", () => {
    const testResults = [file("unit/a.test.ts", "passed")];
    expect(countTests({ success: true, testResults }).complaints).toEqual(["no test ran against Redis"]);
  });

  it("complains when a test against Redis was skipped", () => {
    const testResults = [file("redis/smoke.test.ts", "passed", "skipped")];
    expect(countTests({ success: true, testResults }).complaints).toEqual(["1 tests against Redis were skipped"]);
  });

  it("complains when the run failed although no test did", () => {
    expect(countTests({ success: false, testResults: [redis] }).complaints).toEqual([
      "the run failed outside of its tests",
    ]);
  });
});

it("names what failed, and why, at the end of the log", () => {
  const failed = { status: "failed", fullName: "a queue is read", failureMessages: ["Error: no\n    at line 1"] };
  const unloaded = { name: "/clone/b.test.ts", status: "failed", message: "SyntaxError: what", assertionResults: [] };
  const report = { testResults: [redis, { ...file("a.test.ts"), assertionResults: [failed] }, unloaded] };
  expect(describeFailures(report)).toEqual([
    "/clone/test/a.test.ts: a queue is read: Error: no at line 1",
    "/clone/b.test.ts: SyntaxError: what",
  ]);
});
