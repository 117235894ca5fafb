import { expect, it } from "vitest";
import { createGaugeSource, type GaugeParts } from "../../../src/app/metric-gauges.ts";
import { Metrics } from "../../../src/ops/metrics.ts";
import { setOf } from "../../support/kept-set.ts";
import { parseMetrics, sumOf } from "../../support/metrics-text.ts";

it("a replica that cannot reach Redis says that it may not trust it", async () => {
  const metrics = new Metrics();
  // It was safe at its last check, and nothing has checked since.
  const guard = { isUp: () => false, isSafe: () => true, facts: undefined, foreignOwners: 0 };
  const parts = { guard, current: { set: setOf([]) }, services: { client: () => undefined }, atWork: () => [] };
  createGaugeSource(metrics, parts as unknown as GaugeParts).own();
  expect(sumOf(parseMetrics((await metrics.scrape()).text), "syncline_redis_safe", {})).toBe(0);
});
