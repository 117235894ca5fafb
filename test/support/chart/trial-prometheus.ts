// A real Prometheus with the chart's rules for the trial of the alerts: every time in them is
// divided by one factor. Used by test/chart/alert-trial.ts.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseAllDocuments } from "yaml";
import { findHelm } from "../../../scripts/helm.mjs";
import { findPrometheus } from "../../../scripts/promtool.mjs";
import { freePort } from "../redis-servers.ts";
import type { Release } from "./trial-release.ts";

/** A minute of the rules is two seconds here. */
export const minuteMs = 2_000;
const factor = 60_000 / minuteMs;
/**
 * Heartbeats and scrapes are not quicker here than in a cluster, so their 60 s and 90 s become more
 * than two.
 */
const heartbeatSeconds = 8;
const chart = join(import.meta.dirname, "../../../helm/syncline");

/** A series of an answer, with a value each second. */
export interface Series {
  readonly metric: Readonly<Record<string, string>>;
  readonly values: readonly (readonly [number, string])[];
}

interface Rule {
  readonly alert?: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** A running Prometheus. */
export class Prometheus {
  /** The page of each alert. */
  readonly runbooks = new Map<string, string>();
  readonly #child: ChildProcess;
  readonly #url: string;

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.#url = url;
  }

  /** Starts it, scraping these releases. */
  static async start(folder: string, releases: readonly Release[]): Promise<Prometheus> {
    mkdirSync(join(folder, "data"), { recursive: true });
    const groups = await Promise.all(releases.map(({ name }) => rulesOf(name)));
    const targets = releases.flatMap(({ job, ports }) =>
      [...ports].map(([pod, port]) => ({ targets: [`127.0.0.1:${port}`], labels: { job, namespace: "sync", pod } })),
    );
    const settings = {
      global: { scrape_interval: "2s", scrape_timeout: "2s", evaluation_interval: "1s" },
      rule_files: ["rules*.yaml"],
      scrape_configs: [{ job_name: "syncline", static_configs: targets }],
    };
    writeFileSync(join(folder, "prometheus.yaml"), JSON.stringify(settings));
    const address = `127.0.0.1:${await freePort()}`;
    const args = ["--config.file=prometheus.yaml", "--storage.tsdb.path=data", `--web.listen-address=${address}`];
    const child = spawn(await findPrometheus(), args, { cwd: folder, stdio: "ignore" });
    const prometheus = new Prometheus(child, `http://${address}`);
    for (const { alert, annotations } of groups.flat().flatMap(({ rules }) => rules))
      if (alert !== undefined) prometheus.runbooks.set(alert, annotations?.["runbook_url"] ?? "");
    // Rules that look before the first scrape would fire SynclineDown, which holds back what
    // follows for 75 minutes.
    while ((await prometheus.#scraped()) < targets.length) await sleep(500);
    writeFileSync(join(folder, "rules.yaml"), JSON.stringify({ groups: groups.flat() }));
    child.kill("SIGHUP");
    return prometheus;
  }

  /** How many pods have been scraped; 0 while it does not answer yet. */
  async #scraped(): Promise<number> {
    const found = await this.query("syncline_build_info").catch(() => "");
    return found.split("\n").filter((line) => line !== "").length;
  }

  /** What an expression gives now: each series with its labels and value. */
  async query(query: string): Promise<string> {
    const result: { metric: Series["metric"]; value: [number, string] }[] = await this.#ask("query", { query });
    return result.map(({ metric, value }) => `${JSON.stringify(metric)} ${value[1]}`).join("\n");
  }

  /** When each alert fired between two instants. */
  fired(fromMs: number, toMs: number): Promise<Series[]> {
    const range = { start: String(fromMs / 1_000), end: String(toMs / 1_000), step: "1" };
    return this.#ask("query_range", { query: 'ALERTS{alertstate="firing"}', ...range });
  }

  /** The description of an alert of a job that fires now. */
  async description(job: string, alert: string): Promise<string | undefined> {
    const answer = await fetch(`${this.#url}/api/v1/alerts`);
    const { data }: { data: { alerts: (Record<"labels" | "annotations", Series["metric"]> & { state: string })[] } } =
      JSON.parse(await answer.text());
    const mine = data.alerts.find(
      ({ labels, state }) => state === "firing" && labels["alertname"] === alert && labels["job"] === job,
    );
    return mine?.annotations["description"];
  }

  async #ask<T>(path: string, query: Readonly<Record<string, string>>): Promise<T> {
    const answer = await fetch(`${this.#url}/api/v1/${path}?${new URLSearchParams(query)}`);
    const { data, error }: { data?: { result: T }; error?: string } = JSON.parse(await answer.text());
    if (data === undefined) throw new Error(`${error}: ${query["query"]}`);
    return data.result;
  }

  stop(): void {
    this.#child.kill("SIGKILL");
  }
}

/** The rules as the chart renders them for a release, with all times divided. */
async function rulesOf(release: string): Promise<{ name: string; rules: Rule[] }[]> {
  const values = [
    "--set",
    "redis.url=redis://r,metrics.prometheusRule.enabled=true,metrics.prometheusRule.runbookBaseUrl=docs/runbooks",
  ];
  const files = ["--set-json", 'policies={"files":{"a.yaml":"x"}}'];
  const args = ["template", release, chart, "--namespace", "sync", ...values, ...files];
  const text = execFileSync(await findHelm(), args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  const objects = parseAllDocuments(text).map((document) => document.toJS());
  const { groups } = objects.find((object) => object?.kind === "PrometheusRule").spec;
  const divided = JSON.stringify(groups)
    .replace(/(\[|"for":")(\d+)m/g, (_, before, minutes) => `${before}${(60 * Number(minutes)) / factor}s`)
    .replace(/ < (60|90) /g, ` < ${heartbeatSeconds} `)
    .replace(/ ([<>]) (600|900|1800)\b/g, (_, sign, seconds) => ` ${sign} ${Number(seconds) / factor}`);
  return JSON.parse(divided).map((group: { rules: Rule[] }) => ({ ...group, name: release }));
}
