import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { dashboardText } from "../../../scripts/dashboard.ts";
import { shownLabel } from "../../../src/ops/metric-labels.ts";
import { type MetricFacts, metricTable } from "../../../src/ops/metric-table.ts";
import { Metrics } from "../../../src/ops/metrics.ts";

const root = join(import.meta.dirname, "../../..");
const read = (name: string) => readFileSync(join(root, name), "utf8");

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: Readonly<Record<string, string>>;
}
const all: Partial<Rule>[] = parse(read("helm/syncline/files/alerts.yaml")).groups.flatMap(
  (group: { rules: Rule[] }) => group.rules,
);
const rules = all.filter((rule): rule is Rule => rule.alert !== undefined);
const expressions: string[] = [];
JSON.parse(read("helm/syncline/files/dashboard.json"), (key, value) => {
  if (key === "expr") expressions.push(value);
  return value;
});
const table = new Map(Object.entries<MetricFacts>(metricTable));

/**
 * The series that are asked for in an expression, with the labels and values that they are asked
 * by.
 */
function selectors(expr: string): { name: string; labels: [string, string][] }[] {
  return [...expr.matchAll(/(?<!:)\b(syncline_\w+)(?:\{([^}]*)\})?/g)].map(([, name = "", labels = ""]) => ({
    name,
    labels: [...labels.matchAll(/(\w+)(?:=~?|!=)"([^"]*)"/g)].map(([, label = "", value = ""]) => [label, value]),
  }));
}

async function scraped(): Promise<string> {
  return (await new Metrics().scrape()).text;
}

describe.each([
  ["the alerts", all.map(({ expr = "" }) => expr)],
  ["the dashboard", expressions],
])("%s", (_what, all) => {
  it("ask for metrics that there are, by labels and values that they have", async () => {
    const nodes = [...(await scraped()).matchAll(/^# TYPE (syncline_(?:nodejs|process)_\w+)/gm)].map(
      ([, name]) => name,
    );
    const strange = all.flatMap(selectors).filter(({ name, labels }) => {
      const facts = table.get(name) ?? table.get(name.replace(/_(bucket|sum|count)$/, ""));
      if (facts === undefined) return !nodes.includes(name);
      const shown = [...facts.labels.map(shownLabel), "namespace", "job", "pod", "le"];
      return labels.some(([label]) => !shown.includes(label));
    });
    expect(all.length).toBeGreaterThan(15);
    expect(strange).toEqual([]);
  });

  it("group by labels that there are", () => {
    const known = new Set([...table.values()].flatMap(({ labels }) => labels.map(shownLabel)));
    const grouped = all.flatMap((expr) => [...expr.matchAll(/\b(?:by|on) \(([^)]*)\)/g)].map(([, list = ""]) => list));
    const strange = grouped.flatMap((list) => list.split(/, */)).filter((label) => !known.has(label));
    expect(
      new Set(strange).difference(new Set(["namespace", "job", "instance", "pod", "le", "alertname", "alertstate"])),
    ).toEqual(new Set());
  });
});

describe("each alert", () => {
  it.each(rules)("$alert says what is wrong and has its runbook", ({ alert, labels, annotations }) => {
    expect(["warning", "critical"]).toContain(labels.severity);
    expect(annotations["summary"]).not.toBe(undefined);
    expect(annotations["description"]).toMatch(/\.$/);
    const page = read(annotations["runbook_url"] ?? "");
    expect(page).toMatch(new RegExp(`^# ${alert}\\n\\n[A-Z].+\\n\\n## First look\\n\\n- .+`));
    expect(page).toContain("\n## Cure\n\n- ");
    expect(read("docs/runbooks/README.md")).toContain(`- [${alert}](`);
  });

  it("has a page, and no page is left over", () => {
    const pages = readdirSync(join(root, "docs/runbooks")).filter((name) => name !== "README.md");
    expect(new Set(rules.map(({ annotations }) => annotations["runbook_url"]))).toEqual(
      new Set(pages.map((name) => `docs/runbooks/${name}`)),
    );
  });
});

describe("helm/syncline/files/dashboard.json", () => {
  it("is what scripts/dashboard.ts makes", () => {
    expect(read("helm/syncline/files/dashboard.json"), "run: npm run -s dashboard").toBe(dashboardText());
  });

  it("shows one release at a time", () => {
    const mixed = expressions.flatMap(selectors).filter(({ labels }) => {
      const asked = new Map(labels);
      return asked.get("namespace") !== "$namespace" || asked.get("job") !== "$job";
    });
    expect(mixed).toEqual([]);
    const { templating } = JSON.parse(read("helm/syncline/files/dashboard.json"));
    expect(templating.list).toMatchObject([{ name: "datasource" }, { name: "namespace" }, { name: "job" }]);
    for (const variable of templating.list) expect(variable).not.toHaveProperty("multi");
  });

  it("shows every metric of the table but the few that answer further questions", () => {
    const shown = expressions.flatMap(selectors).map(({ name }) => name.replace(/_(bucket|sum|count)$/, ""));
    const elsewhere = [
      "syncline_slots_repaired_total",
      "syncline_starts_repeated_total",
      "syncline_unknown_starts_total",
      "syncline_notifications_dropped_total",
      // To join owners and labels in panels and routes of your own.
      "syncline_policy_info",
      "syncline_policy_stale_from_timestamp_seconds",
      "syncline_config_policies_unnamed",
      "syncline_feed_mapping_failures_total",
      "syncline_feed_whole_walks_total",
      "syncline_lists_read_again_total",
      "syncline_feed_walk_duration_seconds",
      "syncline_http_tries_total",
      "syncline_http_exchanges_stuck_total",
      "syncline_breaker_openings_total",
      "syncline_throttles_total",
      "syncline_token_renewals_total",
      "syncline_links_total",
      "syncline_notices_total",
      "syncline_web_reads_total",
      "syncline_policy_heartbeats_failed_total",
      "syncline_foreign_owners",
      "syncline_redis_policy_ok",
      "syncline_redis_append_only",
      "syncline_shared_metrics_up",
      "syncline_config_last_reload_success_timestamp_seconds",
    ];
    expect([...table.keys()].filter((name) => !shown.includes(name)).toSorted()).toEqual(elsewhere.toSorted());
  });
});
