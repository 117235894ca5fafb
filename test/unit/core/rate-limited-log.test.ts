import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { createRateLimitedLog } from "../../../src/core/event-log.ts";

describe("a sparing log", () => {
  it("repeats a warning per subject once a minute, with the number left out", () => {
    let nowMs = 0;
    const lines: unknown[] = [];
    const log = { info: () => {}, warn: (...line: unknown[]) => lines.push(line), error: () => {} };
    const sparing = createRateLimitedLog(log, { ...systemClock, monotonicMs: () => nowMs }, "queue");
    for (const seconds of [0, 1, 30, 59, 60, 61]) {
      nowMs = seconds * 1_000;
      sparing.warn("queue.unreachable", { queue: "a" });
    }
    sparing.warn("queue.unreachable", { queue: "b" });
    expect(lines).toEqual([
      ["queue.unreachable", { queue: "a" }],
      ["queue.unreachable", { queue: "a", leftOut: 3 }],
      ["queue.unreachable", { queue: "b" }],
    ]);
  });
});
