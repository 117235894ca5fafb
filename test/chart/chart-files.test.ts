import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { parse } from "yaml";
import { packageChart } from "../../scripts/chart-package.ts";
import { readChartReadme, renderChartReadme } from "../../scripts/chart-readme.ts";
import { chartFolder, helm, type Values } from "../support/chart/helm.ts";
import { least } from "../support/chart/value-sets.ts";
import { runHere } from "../support/commands-here.ts";

/** What of a shipped values file is looked at here. */
interface ShippedValues {
  readonly policies: { readonly files?: Readonly<Record<string, string>> };
  readonly sinks?: { readonly urls?: readonly { readonly name: string }[] };
}

const text = (name: string) => readFileSync(join(chartFolder, name), "utf8");

/** NOTES as an installation shows them. */
async function notes(values: Values): Promise<string> {
  const given = Object.entries({ ...least, ...values }).flatMap(([key, value]) => [
    "--set-json",
    `${key}=${JSON.stringify(value)}`,
  ]);
  const { code, out, err } = await helm([
    "install",
    "demo",
    chartFolder,
    "--dry-run=client",
    "--namespace",
    "sync",
    ...given,
  ]);
  if (code !== 0) throw new Error(err);
  return out.split("NOTES:")[1] ?? "";
}

const safe = {
  networkPolicy: { enabled: true, servicesTo: [{ ipBlock: { cidr: "192.0.2.0/24" } }] },
  redis: { url: "rediss://redis.data:6380", passwordSecret: { name: "redis" } },
  image: { digest: `sha256:${"0".repeat(64)}` },
};

describe("NOTES", () => {
  it("warn of nothing when all is well", async () => {
    expect(await notes(safe)).not.toMatch(/WARNING|NOTE:/);
  });

  it.each([
    ["a Redis for trying out", { redis: { url: "", embedded: { enabled: true } } }, "redis.embedded is for trying out"],
    ["one replica", { replicas: 1 }, "one replica"],
    ["one scheduler", { split: true, scheduler: { replicas: 1 } }, "one scheduler"],
    ["one worker", { split: true, worker: { replicas: 1 } }, "one worker"],
    ["no disruption budget", { podDisruptionBudget: { enabled: false } }, "without podDisruptionBudget"],
    ["no network policy", { networkPolicy: { enabled: false } }, "networkPolicy.enabled is false"],
    ["a password in the address", { redis: { url: "rediss://u:p@redis" } }, "redis.url holds a password"],
    ["an address out of a secret", { redis: { url: "", existingSecret: { name: "r" } } }, "redis.existingSecret puts"],
    [
      "a token as a variable",
      { extraEnv: [{ name: "SYNC_TOKEN", value: "x" }] },
      "extraEnv holds SYNC_TOKEN as plain text",
    ],
    [
      "a token out of a secret as a variable",
      { extraEnv: [{ name: "SYNC_TOKEN", valueFrom: { secretKeyRef: { name: "a", key: "b" } } }] },
      "extraEnv takes SYNC_TOKEN from a secret",
    ],
    [
      "variables of a secret",
      { extraEnvFrom: [{ secretRef: { name: "a" } }] },
      "extraEnvFrom makes variables of a secret",
    ],
    [
      "a sink behind the wall",
      {
        networkPolicy: { ...safe.networkPolicy, sinkPorts: [443] },
        policies: { files: { "a.yaml": "sinks: { ops: { webhook: { url: 'http://alerts.data:9093/x' } } }" } },
      },
      "a sink or heartbeat in policies.files is on port 9093",
    ],
    [
      "a heartbeat behind the wall",
      {
        policies: { files: { "a.yaml": "policies: [{ name: a, heartbeat: { url: 'https://beats.example.com/x' } }]" } },
      },
      "a sink or heartbeat in policies.files is on port 443",
    ],
    [
      "an e-mail sink behind the wall",
      { policies: { files: { "a.yaml": "sinks: { post: { email: { host: smtp.example.com } } }" } } },
      "a sink or heartbeat in policies.files is on port 465",
    ],
    [
      "a dashboard that is reached past the ingress",
      { web: { enabled: true, tokensSecret: { name: "tokens" }, service: { type: "LoadBalancer" } } },
      "web.service is a LoadBalancer that speaks HTTP",
    ],
  ])("warn of %s, and of that only", async (_what, values, words) => {
    const warnings = (await notes({ ...safe, ...values })).match(/WARNING: .*/g) ?? [];
    expect(warnings).toEqual([expect.stringContaining(words)]);
  });
});

