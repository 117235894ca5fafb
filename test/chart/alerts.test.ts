// The alerts, as Prometheus itself judges them: promtool checks the rules and plays a course of
// events for and against each.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { findPromtool } from "../../scripts/promtool.mjs";
import { type AlertCase, alertCases, type Course } from "../support/alert-cases.ts";
import { chartFolder, type Values } from "../support/chart/helm.ts";
import {
  type Played,
  playAlert,
  playRules,
  promtool,
  type Rule,
  renderRules,
  writeRules,
} from "../support/chart/play-rules.ts";

// On a fresh machine it is fetched first.
beforeAll(async () => void (await findPromtool()), 600_000);

const file = join(chartFolder, "files/alerts.yaml");
const rules: Rule[] = parse(readFileSync(file, "utf8")).groups.flatMap((group: { rules: Rule[] }) => group.rules);
/** The release that the cases are about: its job is `s`, its namespace `a`. */
const ofCases = { namespace: "a", job: "s" };

const heartbeat = (role: string) => `syncline_heartbeat_timestamp_seconds{namespace="a",job="s",role="${role}"}`;
const alive = {
  'syncline_build_info{namespace="a",job="s",pod="p"}': "1x200",
  [heartbeat("scheduler")]: "0+60x200",
  [heartbeat("worker")]: "0+60x200",
};

function toTest(alert: string, { series, atMinute }: Course, isFiring: boolean, labels = ""): Played {
  const selector = `alertname="${alert}",alertstate="firing"${labels === "" ? "" : `,${labels}`}`;
  const samples = isFiring ? [{ labels: "{}", value: 1 }] : [];
  // A release that lives: without it, SynclineDown would hold back what is to be seen.
  const isBare = /^Syncline(Down|No)/.test(alert);
  return {
    name: alert,
    series: { ...(isBare ? {} : alive), ...series },
    expect: [{ expr: `count(ALERTS{job="s",${selector}})`, atMinute, samples }],
  };
}

const fires = ([alert, { fires: course }]: [string, AlertCase]) => toTest(alert, course, true, course.labels);
const staysSilent = ([alert, { silent }]: [string, AlertCase]) => toTest(alert, silent, false);

/** Plays them side by side, each as a release of its own, by the file as it is. */
async function play(tests: readonly Played[]): Promise<string> {
  const own = tests.map(({ series, expect: wanted }, index) => {
    const inJob = (text: string) => text.replaceAll('job="s"', `job="s${index}"`);
    return {
      series: Object.entries(series).map(([name, values]) => [inJob(name), values] as const),
      expect: wanted.map((one) => ({ ...one, expr: inJob(one.expr) })),
    };
  });
  const all = {
    name: "side by side",
    series: Object.fromEntries(own.flatMap(({ series }) => series)),
    expect: own.flatMap((one) => one.expect),
  };
  return playRules([file], [all]);
}

