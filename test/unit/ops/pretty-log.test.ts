import { describe, expect, it } from "vitest";
import { createLogger } from "../../../src/ops/logger.ts";
import { toPrettyLine } from "../../../src/ops/pretty-log.ts";

/** What the log shows of one event, without the time. */
function shown(level: "info" | "warn" | "error", event: string, fields = {}, colours = false): string {
  const lines: string[] = [];
  createLogger("info", (line) => lines.push(toPrettyLine(line, colours)))[level](event, fields);
  expect(lines[0]).toMatch(/\d\d:\d\d:\d\dZ\S* {2}\S/);
  return lines[0]?.replace(/^.*?Z\S* {2}/, "") ?? "";
}

describe("the log for people", () => {
  const policy = "contracts";

  it("tells the life of a run in words", () => {
    const slot = { policy, slot: "2026-11-22T02:30:00.000Z", covers: 2, delayMs: 90_400 };
    expect(shown("info", "slot.queued", slot)).toBe(
      "due               contracts  slot 2026-11-22 02:30:00Z, 90s late, for 2 older slots as well",
    );
    const run = { policy, taskId: "contracts__run__4__1", kind: "run", target: "4" };
    expect(shown("info", "task.started", run)).toBe("started           contracts  run of sync job 4");
    expect(shown("warn", "task.in-doubt", { ...run, kind: "answer-lost" })).toBe(
      "in doubt          contracts  no good answer to the start of sync job 4: it may have happened",
    );
    const end = { ...run, status: "conflicts", durationMs: 2_345, detail: "1 new conflict" };
    expect(shown("warn", "task.finished", end)).toBe(
      "conflicts         contracts  run of sync job 4 in 2.3 s: 1 new conflict",
    );
  });

  it("shows any other event by its name and fields, and leaves no text out", () => {
    const fields = { service: "main", forMs: 1_500, until: "2026-11-22T02:30:00Z", names: ["a", "b"], note: null };
    expect(shown("warn", "service.throttled", fields)).toBe(
      "service throttled  service main, for 2s, until 2026-11-22 02:30:00Z, names a b",
    );
    expect(toPrettyLine("no event", true)).toBe("no event");
  });

  it("colours by level, and a good end green", () => {
    expect(shown("error", "breaker.opened", {}, true)).toContain("\u001b[31mbreaker opened");
    expect(shown("warn", "tick.renewed", {}, true)).toContain("\u001b[33mtick renewed");
    expect(shown("info", "task.finished", { policy, status: "succeeded" }, true)).toContain("\u001b[32msucceeded");
  });
});
