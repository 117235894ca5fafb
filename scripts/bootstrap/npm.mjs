// Runs npm for the bootstrap, on a Node of our choice and quietly. Called by private-node.mjs,
// dependencies.mjs and helm.mjs. Never runs install scripts and never names a registry: npm's own
// configuration decides where packages come from.
import { accessSync, constants, existsSync } from "node:fs";
import { homedir } from "node:os";
import { basename, delimiter, dirname, join } from "node:path";
import { findOnPath, Problem, run, say } from "./run.mjs";

const quietAndCareful = [
  ...["--ignore-scripts", "--include=dev", "--include=optional", "--no-audit", "--no-fund", "--no-progress"],
  ...["--loglevel=error", "--fetch-retries=3", "--fetch-retry-factor=2", "--fetch-retry-mintimeout=1000"],
];

/**
 * Runs `npm ci` in a folder on the given Node. `cache` is our .cache folder, used when npm's own
 * cache cannot be written; `otherWays` are ways out that do without npm.
 * @throws Problem with npm's own last words.
 */
export async function npmCi(folder, { node, cache, what, otherWays = [] }) {
  const { command, args } = npmCommand(node);
  const PATH = `${dirname(node)}${delimiter}${process.env.PATH ?? ""}`;
  const env = { ...process.env, PATH, npm_config_globalconfig: await globalConfig() };
  const result = await run(command, [...args, "ci", ...quietAndCareful, ...cacheOption(cache)], { cwd: folder, env });
  if (result.code === 0) return;
  throw new Problem(`npm could not install ${what}: ${reason(result)}`, [...waysOut(result.stderr), ...otherWays]);
}

/**
 * Fetches a package's archive into a folder with `npm pack`; nothing of it is installed or run.
 * @throws Problem with npm's own last words.
 */
export async function npmPack(name, { folder, cache, otherWays = [] }) {
  const { command, args } = npmCommand(process.execPath);
  const words = ["pack", name, "--silent", "--ignore-scripts", "--loglevel=error", ...cacheOption(cache)];
  const result = await run(command, [...args, ...words], { cwd: folder });
  if (result.code === 0) return;
  throw new Problem(`npm could not fetch ${name}: ${reason(result)}`, [...waysOut(result.stderr), ...otherWays]);
}

/** npm as it was called, when it called us; else the one on PATH. */
function npmCommand(node) {
  const caller = process.env.npm_execpath ?? "";
  if (basename(caller) === "npm-cli.js" && existsSync(caller)) return { command: node, args: [caller] };
  const npm = findOnPath("npm");
  if (npm !== undefined) return { command: npm, args: [] };
  throw new Problem("npm is not on PATH", ["install npm 9 or newer; it comes with Node"]);
}

/**
 * The path of npm's global configuration, which may hold a mirror, a proxy or a certificate. npm
 * looks for it beside the Node that it runs on; ours has none.
 */
async function globalConfig() {
  if (process.env.npm_config_globalconfig) return process.env.npm_config_globalconfig;
  const { command, args } = npmCommand(process.execPath);
  const result = await run(command, [...args, "config", "get", "globalconfig"], { timeoutMs: 30_000 });
  return result.code === 0 ? result.stdout.trim() : undefined;
}

function cacheOption(cache) {
  const usual = process.env.npm_config_cache || join(homedir(), ".npm");
  if (isWritable(usual)) return [];
  const own = join(cache, "npm");
  say(`npm's cache ${usual} cannot be written, using ${own}`);
  return [`--cache=${own}`];
}

/** True when the folder, or the nearest one above it that exists, can be written. */
function isWritable(folder) {
  if (!existsSync(folder)) return dirname(folder) !== folder && isWritable(dirname(folder));
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function reason({ code, stderr }) {
  const words = stderr
    .split("\n")
    .map((line) => line.replace(/^npm (error|ERR!) ?/, "").trim())
    .filter(
      (line) => line !== "" && !/^(errno|syscall|A complete log|npm warn|Log files were not written)/i.test(line),
    );
  return words.slice(0, 4).join("; ") || `it ended with ${code ?? "no"} exit code`;
}

function waysOut(stderr) {
  if (/EUSAGE|in sync/.test(stderr))
    return ["package.json and package-lock.json disagree: run `npm install` and commit"];
  if (/ENOSPC/.test(stderr)) return ["free some disk space"];
  return [
    "check that npm reaches its registry: npm ping (a proxy belongs into npm's configuration)",
    "then run the same command again; what was fetched is kept",
  ];
}
