// Makes a bare clone ready to work: Node 24 or newer, the dependencies, with --redis a Redis
// server, and with --chromium a browser for the tests. Run by the pre-scripts of package.json on
// any Node from 18 on, so it imports nothing but Node's own modules. Never writes to standard
// output, never needs root and never touches anything outside this folder but npm's cache.
import { existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { dependenciesState, installDependencies } from "./bootstrap/dependencies.mjs";
import { withLock } from "./bootstrap/lock.mjs";
import { fetchPrivateNode, findModernNode, linkNode, nodeLinkIsMissing } from "./bootstrap/private-node.mjs";
import { Problem, say } from "./bootstrap/run.mjs";
import { findChromium } from "./chromium.mjs";
import { findRedis } from "./redis.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const cache = join(root, ".cache");

async function bootstrap() {
  if (!(await isReady())) {
    makeCache();
    await withLock(join(cache, "bootstrap.lock"), makeReady, {
      onWait: (pid) => say(`another run (process ${pid}) is setting up this folder; waiting for it`),
    });
  }
  if (process.argv.includes("--redis")) await findRedis({ onProgress: say });
  if (process.argv.includes("--chromium")) await findChromium({ onProgress: say });
}

async function isReady() {
  const node = await findModernNode(cache);
  return node !== undefined && !nodeLinkIsMissing(root, node) && dependenciesState(root).fresh;
}

async function makeReady() {
  const node = (await findModernNode(cache)) ?? (await fetchPrivateNode(cache));
  const state = dependenciesState(root);
  if (!state.fresh) await installDependencies(root, node, state);
  linkNode(root, node);
}

function makeCache() {
  try {
    mkdirSync(cache, { recursive: true });
  } catch (error) {
    throw new Problem(`cannot write to ${cache} (${error.code})`, [
      "give yourself the right to write there, or clone to a folder of your own",
    ]);
  }
  if (!existsSync(join(root, "package-lock.json"))) {
    throw new Problem("package-lock.json is missing", ["restore it: git checkout package-lock.json"]);
  }
}

try {
  await bootstrap();
} catch (error) {
  if (!(error instanceof Problem)) throw error;
  process.stderr.write(`bootstrap: ${error.message}\n`);
  process.exitCode = 1;
}
