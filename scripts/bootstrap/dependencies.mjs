// Tells whether node_modules holds what package-lock.json says, and installs it when not. Called by
// bootstrap.mjs. It compares contents, not times: a checkout that touches the lock file costs
// nothing.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { npmCi } from "./npm.mjs";
import { isLinkedFolder } from "./private-node.mjs";
import { say, timed } from "./run.mjs";

/**
 * Whether node_modules is as package-lock.json wants it: { fresh, why }. `why` names the first
 * difference.
 */
export function dependenciesState(root) {
  const locked = readText(join(root, "package-lock.json"));
  const installed = readText(join(root, "node_modules", ".package-lock.json"));
  if (locked === undefined) return { fresh: false, why: "package-lock.json is missing" };
  if (installed === undefined) return { fresh: false, why: "not installed yet" };
  if (readText(stampFile(root)) === stamp(locked, installed)) return { fresh: true, why: "" };
  const why = firstDifference(JSON.parse(locked).packages, JSON.parse(installed).packages, thisMachine());
  return { fresh: why === undefined, why: why ?? "" };
}

/**
 * Runs `npm ci` on the given Node, so that npm keeps what needs this Node. Where node_modules is a
 * link it only warns: what it leads to belongs to another folder.
 * @throws Problem when npm fails.
 */
export async function installDependencies(root, node, { why }) {
  if (isLinkedFolder(root)) {
    say(`node_modules is a link and not what package-lock.json wants (${why}); run npm ci where it leads to`);
    return;
  }
  await timed(`installing the dependencies (${why})`, () =>
    npmCi(root, { node, cache: join(root, ".cache"), what: "the dependencies" }),
  );
  // An optional package that cannot be had must not make every run install again.
  const [locked, installed] = ["package-lock.json", join("node_modules", ".package-lock.json")];
  writeFileSync(stampFile(root), stamp(readText(join(root, locked)), readText(join(root, installed))));
}

/**
 * The first difference between what is locked and what is installed on this machine, in words;
 * undefined when there is none. Both are the `packages` of a lock file; `machine` is { os, cpu,
 * libc }.
 */
export function firstDifference(locked, installed, machine) {
  for (const [place, entry] of Object.entries(locked)) {
    if (place === "" || entry.link) continue;
    const found = installed[place];
    if (found === undefined && isExpected(entry, machine)) return `${place} is missing`;
    if (found !== undefined && found.version !== entry.version) return `${place} is not ${entry.version}`;
    if (found !== undefined && found.integrity !== entry.integrity) return `${place} differs`;
  }
  const extra = Object.keys(installed).find((place) => locked[place] === undefined);
  return extra === undefined ? undefined : `${extra} is no longer wanted`;
}

/**
 * Required, or an optional package made for this very machine (npm on an old Node drops those
 * without a word).
 */
function isExpected({ optional, devOptional, os, cpu, libc }, machine) {
  if (!optional && !devOptional) return true;
  if (os === undefined && cpu === undefined) return false;
  const fits = (list, value) => list === undefined || list.includes(value);
  return fits(os, machine.os) && fits(cpu, machine.cpu) && fits(libc, machine.libc);
}

function thisMachine() {
  return { os: process.platform, cpu: process.arch, libc: isMusl() ? "musl" : "glibc" };
}

function isMusl() {
  try {
    return process.platform === "linux" && readdirSync("/lib").some((name) => name.startsWith("ld-musl-"));
  } catch {
    return false;
  }
}

const stampFile = (root) => join(root, "node_modules", ".bootstrap-stamp");

function stamp(...texts) {
  return createHash("sha256").update(texts.join("\n")).update(`${process.platform}-${process.arch}`).digest("hex");
}

function readText(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