describe("the alerts", () => {
  it("are rules that Prometheus takes, as they are and as the chart renders them", async () => {
    expect(await promtool("check", "rules", file)).toContain(`SUCCESS: ${rules.length} rules found`);
    const rendered = writeRules(await renderRules("demo"));
    expect(await promtool("check", "rules", rendered)).toContain(`SUCCESS: ${rules.length} rules found`);
  });

  it("have each a course that fires and one that does not", () => {
    const names = new Set(rules.flatMap(({ alert }) => alert ?? []));
    expect(Object.keys(alertCases).toSorted()).toEqual([...names].toSorted());
  });

  it("select the series of one release, by the names its Prometheus uses", async () => {
    const expressions = async (values = {}) =>
      (await renderRules("demo", values)).flatMap((group) =>
        group.rules.flatMap(({ expr, annotations = {} }) => [expr, ...Object.values(annotations)]),
      );
    const selectors = (all: readonly string[]) =>
      all.flatMap((text) =>
        [...text.matchAll(/(?<!:)\b(?:syncline_\w+|ALERTS)(\{[^}]*\})?/g)].map(([, braces]) => braces),
      );
    expect(selectors(await expressions())).not.toEqual([]);
    for (const braces of selectors(await expressions()))
      expect(braces).toMatch(/^\{namespace="sync",job="demo-syncline"/);
    for (const braces of selectors(await expressions(ofCases))) expect(braces).toMatch(/^\{namespace="a",job="s"/);
  });

  it("miss no role web where the chart runs none", async () => {
    const names = async (web?: Values) =>
      (await renderRules("demo", {}, web)).flatMap(({ rules: some }) => some.flatMap(({ alert }) => alert ?? []));
    expect(new Set(await names()).difference(new Set(await names({ enabled: false })))).toEqual(
      new Set(["SynclineWebDown"]),
    );
  });

  it("miss the role web of the chart also where it never came up", async () => {
    const never = toTest("SynclineWebDown", { series: {}, atMinute: 14 }, true);
    expect(await playRules([writeRules(await renderRules("demo", ofCases))], [never])).toContain("SUCCESS");
  });

  it("lead to their runbooks, wherever these are", async () => {
    const [group] = await renderRules("demo", { runbookBaseUrl: "https://wiki.example.com/syncline/" });
    const urls = group?.rules.flatMap(({ annotations }) => annotations?.["runbook_url"] ?? []) ?? [];
    expect(urls.length).toBeGreaterThan(20);
    for (const url of urls) expect(url).toMatch(/^https:\/\/wiki\.example\.com\/syncline\/[a-z-]+\.md$/);
  });

  it("fire when they should", async () => {
    expect(await play(Object.entries(alertCases).map(fires))).toContain("SUCCESS");
  });

  it("stay silent when they should", async () => {
    expect(await play(Object.entries(alertCases).map(staysSilent))).toContain("SUCCESS");
  });

  it("tell also of notices that are lost before they reach a sink", async () => {
    const series = { ...alive, 'syncline_notifications_dropped_total{namespace="a",job="s"}': "0x10 1x20" };
    const expr = 'count(ALERTS{job="s",alertname="SynclineSinkDropping",alertstate="firing",sink=""})';
    const expected = [{ expr, atMinute: 14, samples: [{ labels: "{}", value: 1 }] }];
    expect(await playRules([file], [{ name: "lost", series, expect: expected }])).toContain("SUCCESS");
  });

  it("outlast a scrape without shared gauges, and end when nothing waits", async () => {
    const ofQueue = 'namespace="a",job="s",service="main",queue="actions"';
    const ofSink = 'namespace="a",job="s",sink="ops"';
    const [oldestTask, tasks] = [
      `syncline_queue_oldest_timestamp_seconds{${ofQueue}}`,
      `syncline_queue_tasks{${ofQueue},state="waiting"}`,
    ];
    const [oldestNotice, notices] = [
      `syncline_sink_oldest_timestamp_seconds{${ofSink}}`,
      `syncline_sink_queue{${ofSink}}`,
    ];
    const throttledUntil = 'syncline_throttled_until_timestamp_seconds{namespace="a",job="s",service="main"}';
    const [oldest, waiting] = ["0x20 stale 0x5", "5x20 stale 5x5"];
    const unread = {
      SynclineBacklogOld: { [oldestTask]: oldest, [tasks]: waiting },
      SynclineSinkStuck: { [oldestNotice]: oldest, [notices]: waiting },
      SynclineServiceThrottled: { [throttledUntil]: "3000x20 stale 3000x5" },
    };
    const [gone, drained] = ["0x20 stale", "5x20 0x6"];
    const ended = {
      SynclineBacklogOld: { [oldestTask]: gone, [tasks]: drained },
      SynclineSinkStuck: { [oldestNotice]: gone, [notices]: drained },
    };
    const at21 = (courses: Readonly<Record<string, Course["series"]>>, isFiring: boolean) =>
      Object.entries(courses).map(([alert, series]) => toTest(alert, { series, atMinute: 21 }, isFiring));
    expect(await play([...at21(unread, true), ...at21(ended, false)])).toContain("SUCCESS");
  });

  it("are held back by a throttle for two hours, however long it stands", async () => {
    const ofMain = 'namespace="a",job="s",service="main"';
    const series = {
      ...alive,
      [`syncline_throttles_total{${ofMain}}`]: "0+1x200",
      [`syncline_policies_in_trouble{${ofMain},trouble="unknown"}`]: "0x30 1x170",
    };
    const expected = [120, 150].map((atMinute) => ({
      expr: 'count(ALERTS{job="s",alertname="SynclineStartUnknown",alertstate="firing",severity="critical"})',
      atMinute,
      samples: atMinute === 120 ? [] : [{ labels: "{}", value: 1 }],
    }));
    const anew = {
      ...series,
      [`syncline_throttles_total{${ofMain}}`]: "0+1x20 20x120 21+1x60",
      [`syncline_policies_in_trouble{${ofMain},trouble="unknown"}`]: "0x150 1x50",
    };
    const [{ expr = "" } = {}] = expected;
    const cases = [
      { name: "throttled", series, expect: expected },
      { name: "throttled anew", series: anew, expect: [{ expr, atMinute: 165, samples: [] }] },
    ];
    expect(await playRules([file], cases)).toContain("SUCCESS");
  });

  it("are held back by an unsafe Redis only while no replica may trust it", async () => {
    const safe = (pod: string) => `syncline_redis_safe{namespace="a",job="s",pod="${pod}"}`;
    const missed = 'syncline_policies_in_trouble{namespace="a",job="s",service="main",trouble="missed"}';
    const told = (name: string, other: string, alerts: readonly string[]) => ({
      name,
      series: { ...alive, [safe("p")]: "1x5 0x25", [safe("q")]: other, [missed]: "0x10 3x20" },
      expect: [
        {
          expr: 'count by (alertname) (ALERTS{job="s",alertstate="firing",severity="critical"})',
          atMinute: 25,
          samples: alerts.map((alert) => ({ labels: `{alertname="${alert}"}`, value: 1 })),
        },
      ],
    });
    const cases = [
      told("one of two", "1x30", ["SynclineRedisUnsafe", "SynclineSlotMissed"]),
      told("both", "1x5 0x25", ["SynclineRedisUnsafe"]),
    ];
    expect(await playRules([file], cases)).toContain("SUCCESS");
  });

  it("tell once that a release is gone, for as long as it is", async () => {
    const gone = {
      name: "gone",
      series: { 'syncline_build_info{namespace="a",job="s"}': "1x5 stale" },
      expect: [12, 64, 65, 66, 67, 120].map((atMinute) => ({
        expr: 'count(ALERTS{job="s",alertname="SynclineDown",alertstate="firing"})',
        atMinute,
        samples: [{ labels: "{}", value: 1 }],
      })),
    };
    expect(await playRules([writeRules(await renderRules("demo", ofCases))], [gone])).toContain("SUCCESS");
  });

  it("name the policies that are worst, and count them all", async () => {
    const since = (policy: string, service = "main") =>
      `syncline_policy_trouble_timestamp_seconds{namespace="a",job="s",policy="${policy}",service="${service}",trouble="stale"}`;
    const count = 'syncline_policies_in_trouble{namespace="a",job="s",service="main",trouble="stale"}';
    const series = {
      ...alive,
      [count]: "200x30",
      [since("second")]: "60x30",
      [since("first")]: "30x30",
      [since("x", "other")]: "1x30",
    };
    const text =
      "Of 200 policies of service main three slots came due since they last succeeded, and they are not paused. For longest: first second.";
    const test = {
      interval: "1m",
      input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    };
    const told = await playAlert([writeRules(await renderRules("demo", ofCases))], {
      ...test,
      alert_rule_test: [
        {
          eval_time: "20m",
          alertname: "SynclinePolicyStale",
          exp_alerts: [
            {
              exp_labels: { namespace: "a", job: "s", service: "main", severity: "critical" },
              exp_annotations: {
                summary: "Policies of main have not succeeded for two intervals",
                description: text,
                runbook_url: "docs/runbooks/policy-stale.md",
              },
            },
          ],
        },
      ],
    });
    expect(told).toContain("SUCCESS");
  });

  it("name no policy of a service whose outage explains what was missed", async () => {
    const count = (service: string) =>
      `syncline_policies_in_trouble{namespace="a",job="s",service="${service}",trouble="missed"}`;
    const since = (policy: string, service: string) =>
      `syncline_policy_trouble_timestamp_seconds{namespace="a",job="s",policy="${policy}",service="${service}",trouble="missed"}`;
    const series = {
      ...alive,
      [count("main")]: "1x30",
      [count("other")]: "1x30",
      [since("counted", "main")]: "60x30",
      [since("explained", "other")]: "30x30",
      'ALERTS{namespace="a",job="s",service="other",alertname="SynclineBreakerOpen",alertstate="firing"}': "1x30",
    };
    const text =
      "In the last hour slots of 1 policies were found missed, and nothing is done for them any more: counted.";
    const told = await playAlert([writeRules(await renderRules("demo", ofCases))], {
      interval: "1m",
      input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
      alert_rule_test: [
        {
          eval_time: "20m",
          alertname: "SynclineSlotMissed",
          exp_alerts: [
            {
              exp_labels: { namespace: "a", job: "s", severity: "critical" },
              exp_annotations: {
                summary: "Slots were missed",
                description: text,
                runbook_url: "docs/runbooks/slot-missed.md",
              },
            },
          ],
        },
      ],
    });
    expect(told).toContain("SUCCESS");
  });

  it("would be found out: a course that does not fire is told by promtool", async () => {
    const silent = Object.entries(alertCases).map(([alert, { silent: course }]) => toTest(alert, course, true));
    const told = await play(silent);
    expect(told).toContain("FAILED");
    for (const alert of Object.keys(alertCases)) expect(told).toContain(`alertname=\\"${alert}\\"`);
  });
});
