// The hour that the page of the next 24 hours is asked for, on days with a clock change.
import { expect, it } from "vitest";
import { instantAt } from "../../../src/web/pages/next-day.ts";

/** When clocks show it next, seen from an instant. */
function seenFrom(now: string, clock: string, timezone = "Europe/Berlin"): string | undefined {
  const nowMs = Date.parse(now);
  const fromMs = Math.floor(nowMs / 3_600_000) * 3_600_000;
  const ms = instantAt({ range: { fromMs, toMs: nowMs + 86_400_000 }, timezone, nowMs }, clock);
  return ms === undefined ? undefined : new Date(ms).toISOString().slice(0, 16);
}

it("comes a day later by the clocks, also where the day has 25 or 26 hours", () => {
  expect(seenFrom("2026-10-24T12:37Z", "14:30")).toBe("2026-10-25T13:30");
  expect(seenFrom("2026-10-24T12:37Z", "14:45")).toBe("2026-10-24T12:45");
  expect(seenFrom("2026-10-24T12:50Z", "14:45")).toBe("2026-10-25T13:45");
  expect(seenFrom("2026-10-24T22:10Z", "02:30")).toBe("2026-10-25T00:30");
  expect(seenFrom("2026-10-24T12:37Z", "14:30", "Antarctica/Troll")).toBe("2026-10-25T14:30");
});

it("does not come where clocks skip it, however near the next one is", () => {
  expect(seenFrom("2026-03-28T13:37Z", "02:30")).toBeUndefined();
  expect(seenFrom("2026-03-28T23:10Z", "02:30")).toBeUndefined();
  expect(seenFrom("2026-03-28T13:37Z", "14:30")).toBe("2026-03-29T12:30");
});
