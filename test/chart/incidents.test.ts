// Incidents from their beginning to their end, minute by minute, with 200 policies a release and
// many releases scraped side by side: one cause is one page, in time, with its runbook, and it
// ends. promtool judges the rules as the chart renders them; no real time passes.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { findPromtool } from "../../scripts/promtool.mjs";
import { chartFolder } from "../support/chart/helm.ts";
import { type Conditions, playCourse, well } from "../support/chart/incident-model.ts";
import { playRules, type Rule, renderRules, toValues, writeRules } from "../support/chart/play-rules.ts";

const minutes = 138;

/** When an alert fires first and last, in minutes. */
interface Told {
  readonly alert: string;
  readonly severity: "critical" | "warning";
  readonly service?: string;
  readonly from: number;
  readonly to: number;
}

interface Incident {
  readonly at: (minute: number) => Partial<Conditions>;
  readonly isGone?: true;
  readonly told: readonly Told[];
}

const during =
  (from: number, to: number, conditions: Partial<Conditions>) =>
  (minute: number): Partial<Conditions> =>
    minute >= from && minute < to ? conditions : {};
const critical = (alert: string, from: number, to: number, service?: string): Told => ({
  alert,
  severity: "critical",
  from,
  to,
  ...(service === undefined ? {} : { service }),
});
const warning = (alert: string, from: number, to: number, service?: string): Told => ({
  ...critical(alert, from, to, service),
  severity: "warning",
});

/**
 * Each is a release of its own. What an outage leaves behind is a warning afterwards, never a
 * second page.
 */
const incidents: Readonly<Record<string, Incident>> = {
  "all is well": { at: () => ({}), told: [] },
  "an update, and a run that fails once": {
    at: (minute) => ({ pods: minute < 70 ? ["a", "b"] : ["b", "c"], failing: minute === 66 ? ["often-1"] : [] }),
    told: [],
  },
  "both pods are gone": {
    isGone: true,
    at: (minute) => ({ pods: minute < 60 ? ["a", "b"] : minute < 75 ? [] : ["c", "d"] }),
    told: [critical("SynclineDown", 62, 74), warning("SynclineSlotMissed", 90, 134)],
  },
  "slots are missed in a gap that is too short for a page": {
    isGone: true,
    at: (minute) => ({ pods: minute < 60 ? ["a", "b"] : minute < 62 ? [] : ["c", "d"] }),
    told: [critical("SynclineSlotMissed", 68, 121)],
  },
  "one service of two is down for ten minutes": {
    // In between a scrape comes without what stands in Redis: that is no end, and no second page.
    at: (minute) => ({ main: minute >= 62 && minute < 72 ? "down" : "well", isSlow: minute === 65 || minute === 69 }),
    told: [critical("SynclineBreakerOpen", 67, 71, "main"), warning("SynclineStartUnknown", 87, 129, "main")],
  },
  "the token is wrong": {
    at: during(62, 82, { main: "denied" }),
    told: [critical("SynclineAuthFailing", 64, 89, "main")],
  },
  "a service throttles for long": {
    at: during(62, 92, { main: "throttles" }),
    told: [warning("SynclineServiceThrottled", 72, 94, "main")],
  },
  "no scheduler is there": {
    at: during(62, 77, { roles: ["worker"] }),
    told: [critical("SynclineNoScheduler", 64, 76), warning("SynclineSlotMissed", 92, 136)],
  },
  "no worker is there": {
    at: during(62, 77, { roles: ["scheduler"] }),
    told: [critical("SynclineNoWorker", 65, 76)],
  },
  "Redis is gone": {
    at: during(62, 72, { redis: "gone" }),
    told: [critical("SynclineRedisDown", 63, 71), warning("SynclineSlotMissed", 87, 131)],
  },
  "a nightly run fails": {
    at: (minute) => ({ failing: minute < 61 ? ["nightly-3"] : [], byHand: minute === 120 ? ["nightly-3"] : [] }),
    told: [warning("SynclinePolicyFailing", 75, 119, "main")],
  },
  "runs leave conflicts": {
    at: during(50, 70, { conflicts: ["often-7", "often-8"] }),
    told: [warning("SynclineConflicts", 53, 72, "main")],
  },
  "a sink is stuck": {
    at: during(50, 90, { isSinkStuck: true }),
    told: [warning("SynclineSinkStuck", 67, 89)],
  },
  "the policy files are wrong": {
    at: during(50, 70, { isRejected: true }),
    told: [warning("SynclineConfigRejected", 55, 69)],
  },
};

let series: Record<string, string>;
let files: string[];

beforeAll(async () => {
  await findPromtool();
  // Those whose pods go have rules of their own, as in a cluster; for the others the file as it is,
  // which is quicker, looks at all at once.
  const own = Object.entries(incidents).flatMap(([, { isGone }], index) => (isGone === true ? [`r${index}`] : []));
  // None has the role web.
  const rendered = await Promise.all(own.map((release) => renderRules(release, {}, { enabled: false })));
  const others = Object.keys(incidents).flatMap((_, index) =>
    own.includes(`r${index}`) ? [] : [`r${index}-syncline`],
  );
  const plain: { groups: { rules: Rule[] }[] } = parse(
    readFileSync(join(chartFolder, "files/alerts.yaml"), "utf8").replaceAll('job=~".+"', `job=~"${others.join("|")}"`),
  );
  const rules = plain.groups.flatMap((group) => group.rules);
  files = [...rendered, plain.groups].map(writeRules);
  const asked = rules.flatMap(({ expr }) => [...expr.matchAll(/\bsyncline_\w+/g)].map(([name]) => name));
  const names = new Set(asked.map((name) => name.replace(/_bucket$/, "")));
  series = {};
  for (const [index, { at }] of Object.values(incidents).entries()) {
    const played = await playCourse(minutes, names, (minute) => ({ ...well, ...at(minute) }));
    for (const [name, values] of played)
      series[name.replace("{", `{namespace="sync",job="r${index}-syncline",`)] = toValues(values, minutes);
  }
});

describe("incidents", () => {
  it("each fire once, in time, and resolve; a healthy release fires none", async () => {
    const firing = 'ALERTS{alertstate="firing"}';
    const by = "by (job, alertname, severity, service)";
    const when = `timestamp(${firing})[${minutes}m:1m]`;
    const told = Object.values(incidents).flatMap(({ told: all }, index) =>
      all.map((one) => ({ job: `r${index}-syncline`, ...one })),
    );
    const samples = (value: (one: Told) => number) =>
      told.map(({ job, alert, severity, service, ...rest }) => ({
        labels: `{alertname="${alert}",job="${job}",severity="${severity}"${service === undefined ? "" : `,service="${service}"`}}`,
        value: value({ alert, severity, ...rest }),
      }));
    const expected = [
      { expr: `min ${by} (min_over_time(${when})) / 60`, atMinute: minutes, samples: samples(({ from }) => from) },
      { expr: `max ${by} (max_over_time(${when})) / 60`, atMinute: minutes, samples: samples(({ to }) => to) },
      // Without a gap: nothing resolves and fires again.
      {
        expr: `sum ${by} (count_over_time(${firing}[${minutes}m]))`,
        atMinute: minutes,
        samples: samples(({ from, to }) => to - from + 1),
      },
    ];
    expect(await playRules(files, [{ name: "incidents", series, expect: expected }])).toContain("SUCCESS");
  });
});
