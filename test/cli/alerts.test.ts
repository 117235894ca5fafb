// The alerts, as Prometheus itself judges them: promtool checks the rules and plays a course of events for and against each.
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { findPromtool } from "../../scripts/promtool.mjs";
import { type AlertCase, alertCases, type Course } from "../support/alert-cases.ts";
import { ownFolder } from "../support/redis-servers.ts";

const rules = join(import.meta.dirname, "../../helm/syncline/files/alerts.yaml");
let promtool: string;

beforeAll(async () => {
  promtool = await findPromtool();
}, 300_000);

/** What promtool prints, whether it is content or not. */
async function run(...args: string[]): Promise<string> {
  const ended = await promisify(execFile)(promtool, args).catch((error: { stdout: string; stderr: string }) => error);
  return `${ended.stdout}${ended.stderr}`;
}

function toTest(alert: string, { series, atMinute }: Course, samples: readonly object[], labels = ""): object {
  return {
    interval: "1m",
    name: alert,
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    promql_expr_test: [
      {
        expr: `count(ALERTS{alertname="${alert}",alertstate="firing"${labels === "" ? "" : `,${labels}`}})`,
        eval_time: `${atMinute}m`,
        exp_samples: samples,
      },
    ],
  };
}

const fires = ([alert, { fires: course }]: [string, AlertCase]) =>
  toTest(alert, course, [{ labels: "{}", value: 1 }], course.labels);
const staysSilent = ([alert, { silent }]: [string, AlertCase]) => toTest(alert, silent, []);

async function play(tests: readonly object[]): Promise<string> {
  const file = join(ownFolder(), "alerts.test.yaml");
  writeFileSync(file, stringify({ rule_files: [rules], evaluation_interval: "1m", tests }));
  return run("test", "rules", file);
}

describe("the alerts", () => {
  it("are rules that Prometheus takes", async () => {
    expect(await run("check", "rules", rules)).toContain(`SUCCESS: ${Object.keys(alertCases).length} rules found`);
  });

  it("have each a course that fires and one that does not", () => {
    const { groups } = parse(readFileSync(rules, "utf8"));
    const names = groups.flatMap((group: { rules: { alert: string }[] }) => group.rules.map(({ alert }) => alert));
    expect(Object.keys(alertCases).toSorted()).toEqual(names.toSorted());
  });

  it("fire when they should", async () => {
    expect(await play(Object.entries(alertCases).map(fires))).toContain("SUCCESS");
  });

  it("stay silent when they should", async () => {
    expect(await play(Object.entries(alertCases).map(staysSilent))).toContain("SUCCESS");
  });

  it("say that nobody is there when no Syncline is scraped at all", async () => {
    const nothing = { series: { up: "1x30" }, atMinute: 12 };
    const expected = [{ labels: "{}", value: 1 }];
    const both = ["SynclineNoScheduler", "SynclineNoWorker"].map((alert) => toTest(alert, nothing, expected));
    expect(await play(both)).toContain("SUCCESS");
  });

  it("would be found out: a course that does not fire is told by promtool", async () => {
    const silent = Object.entries(alertCases).map(([alert, { silent: course }]) =>
      toTest(alert, course, [{ labels: "{}", value: 1 }]),
    );
    const told = await play(silent);
    expect(told).toContain("FAILED");
    for (const alert of Object.keys(alertCases)) expect(told).toContain(`alertname=\\"${alert}\\"`);
  });
});
