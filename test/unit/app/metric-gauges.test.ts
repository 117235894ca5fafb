import { expect, it } from "vitest";
import { createGaugeSource, type GaugeParts } from "../../../src/app/metric-gauges.ts";
import { Metrics } from "../../../src/ops/metrics.ts";
import { setOf } from "../../support/kept-set.ts";
import { parseMetrics, sumOf } from "../../support/metrics-text.ts";
import { TestLog } from "../../support/test-log.ts";

it("a replica that cannot reach Redis says that it may not trust it", async () => {
  const metrics = new Metrics();
  // It was safe at its last check, and nothing has checked since.
  const guard = { isUp: () => false, isSafe: () => true, facts: undefined, foreignOwners: 0 };
  const services = { client: () => undefined };
  const parts = { guard, current: { set: setOf([]) }, services, atWork: () => [], log: new TestLog() };
  createGaugeSource(metrics, parts as unknown as GaugeParts).own();
  expect(sumOf(parseMetrics((await metrics.scrape()).text), "syncline_redis_safe", {})).toBe(0);
});

it.each([
  ["a record of version 9", 1],
  ["Connection is closed.", 0],
])("shared gauges that cannot be read are told as a mistake, once: %s", async (message, told) => {
  const [metrics, log] = [new Metrics(), new TestLog()];
  const fails = async () => {
    throw new Error(message);
  };
  const guard = { isUp: () => true, isSafe: () => true, facts: undefined, foreignOwners: 0 };
  const store = { key: String, redis: new Proxy({}, { get: () => fails }) };
  const current = { set: setOf([]) };
  const parts = { guard, current, store, log, pauses: fails, services: {}, sinks: {}, atWork: () => [] };
  metrics.readFrom(createGaugeSource(metrics, parts as unknown as GaugeParts));
  for (let round = 0; round < 2; round += 1) await metrics.scrape();
  expect(log.named("bug.caught")).toHaveLength(told);
  expect(log.named("metrics.incomplete")).toMatchObject([{ level: "warn", message }]);
});
