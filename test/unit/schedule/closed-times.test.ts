import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ClosedTimes } from "../../../src/config/policy-set.ts";
import { createClosedTimes } from "../../../src/schedule/closed-times.ts";
import { testPolicy } from "../../support/policies.ts";

const hour = 3_600_000;
const closedTimes = (closed: Partial<ClosedTimes>, timezone: string) =>
  createClosedTimes(testPolicy({ timezone, closed: { blackouts: [], holidays: [], ...closed } }));
const ask = (closed: Partial<ClosedTimes>, instant: string, timezone = "Europe/Vienna") =>
  closedTimes(closed, timezone)(Date.parse(instant));

describe("closed times", () => {
  const friday = { blackouts: [{ cron: "0 22 * * 5", durationMs: 8 * hour }] };

  it("opens a blackout at its cron instant in the zone, closes it after its duration", () => {
    expect(ask(friday, "2026-11-20T20:59:59Z")).toBeUndefined();
    expect(ask(friday, "2026-11-20T21:00:00Z")).toEqual({
      reason: "blackout",
      note: "0 22 * * 5 for 8h",
      untilMs: Date.parse("2026-11-21T05:00:00Z"),
    });
    expect(ask(friday, "2026-11-21T04:59:59Z")).toMatchObject({ reason: "blackout" });
    expect(ask(friday, "2026-11-21T05:00:00Z")).toBeUndefined();
  });

  it("lets a window that is longer than its own interval never close", () => {
    const always = { blackouts: [{ cron: "0 * * * *", durationMs: 2 * hour }] };
    expect(ask(always, "2026-11-20T20:59:59Z")).toMatchObject({ reason: "blackout" });
    expect(ask(always, "2026-11-20T21:00:00Z")).toMatchObject({ reason: "blackout" });
  });

  it("counts elapsed time over a clock change", () => {
    // 2027-03-28: 02:00 CET is 03:00 CEST, so eight hours after 22:00 it is 07:00.
    const saturday = { blackouts: [{ cron: "0 22 * * 6", durationMs: 8 * hour }] };
    expect(ask(saturday, "2027-03-28T04:59:59Z")).toMatchObject({ reason: "blackout" });
    expect(ask(saturday, "2027-03-28T05:00:00Z")).toBeUndefined();
  });

  it("takes a holiday by the date in the zone", () => {
    const christmas = { holidays: ["2026-12-25"] };
    expect(ask(christmas, "2026-12-24T22:59:59Z")).toBeUndefined();
    expect(ask(christmas, "2026-12-24T23:00:00Z")).toEqual({
      reason: "holiday",
      note: "2026-12-25",
      untilMs: Date.parse("2026-12-25T23:00:00Z"),
    });
    expect(ask(christmas, "2026-12-25T22:59:59Z")).toMatchObject({ reason: "holiday" });
    expect(ask(christmas, "2026-12-25T23:00:00Z")).toBeUndefined();
    expect(ask(christmas, "2026-12-24T11:00:00Z", "Pacific/Auckland")).toMatchObject({ reason: "holiday" });
  });

  it("answers the same in any order of questions", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 200_000 }), { maxLength: 30 }),
        fc.integer({ min: 1, max: 3_000 }),
        (minutes, openMinutes) => {
          const blackouts = [{ cron: "0 6 * * *", durationMs: openMinutes * 60_000 }];
          const asked = closedTimes({ blackouts }, "UTC");
          for (const minute of minutes) {
            const since = (minute + 18 * 60) % 1_440;
            // The window that opened last, or, when it stays open over a day, an older one; none
            // opens before 1970.
            const isOpen = since < openMinutes || openMinutes > 1_440;
            if (minute > 5_000) expect(asked(minute * 60_000) !== undefined).toBe(isOpen);
          }
        },
      ),
    );
  });
});
