// Plays courses of events against the rules that the chart renders, with Prometheus's own promtool.
// Used by test/chart/alerts.test.ts.
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { stringify } from "yaml";
import { findPromtool } from "../../../scripts/promtool.mjs";
import { ownFolder } from "../redis-servers.ts";
import { chartFolder, helm, parseObjects, type Values } from "./helm.ts";
import { least } from "./value-sets.ts";

/** What promtool prints, whether it is content or not. */
export async function promtool(...args: string[]): Promise<string> {
  const ended = await promisify(execFile)(await findPromtool(), args, { maxBuffer: 20_000_000 }).catch(
    (error: { stdout: string; stderr: string }) => error,
  );
  return `${ended.stdout}${ended.stderr}`;
}

/** A rule as Prometheus reads it. */
export interface Rule {
  readonly alert?: string;
  readonly record?: string;
  readonly expr: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** The groups of rules that a release of this name has in the namespace `sync`. */
export async function renderRules(
  release: string,
  prometheusRule: Values = {},
  web: Values = { enabled: true, tokensSecret: { name: "tokens" } },
): Promise<{ rules: Rule[] }[]> {
  const values = { ...least, web, metrics: { prometheusRule: { enabled: true, ...prometheusRule } } };
  const sets = Object.entries(values).flatMap(([key, value]) => ["--set-json", `${key}=${JSON.stringify(value)}`]);
  const { code, out, err } = await helm(["template", release, chartFolder, "--namespace", "sync", ...sets]);
  if (code !== 0) throw new Error(err);
  const rule = parseObjects(out).find(({ kind }) => kind === "PrometheusRule");
  const spec = rule?.["spec"] as { groups: { rules: Rule[] }[] };
  return spec.groups;
}

/** Writes groups into a file of rules; answers its path. */
export function writeRules(groups: readonly object[]): string {
  const file = join(ownFolder(), "rules.yaml");
  writeFileSync(file, stringify({ groups }, { lineWidth: 0 }));
  return file;
}

/** One test of promtool: values by series and minute, expressions with what they must give. */
export interface Played {
  readonly name: string;
  readonly series: Readonly<Record<string, string>>;
  readonly expect: readonly {
    readonly expr: string;
    readonly atMinute: number;
    readonly samples: readonly { readonly labels: string; readonly value: number }[];
  }[];
}

/** Plays tests against files of rules; answers what promtool says. */
export async function playRules(files: readonly string[], tests: readonly Played[]): Promise<string> {
  const written = tests.map(({ name, series, expect }) => ({
    name,
    interval: "1m",
    input_series: Object.entries(series).map(([one, values]) => ({ series: one, values })),
    promql_expr_test: expect.map(({ expr, atMinute, samples }) => ({
      expr,
      eval_time: `${atMinute}m`,
      exp_samples: samples,
    })),
  }));
  return playWritten(files, written);
}

/** Plays one test as promtool has it, such as one of an alert's text. */
export function playAlert(files: readonly string[], test: object): Promise<string> {
  return playWritten(files, [test]);
}

function playWritten(files: readonly string[], tests: readonly object[]): Promise<string> {
  const file = join(ownFolder(), "rules.test.yaml");
  writeFileSync(file, stringify({ rule_files: files, evaluation_interval: "1m", tests }, { lineWidth: 0 }));
  return promtool("test", "rules", file);
}

/** Values in promtool's notation. A series that ends is stale at once, as when a target is gone. */
export function toValues(values: readonly (number | undefined)[], minutes: number): string {
  const words: string[] = [];
  for (let minute = 0; minute <= minutes; minute += 1) {
    const value = values[minute];
    const isEnd = value === undefined && minute > 0 && values[minute - 1] !== undefined;
    words.push(value === undefined ? (isEnd ? "stale" : "_") : String(value));
  }
  return words.join(" ");
}
