import { describe, expect, it } from "vitest";
import { errorText } from "../../../src/core/errors.ts";

describe("what an error is called", () => {
  it("is its message, but for a library that speaks of its own options", () => {
    const gaveUp = new Error('Reached the max retries per request limit (which is 1). Refer to "maxRetriesPerRequest"');
    expect(errorText(Object.assign(gaveUp, { name: "MaxRetriesPerRequestError" }))).toBe("Redis is out of reach");
    expect(errorText(new Error("OOM command not allowed"))).toBe("OOM command not allowed");
    expect(errorText("a text")).toBe("a text");
  });
});
