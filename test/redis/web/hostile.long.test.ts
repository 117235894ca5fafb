import { expect, it } from "vitest";
import { surviveHostile } from "../../support/hostile-requests.ts";

it("survives 2,000 hostile requests: no failure, leak, or change without a record", async () => {
  const { statuses, changed } = await surviveHostile(2_000);
  expect([...statuses.values()].reduce((sum, count) => sum + count)).toBe(2_000);
  expect(changed).toBeGreaterThan(10);
});
