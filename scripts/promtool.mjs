// Finds promtool, the checker of Prometheus's rules, and Prometheus itself: on PATH, or out of the
// Debian or Ubuntu package, unpacked into .cache/ without root and without installing. Called by
// the tests of the alerts. Its types are in promtool.d.mts.
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { withLock } from "./bootstrap/lock.mjs";
import { findOnPath, Problem, run } from "./bootstrap/run.mjs";
import { privateLists } from "./redis/debian-package.mjs";

const localCache = join(dirname(dirname(fileURLToPath(import.meta.url))), ".cache");

/** The command that checks. */
export function findPromtool(options) {
  return find("promtool", options);
}

/** The server. */
export function findPrometheus(options) {
  return find("prometheus", options);
}

async function find(command, { cache = localCache, path = process.env.PATH ?? "" } = {}) {
  const installed = findOnPath(command, path);
  if (installed !== undefined) return installed;
  const unpacked = join(cache, `${command}-${process.arch}`);
  const tools = { apt: findOnPath("apt-get", path), dpkg: findOnPath("dpkg", path) };
  if (!existsSync(unpacked) && tools.apt !== undefined && tools.dpkg !== undefined) {
    mkdirSync(cache, { recursive: true });
    await withLock(`${unpacked}.lock`, () =>
      existsSync(unpacked) ? undefined : unpack({ ...tools, command, unpacked }),
    );
  }
  if (existsSync(unpacked)) return unpacked;
  throw new Problem(`no ${command} can be had on this machine, so the alerts cannot be tested`, [
    "install prometheus and put it and its promtool on PATH",
    "or use a Debian or Ubuntu whose package lists can be fetched",
  ]);
}

async function unpack({ apt, dpkg, command, unpacked }) {
  const stage = `${unpacked}.stage`;
  const lists = join(stage, "lists");
  rmSync(stage, { recursive: true, force: true });
  // First with the lists that the machine has; if that fails (none, or too old), with lists of our
  // own.
  for (const options of [[], undefined]) {
    const own = options ?? privateLists(lists);
    if (options === undefined) await run(apt, [...own, "-qq", "update"], { timeoutMs: 300_000 });
    const downloads = join(stage, "downloads");
    mkdirSync(downloads, { recursive: true });
    await run(apt, [...own, "-qq", "download", "prometheus"], { cwd: downloads, timeoutMs: 120_000 });
    for (const file of readdirSync(downloads)) await run(dpkg, ["-x", join(downloads, file), join(stage, "root")]);
    const found = join(stage, "root", "usr", "bin", command);
    if (!existsSync(found) || (await run(found, ["--version"])).code !== 0) continue;
    renameSync(found, unpacked);
    break;
  }
  rmSync(stage, { recursive: true, force: true });
}
