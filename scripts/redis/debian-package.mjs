// A Redis or Valkey server out of the Debian or Ubuntu packages, unpacked into .cache/ without root
// and without installing. Called by redis.mjs only. Package lists are fetched into a private folder
// when the machine has none that fit. Never changes the system's package state.
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { delimiter, join } from "node:path";
import { withLock } from "../bootstrap/lock.mjs";
import { findOnPath, run, timed } from "../bootstrap/run.mjs";

// The tools packages hold the whole server: it is one binary that acts by the name it is called
// with.
const candidates = [
  { package: "redis-tools", binary: "redis-check-rdb", server: "redis-server" },
  { package: "valkey-tools", binary: "valkey-check-rdb", server: "valkey-server" },
];

/** The server unpacked earlier: { command, env }, or undefined. */
export function findUnpackedRedis(cache) {
  const root = folder(cache);
  for (const { server } of candidates) {
    const command = join(root, "usr", "bin", server);
    if (existsSync(command)) return { command, env: { LD_LIBRARY_PATH: libraryFolders(root).join(delimiter) } };
  }
  return undefined;
}

/**
 * Downloads and unpacks a server. Undefined where there is no apt, no such package, or what was
 * unpacked does not run.
 */
export async function unpackDebianRedis({ cache, path, onProgress }) {
  const tools = {
    apt: findOnPath("apt-get", path),
    aptCache: findOnPath("apt-cache", path),
    dpkg: findOnPath("dpkg", path),
  };
  const query = findOnPath("dpkg-query", path);
  if (Object.values({ ...tools, query }).includes(undefined)) return undefined;
  mkdirSync(cache, { recursive: true });
  return withLock(`${folder(cache)}.lock`, async () => {
    const unpacked = findUnpackedRedis(cache);
    if (unpacked !== undefined) return unpacked;
    await timed(
      "unpacking a private Redis from the distribution's packages (once)",
      () => unpack({ ...tools, query, cache }),
      onProgress,
    );
    return findUnpackedRedis(cache);
  });
}

async function unpack(tools) {
  const stage = `${folder(tools.cache)}.stage`;
  rmSync(stage, { recursive: true, force: true });
  const lists = join(stage, "lists");
  // First with the lists that the machine has; if that fails (none, or too old), with lists of our
  // own.
  for (const options of [[], privateLists(lists)]) {
    if (options.length > 0) await run(tools.apt, [...options, "-qq", "update"], { timeoutMs: 300_000 });
    for (const candidate of candidates) {
      if (await unpackCandidate(candidate, { ...tools, stage, options })) {
        rmSync(stage, { recursive: true, force: true });
        return;
      }
    }
  }
  rmSync(stage, { recursive: true, force: true });
}

async function unpackCandidate(candidate, { apt, aptCache, dpkg, query, cache, stage, options }) {
  const downloads = join(stage, "downloads");
  const root = join(stage, "root");
  for (const empty of [downloads, root]) {
    rmSync(empty, { recursive: true, force: true });
    mkdirSync(empty, { recursive: true });
  }
  const wanted = await missingPackages(candidate.package, { aptCache, query, options });
  if (wanted === undefined) return false;
  const got = await run(apt, [...options, "-qq", "download", ...wanted], { cwd: downloads, timeoutMs: 120_000 });
  if (got.code !== 0) return false;
  for (const file of readdirSync(downloads)) await run(dpkg, ["-x", join(downloads, file), root]);
  const server = join(root, "usr", "bin", candidate.server);
  if (!existsSync(join(root, "usr", "bin", candidate.binary))) return false;
  if (!existsSync(server)) symlinkSync(candidate.binary, server);
  const env = { ...process.env, LD_LIBRARY_PATH: libraryFolders(root).join(delimiter) };
  const says = await run(server, ["--version"], { env, timeoutMs: 10_000 });
  if (!/server v=/i.test(says.stdout)) return false;
  rmSync(folder(cache), { recursive: true, force: true });
  renameSync(root, folder(cache));
  return true;
}

/**
 * The package and those it depends on that this machine lacks; undefined when the lists do not know
 * it.
 */
async function missingPackages(name, { aptCache, query, options }) {
  const only = ["recommends", "suggests", "conflicts", "breaks", "replaces", "enhances"].map((kind) => `--no-${kind}`);
  const answer = await run(aptCache, [...options, "depends", "--recurse", ...only, name], { timeoutMs: 60_000 });
  const known = answer.stdout.split("\n").filter((line) => /^[a-z0-9]/.test(line));
  if (answer.code !== 0 || !known.includes(name)) return undefined;
  const listed = await run(query, ["-W", "-f", "$" + "{Package} $" + "{db:Status-Status}\n"]);
  const installed = new Set(
    listed.stdout
      .split("\n")
      .filter((line) => line.endsWith(" installed"))
      .map((line) => line.split(" ")[0]),
  );
  // Of what is missing only libraries matter; the package's scripts are never run.
  return [name, ...known.filter((other) => other.startsWith("lib") && !installed.has(other) && other !== name)];
}

/** Options that make apt keep lists and archives in a folder of ours, as any user. */
export function privateLists(lists) {
  for (const part of ["state/lists/partial", "cache/archives/partial"])
    mkdirSync(join(lists, part), { recursive: true });
  const settings = {
    "Dir::State": join(lists, "state"),
    "Dir::State::Lists": join(lists, "state", "lists"),
    "Dir::State::status": "/var/lib/dpkg/status",
    "Dir::Cache": join(lists, "cache"),
    "APT::Sandbox::User": "",
    "Acquire::Languages": "none",
    "APT::Update::Post-Invoke-Success::": "",
  };
  return Object.entries(settings).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
}

/** The folders of libraries below an unpacked root, with those that a library calls its own. */
export function libraryFolders(root) {
  return ["usr/lib", "lib"]
    .map((parent) => join(root, parent))
    .filter((parent) => existsSync(parent))
    .flatMap((parent) =>
      readdirSync(parent)
        .filter((name) => name.includes("-linux-gnu"))
        .map((name) => join(parent, name)),
    )
    .flatMap((parent) => [parent, ...foldersIn(parent).filter(holdsLibraries)]);
}

function foldersIn(parent) {
  const entries = readdirSync(parent, { withFileTypes: true });
  return entries.flatMap((entry) => (entry.isDirectory() ? [join(parent, entry.name)] : []));
}

function holdsLibraries(folder) {
  return readdirSync(folder).some((name) => /^lib.+\.so(\.|$)/.test(name));
}

const folder = (cache) => join(cache, `redis-${process.arch}`);
