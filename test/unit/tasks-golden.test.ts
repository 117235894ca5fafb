import { describe, expect, it } from "vitest";
import { feedId } from "../../src/model/feed.ts";
import { parseTask, taskId } from "../../src/model/task.ts";

// What stands in Redis must mean the same to every replica and version: these values never change.
describe("names in Redis", () => {
  it("names a scheduled task by policy, kind, target and slot", () => {
    const identity = {
      policy: "contracts-nightly",
      kind: "run",
      target: "42",
      slotMs: 1_795_228_200_000,
      origin: "schedule",
    } as const;
    expect(taskId(identity)).toBe("contracts-nightly__run__42__1795228200");
    expect(taskId({ ...identity, origin: "manual", slotMs: 1_795_228_200_123 })).toBe(
      "contracts-nightly__run__42__m1795228200123",
    );
  });

  it("names a feed by its list and a hash of service, repository and list", () => {
    expect(feedId({ service: "main", repository: "HR", list: "activities" })).toBe("activities-eeba698edca733cc");
    expect(feedId({ service: "main", repository: null, list: "activities" })).toBe("activities-9a2e18ec558e3ed8");
  });

  it("reads a task of version 1 and refuses anything else", () => {
    const task = {
      v: 1,
      id: "contracts-nightly__run__42__1795228200",
      kind: "run",
      policy: "contracts-nightly",
      service: "main",
      repository: null,
      target: "42",
      slotMs: 1_795_228_200_000,
      origin: "schedule",
      covers: [],
      startByMs: 1_795_231_800_000,
    };
    expect(parseTask(task)).toEqual(task);
    expect(() => parseTask({ ...task, v: 3 })).toThrow();
    expect(() => parseTask({ ...task, kind: "erase" })).toThrow();
    expect(() => parseTask({ ...task, token: "secret" })).toThrow();
  });
});
