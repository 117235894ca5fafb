import { describe, expect, it } from "vitest";
import { readOutcomeLimits } from "../../../src/config/settings.ts";
import { UsageError } from "../../../src/core/errors.ts";

describe("how many outcomes are kept", () => {
  it("is a thousand a policy and 31 days, unless the environment says otherwise", () => {
    expect(readOutcomeLimits({})).toEqual({ count: 1_000, forMs: 31 * 86_400_000 });
    expect(readOutcomeLimits({ SYNCLINE_OUTCOMES_KEPT: "", SYNCLINE_OUTCOMES_FOR: "" }).count).toBe(1_000);
    expect(readOutcomeLimits({ SYNCLINE_OUTCOMES_KEPT: "20000", SYNCLINE_OUTCOMES_FOR: "72h" })).toEqual({
      count: 20_000,
      forMs: 3 * 86_400_000,
    });
  });

  it.each([
    ["SYNCLINE_OUTCOMES_KEPT", ["99", "100001", "1e4", "-1", "1,000", "many"]],
    ["SYNCLINE_OUTCOMES_FOR", ["31", "23h", "401d", "a month", "0d"]],
  ])("is refused by name, with what would do: %s", (name, wrong) => {
    for (const text of wrong) {
      const read = () => readOutcomeLimits({ [name]: text });
      expect(read).toThrow(UsageError);
      expect(read).toThrow(`${name} is "${text}"`);
    }
  });
});
