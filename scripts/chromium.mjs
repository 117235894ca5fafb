// Finds a Chromium for the browser tests: CHROMIUM, one on PATH, or Debian's or Ubuntu's packages,
// unpacked into .cache/ without root and without installing. Called by bootstrap.mjs and by the
// tests' set-up. Its types are in chromium.d.mts.
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { withLock } from "./bootstrap/lock.mjs";
import { findOnPath, Problem, run, timed } from "./bootstrap/run.mjs";
import { libraryFolders, privateLists } from "./redis/debian-package.mjs";

const localCache = join(dirname(dirname(fileURLToPath(import.meta.url))), ".cache");
const names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/** Where it is, and with which environment it starts. @throws Problem when none can be had. */
export async function findChromium({ env = process.env, cache = localCache, onProgress = () => {} } = {}) {
  const path = env.PATH ?? "";
  if (env.CHROMIUM) return { command: env.CHROMIUM, env: {} };
  const installed = names.map((name) => findOnPath(name, path)).find((found) => found !== undefined);
  if (installed !== undefined) return { command: installed, env: {} };
  const root = join(cache, `chromium-${process.arch}`);
  const tools = { apt: findOnPath("apt-get", path), dpkg: findOnPath("dpkg", path) };
  let why = "it has no apt-get and dpkg";
  if (!existsSync(root) && tools.apt !== undefined && tools.dpkg !== undefined) {
    mkdirSync(cache, { recursive: true });
    await withLock(`${root}.lock`, async () => {
      if (!existsSync(root))
        why = await timed("unpacking a private Chromium (90 MB, once)", () => unpack({ ...tools, root }), onProgress);
    });
  }
  if (existsSync(root)) return unpacked(root);
  throw new Problem(`no Chromium can be had on this machine (${why}), so the pages cannot be tested`, [
    "install chromium and put it on PATH",
    "or set CHROMIUM to one, e.g. CHROMIUM=/opt/chrome/chrome",
  ]);
}

function unpacked(root) {
  return {
    command: join(root, "usr", "lib", "chromium", "chromium"),
    env: {
      LD_LIBRARY_PATH: libraryFolders(root).join(":"),
      FONTCONFIG_FILE: join(root, "fonts.conf"),
    },
  };
}

/** Unpacks it; answers why that failed, or undefined. */
async function unpack({ apt, dpkg, root }) {
  let why;
  const stage = `${root}.stage`;
  rmSync(stage, { recursive: true, force: true });
  const downloads = join(stage, "downloads");
  const unpackTo = join(stage, "root");
  // First with the lists that the machine has; if that fails, with lists of our own.
  for (const options of [[], undefined]) {
    const own = options ?? privateLists(join(stage, "lists"));
    if (options === undefined) await run(apt, [...own, "-qq", "update"], { timeoutMs: 300_000 });
    mkdirSync(downloads, { recursive: true });
    // What lies in apt's own archive would not be named: let it see an empty one.
    const archive = join(stage, "archives");
    mkdirSync(join(archive, "partial"), { recursive: true });
    const wanted = ["install", "--no-install-recommends", "--print-uris", "-qq", "chromium", "fonts-liberation"];
    const listed = await run(apt, [...own, "-o", `Dir::Cache::archives=${archive}`, ...wanted], { timeoutMs: 60_000 });
    // `'http://…/chromium_156_amd64.deb' chromium_156_amd64.deb 85000000 SHA256:…`
    const packages = listed.stdout.split("\n").flatMap((line) => / (\S+?)_(\S+?)_\S+\.deb /.exec(line)?.[1] ?? []);
    why = `apt-get names no packages: ${lastLine(listed.stderr)}`;
    if (listed.code !== 0 || packages.length === 0) continue;
    const got = await run(apt, [...own, "-qq", "download", ...packages], { cwd: downloads, timeoutMs: 600_000 });
    why = `apt-get download failed: ${lastLine(got.stderr)}`;
    if (got.code !== 0) continue;
    for (const file of readdirSync(downloads)) await run(dpkg, ["-x", join(downloads, file), unpackTo]);
    // A package that the machine has already is not downloaded: its fonts are there.
    const folders = [join(root, "usr/share/fonts"), "/usr/share/fonts"].map((folder) => `<dir>${folder}</dir>`);
    const names = ["system-ui", "sans-serif"].map(
      (name) => `<alias><family>${name}</family><prefer><family>Liberation Sans</family></prefer></alias>`,
    );
    // Without the machine's own rules every family is the first font that is found.
    const rules = [join(root, "etc/fonts/fonts.conf"), "/etc/fonts/fonts.conf"].map(
      (file) => `<include ignore_missing="yes">${file}</include>`,
    );
    const parts = [...folders, ...names, ...rules].join("");
    const fonts = `<?xml version="1.0"?><fontconfig>${parts}<cachedir>${join(root, "fonts-cache")}</cachedir></fontconfig>`;
    writeFileSync(join(unpackTo, "fonts.conf"), fonts);
    const { command, env } = unpacked(unpackTo);
    const says = await run(command, ["--version"], { env: { ...process.env, ...env }, timeoutMs: 20_000 });
    why = `what was unpacked does not start: ${lastLine(says.stderr)}`;
    if (!/^Chromium /.test(says.stdout)) continue;
    renameSync(unpackTo, root);
    why = undefined;
    break;
  }
  rmSync(stage, { recursive: true, force: true });
  return why;
}

function lastLine(text) {
  return text.trim().split("\n").at(-1);
}
