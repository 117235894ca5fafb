// Takes out of an installed node_modules what is never loaded at run time: types, maps, pages,
// tests, sources beside what was built of them, builds for browsers. Called by the Dockerfile, with
// the folder; licences stay. Imports nothing but Node's own modules.
import { readdirSync, rmSync } from "node:fs";
import { join, sep } from "node:path";

const files = /(\.(map|md|markdown|html|ico|zip|yml|tsbuildinfo|sh|txt|[cm]?ts)|^\.[^/]*)$/i;
const kept = /^(licen[cs]e|copying|notice)/i;
const folders = new Set([
  "test",
  "tests",
  "__tests__",
  "docs",
  "example",
  "examples",
  "bench",
  "benchmark",
  "benchmarks",
  "coverage",
]);
// Where the package's entry lies elsewhere. luxon is asked for by `require` only.
const places = new Set([
  "zod/src",
  "js-yaml/dist/browser",
  ...["src", "build/amd", "build/cjs-browser", "build/es6", "build/global"].map((at) => `luxon/${at}`),
]);
const entriesMax = 200_000;

const [root] = process.argv.slice(2);
if (root === undefined) throw new Error("usage: prune-modules.mjs FOLDER");
const entries = readdirSync(root, { recursive: true, withFileTypes: true });
if (entries.length > entriesMax) throw new Error(`${root} holds more than ${entriesMax} entries`);
for (const entry of entries) {
  const path = join(entry.parentPath, entry.name);
  const inside = path.slice(join(root).length + 1).split(sep);
  // A package may be called like a folder that goes: its own name is not looked at.
  const depth = inside.length - (inside.lastIndexOf("node_modules") + 1);
  const ownName = depth <= (inside.at(-depth)?.startsWith("@") ? 2 : 1);
  if (entry.isDirectory()) {
    if ((!ownName && folders.has(entry.name)) || places.has(inside.join("/")))
      rmSync(path, { recursive: true, force: true });
  } else if (entry.isFile() && files.test(entry.name) && !kept.test(entry.name)) rmSync(path, { force: true });
}
rmSync(join(root, ".bin"), { recursive: true, force: true });
