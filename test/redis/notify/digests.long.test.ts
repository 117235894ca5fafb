// A digest of 5,000 policies with 40 labels: one message, right to the number against the outcomes
// of the history, and soon made.
import { expect, it } from "vitest";
import { dayAfter, localDate } from "../../../src/core/instant.ts";
import { type Outcome, outcomeStatuses } from "../../../src/model/outcome.ts";
import { digestNotice, readDigest } from "../../../src/queries/digest.ts";
import { findOutcomes } from "../../../src/queries/outcomes.ts";
import { plainEnd } from "../../../src/queries/plain-troubles.ts";
import { History } from "../../../src/store/history.ts";
import { redisTimeMs } from "../../../src/store/redis.ts";
import { setOf } from "../../support/kept-set.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { testPolicy } from "../../support/policies.ts";
import { redisForTest, storeForTest } from "../../support/redis.ts";

const target = redisForTest();
const store = await storeForTest(target);
const policiesMax = 5_000;
const teams = 40;
const good = ["succeeded", "accepted"];
const besides = ["skipped", "missed"];

const policies = Array.from({ length: policiesMax }, (_, index) =>
  testPolicy({ name: `p-${index}`, labels: { team: `t-${index % teams}` }, schedule: undefined }),
);

it("a digest of 5,000 policies has the numbers of the history, in 5 s of CPU", async () => {
  const history = new History(store, { timezoneOf: () => "UTC" });
  const nowMs = await redisTimeMs(store);
  const today = localDate(nowMs, "UTC");
  // Of each policy one task of today and one of yesterday; of some, one that is too old to count.
  const days = [today, dayAfter(today, -1), dayAfter(today, -2)];
  const outcomes = policies.flatMap(({ name }, index) =>
    days.slice(0, index % 10 === 0 ? 3 : 2).map((day, age): Outcome => {
      const slot = `${day}T00:00:00.000Z`;
      const status = outcomeStatuses[(index * 7 + age * 3) % outcomeStatuses.length] ?? "succeeded";
      const taskId = `${name}__run__42__${Date.parse(slot) / 1_000}`;
      const finishedAt = new Date(nowMs - age * 1_000).toISOString();
      return testOutcome({ taskId, policy: name, slot, finishedAt, status, reason: "completed" });
    }),
  );
  for (let from = 0; from < outcomes.length; from += 500)
    await Promise.all(outcomes.slice(from, from + 500).map((outcome) => history.record(outcome)));

  const found = await findOutcomes(history, {
    ...{ policies: undefined, filter: {}, limit: 20_000 },
    span: { fromMs: Number.NEGATIVE_INFINITY, toMs: Number.POSITIVE_INFINITY },
  });
  const counted = found.outcomes.filter(({ slot }) => slot >= (days[1] ?? ""));
  expect(counted).toHaveLength(2 * policiesMax);
  const count = (some: readonly Outcome[], isMeant: (status: string) => boolean) =>
    some.filter(({ status }) => isMeant(status)).length;
  const isGood = (status: string) => good.includes(status);
  const isBad = (status: string) => !good.includes(status) && !besides.includes(status);

  const before = process.cpuUsage();
  const set = setOf(policies);
  const question = { timezone: "UTC", label: "", by: "team", sinceMs: nowMs - 86_400_000, nowMs };
  const digest = await readDigest({ set, store, target }, question);
  const { user, system } = process.cpuUsage(before);
  expect(user + system).toBeLessThan(5_000_000);

  const goods = count(counted, isGood);
  const bads = count(counted, isBad);
  expect(digest.detail).toContain(`5000 policies: `);
  expect(digest.detail).toContain(` ${goods} good, ${bads} bad (`);
  for (const word of new Set(outcomeStatuses.filter(isBad).map(plainEnd)))
    expect(digest.detail).toContain(`${count(counted, (one) => isBad(one) && plainEnd(one) === word)} ${word}`);
  expect(digest.detail).toContain(`${count(counted, (one) => one === "missed")} missed`);
  const needed = digest.lines.filter((line) => /^team=t-\d+: 125 policies /.test(line));
  expect(needed).toHaveLength(teams);
  for (const line of needed) {
    const team = Number(/t-(\d+)/.exec(line)?.[1]);
    const own = counted.filter(({ policy }) => Number(policy.slice(2)) % teams === team);
    expect(line).toContain(` ${count(own, isGood)} good, ${count(own, isBad)} bad`);
  }
  expect(Object.values(digest.counts).reduce((sum, number) => sum + number, 0)).toBe(policiesMax);
  const notice = digestNotice(digest, { name: "all", key: "1", nowMs, dueMs: nowMs, timezone: "UTC" });
  expect(JSON.stringify(notice.data).length).toBeLessThan(16 * 1_024);
});
