// Packages the chart so that the same sources give the same bytes: `npm run package:chart [--
// FOLDER]`. helm takes the files' times into the archive, so a copy is packaged in which all have
// one: SOURCE_DATE_EPOCH in seconds, 2000-01-01 unless set.
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { findHelm } from "./helm.mjs";

const chart = resolve(import.meta.dirname, "../helm/syncline");
const noTimeSeconds = 946_684_800;

/** Writes `syncline-VERSION.tgz` into the folder `out` and gives back what helm says. */
export function packageChart({ helm, out, seconds }: { helm: string; out: string; seconds: number }): string {
  const folder = mkdtempSync(join(tmpdir(), "syncline-package-"));
  try {
    const copy = join(folder, "syncline");
    cpSync(chart, copy, { recursive: true });
    for (const name of ["", ...readdirSync(copy, { recursive: true, encoding: "utf8" })])
      utimesSync(join(copy, name), seconds, seconds);
    const env = { ...process.env, HELM_CONFIG_HOME: folder, HELM_CACHE_HOME: folder, HELM_DATA_HOME: folder };
    return execFileSync(helm, ["package", copy, "--destination", out], { env, encoding: "utf8", timeout: 60_000 });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

if (import.meta.main) {
  const [out = "."] = process.argv.slice(2);
  const seconds = Number(process.env["SOURCE_DATE_EPOCH"] ?? noTimeSeconds);
  process.stdout.write(packageChart({ helm: await findHelm({ onProgress: console.error }), out, seconds }));
}
