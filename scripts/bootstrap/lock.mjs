// A lock that is a directory: keeps two bootstraps of one folder apart. Called by bootstrap.mjs and
// redis-package.mjs. Taken and given back by rename, so it never exists without the note of who
// holds it. A holder that died is recognised by its process id and start time, and its lock is
// taken over.
import { randomBytes } from "node:crypto";
import {
  closeSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Problem } from "./run.mjs";

const leftoverAgeMs = 3_600_000;

/**
 * Does the work while holding the lock and gives back its result. Waits for a living holder,
 * `waitMs` at most. `onWait` is told the holder's process id once.
 * @throws Problem when the holder keeps the lock longer than that.
 */
export async function withLock(directory, work, { waitMs = 900_000, onWait = () => {} } = {}) {
  const token = `${process.pid}-${randomBytes(6).toString("hex")}`;
  const mine = `${directory}.${token}`;
  mkdirSync(mine, { recursive: true });
  writeFileSync(
    join(mine, "owner.json"),
    JSON.stringify({ pid: process.pid, startedAt: processStart(process.pid), token }),
  );
  try {
    await take(directory, mine, { deadlineMs: Date.now() + waitMs, onWait });
  } catch (error) {
    rmSync(mine, { recursive: true, force: true });
    throw error;
  }
  try {
    return await work();
  } finally {
    // Renamed first: removing in place would leave a moment in which another one's note could be
    // removed.
    renameSync(directory, mine);
    rmSync(mine, { recursive: true, force: true });
    removeLeftovers(directory);
  }
}

async function take(directory, mine, { deadlineMs, onWait }) {
  for (let waited = false; !tryRename(mine, directory); ) {
    const owner = readOwner(directory);
    if (owner === undefined) continue;
    if (!isAlive(owner)) {
      // The name holds the dead owner's token: of several who see it dead only one can rename, and
      // never a newer lock.
      tryRename(directory, `${directory}.stale-${owner.token}`);
      continue;
    }
    if (!waited) onWait(owner.pid);
    waited = true;
    if (Date.now() > deadlineMs) {
      throw new Problem(`process ${owner.pid} has held the lock ${directory} for too long`, [
        "wait for it, or end it",
        `if there is no such bootstrap, remove the lock: rm -r ${directory}`,
      ]);
    }
    await delay(50);
  }
}

function tryRename(from, to) {
  try {
    renameSync(from, to);
    return true;
  } catch (error) {
    if (["ENOTEMPTY", "EEXIST", "ENOENT", "EPERM"].includes(error.code)) return false;
    throw error;
  }
}

/**
 * Undefined when there is none by now: gone, or empty, so that the next rename gets it. A note that
 * cannot be read has a dead owner.
 */
function readOwner(directory) {
  let note;
  try {
    note = openSync(join(directory, "owner.json"));
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(error.code)) return undefined;
    throw error;
  }
  try {
    const owner = parseJson(readFileSync(note, "utf8"));
    // Never by the name alone: by now it may be another one's lock, and alive.
    return typeof owner?.token === "string"
      ? owner
      : { pid: 0, startedAt: "", token: `unreadable-${fstatSync(note).ino}` };
  } finally {
    closeSync(note);
  }
}

function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isAlive({ pid, startedAt }) {
  if (!(pid > 0)) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (error.code === "ESRCH") return false;
  }
  return processStart(pid) === startedAt;
}

/**
 * When a process started, in the kernel's ticks; the empty string where the system does not tell.
 */
function processStart(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return "";
  }
}

function removeLeftovers(directory) {
  for (const name of readdirSync(dirname(directory))) {
    const leftover = join(dirname(directory), name);
    if (!name.startsWith(`${basename(directory)}.`)) continue;
    const ageMs = Date.now() - (statSync(leftover, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
    if (ageMs > leftoverAgeMs) rmSync(leftover, { recursive: true, force: true });
  }
}