describe("the values that come with the chart", () => {
  it.each(readdirSync(join(chartFolder, "ci")))("hold policies that Syncline takes: %s", async (name) => {
    const { policies, sinks }: ShippedValues = parse(text(join("ci", name)));
    const folder = mkdtempSync(join(tmpdir(), "syncline-policies-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    for (const [file, content] of Object.entries(policies.files ?? {})) writeFileSync(join(folder, file), content);
    const variables = Object.fromEntries((sinks?.urls ?? []).map((url) => [url.name, "https://hooks.slack.com/x"]));
    if (policies.files !== undefined) expect(await runHere(["validate", folder], variables)).toMatchObject({ code: 0 });
  });
});

describe("the chart's files", () => {
  it("have the version of the package, and say it to Artifact Hub", () => {
    const { version } = JSON.parse(readFileSync(resolve(chartFolder, "../../package.json"), "utf8"));
    const chart = parse(text("Chart.yaml"));
    expect([chart.version, chart.appVersion]).toEqual([version, version]);
    expect(parse(chart.annotations["artifacthub.io/images"])).toEqual([
      { name: "syncline", image: `syncline:${version}` },
    ]);
    expect(parse(chart.annotations["artifacthub.io/changes"])[0]).toMatchObject({ kind: "added" });
  });

  it("have a README that is made from values.yaml; if this fails: npm run docs:chart", () => {
    const { present, wanted } = readChartReadme();
    expect(present).toBe(wanted);
  });

  it("check-readme refuses a value without an explanation", () => {
    expect(() => renderChartReadme("", "# -- Fine.\na: 1\nb: { c: 2 }\n")).toThrow(
      "values.yaml says nothing about b.c",
    );
  });

  it("have a schema that knows every value, at every level, and nothing else", () => {
    const schema = JSON.parse(text("values.schema.json"));
    const missing: string[] = [];
    const walk = (values: Values, known: { properties?: Record<string, object>; $ref?: string }, path: string) => {
      if (known.properties === undefined) return;
      for (const key of Object.keys(known.properties))
        if (!(key in values) && key !== "global") missing.push(`value ${path}${key}`);
      for (const [key, value] of Object.entries(values)) {
        const below = known.properties[key];
        if (below === undefined) missing.push(`schema ${path}${key}`);
        else if (typeof value === "object" && value !== null && !Array.isArray(value))
          walk(value as Values, below, `${path}${key}.`);
      }
    };
    walk(parse(text("values.yaml")), schema, "");
    expect(missing).toEqual([]);
  });
});

describe("npm run package:chart", () => {
  async function packageAndHash(): Promise<string> {
    const out = mkdtempSync(join(tmpdir(), "syncline-packaged-"));
    onTestFinished(() => rmSync(out, { recursive: true }));
    packageChart({ helm: inject("helm"), out, seconds: 1_700_000_000 });
    const archive = readFileSync(join(out, "syncline-0.1.0.tgz"));
    const { code, out: listed } = await helm(["show", "all", join(out, "syncline-0.1.0.tgz")]);
    expect([code, listed.includes("contracts-nightly")]).toEqual([0, true]);
    return createHash("sha256").update(archive).digest("hex");
  }

  it("gives the same bytes from the same sources, whenever they were written", async () => {
    const first = await packageAndHash();
    const now = Date.now() / 1000;
    utimesSync(join(chartFolder, "Chart.yaml"), now, now);
    expect(await packageAndHash()).toBe(first);
  });
});
