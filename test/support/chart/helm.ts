// Runs helm on the chart for tests: template, lint, package. Values are written to a file of their
// own; nothing speaks to a cluster.
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { inject } from "vitest";
import { parseAllDocuments } from "yaml";
import { atFileEnd } from "../file-end.ts";

/** The folder of the chart. */
export const chartFolder = resolve(import.meta.dirname, "../../../helm/syncline");

/** What helm takes as values. */
export type Values = Readonly<Record<string, unknown>>;

/** An object of Kubernetes, as rendered. */
export interface KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly [part: string]: unknown;
}

/** How a helm ended. */
export interface HelmEnd {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

let kept: string | undefined;
let files = 0;

/** Where helm's own files are, and the values; gone with the test file. */
function ownFolder(): string {
  if (kept !== undefined) return kept;
  const folder = mkdtempSync(join(tmpdir(), "syncline-chart-"));
  kept = folder;
  atFileEnd(() => {
    kept = undefined;
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

/** Runs helm to its end, with no configuration of the machine's user and at most 30 s. */
export function helm(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<HelmEnd> {
  const folder = ownFolder();
  const own = { HELM_CONFIG_HOME: folder, HELM_CACHE_HOME: folder, HELM_DATA_HOME: folder, KUBECONFIG: "/dev/null" };
  return new Promise((done) => {
    execFile(
      inject("helm"),
      args,
      // It lives for a tenth of a second, a third of which it would collect garbage.
      { env: { ...process.env, ...own, GOGC: "off", ...env }, timeout: 30_000, maxBuffer: 50_000_000 },
      (error, out, err) => done({ code: error === null ? 0 : Number(error.code ?? 1), out, err }),
    );
  });
}

/** How a release is called, and where it is. */
export interface ReleaseName {
  readonly release?: string;
  readonly namespace?: string;
}

/** `helm template` with these values, release `demo` in the namespace `sync` unless said. */
export function template(values: Values, { release = "demo", namespace = "sync" }: ReleaseName = {}): Promise<HelmEnd> {
  return helm(["template", release, chartFolder, "--namespace", namespace, "--values", valuesFile(values)]);
}

/** `helm lint --strict` with these values. */
export function lint(values: Values): Promise<HelmEnd> {
  return helm(["lint", chartFolder, "--strict", "--values", valuesFile(values)]);
}

/**
 * The objects that these values give.
 * @throws Error with helm's words when it refuses them.
 */
export async function render(values: Values, name?: ReleaseName): Promise<KubeObject[]> {
  const { code, out, err } = await template(values, name);
  if (code !== 0) throw new Error(err);
  return parseObjects(out);
}

/** The objects of a stream of YAML, read as Kubernetes reads it. */
export function parseObjects(text: string): KubeObject[] {
  return parseAllDocuments(text, { uniqueKeys: true, strict: true }).flatMap((document) => {
    const [error] = document.errors;
    if (error !== undefined) throw error;
    const object: KubeObject | null = document.toJS();
    return object === null ? [] : [object];
  });
}

function valuesFile(values: Values): string {
  files += 1;
  const file = join(ownFolder(), `values-${files}.yaml`);
  writeFileSync(file, JSON.stringify(values));
  return file;
}
