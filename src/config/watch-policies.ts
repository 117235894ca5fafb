// The hot reload: notices changed policy files and hands a valid set to the app. A set with any
// problem is rejected as a whole: the last good one stays in force (P6).
//
//   alarm or 30 s ─▶ read, twice the same ─▶ check ─┬─▶ problems: config.rejected, nothing else happens
//                                                   ├─▶ means the same as the set in force: nothing
//                                                   └─▶ adopt ─▶ config.reloaded
//
// Without an alarm, files whose links, inodes, sizes and times are as before are read every five
// minutes only: to read 168 files takes a tenth of a second of CPU.
import { type FSWatcher, watch } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { type Clock, systemClock } from "../core/clock.ts";
import type { Component } from "../core/component.ts";
import { errorCode, errorText } from "../core/errors.ts";
import type { EventLog } from "../core/event-log.ts";
import { checkPolicyFiles, type LoadedPolicies, type LoadOptions } from "./load-policies.ts";
import type { PolicySet } from "./policy-set.ts";
import type { Problem } from "./problem.ts";
import { type FileTexts, hashOfTexts, listPolicyFiles, readPolicyFiles } from "./read-policy-files.ts";
import { contentOf } from "./set-content.ts";

/** What the hot reload needs. */
export interface WatchOptions extends LoadOptions {
  /** The policy file, or the folder. */
  readonly path: string;
  /** The set in force at the start. */
  readonly current: PolicySet;
  /** Puts a set in force: all of it, or nothing when it throws. */
  readonly adopt: (set: PolicySet) => void;
  /** Hears why the newest files are not in force; undefined: they are. */
  readonly noteRejected?: (why: Rejection | undefined) => void;
  readonly log: EventLog;
  /** How often the files are checked without a file event; default 30 s. */
  readonly pollMs?: number;
  readonly clock?: Clock;
}

/** Why files were rejected: how many problems, and the first. No secret stands in it. */
export interface Rejection {
  readonly problems: number;
  readonly where?: string;
  readonly message?: string;
}

const pollMsDefault = 30_000;
/** How long files must stay unchanged: an editor or `git pull` may be half way. */
const debounceMs = 100;
const namesMax = 20;
/** How long files with the same state are not read: some file systems tell it late, or wrongly. */
const unreadMsMax = 300_000;
/** Changes of the same moment may have the same times: the newest must be so old. */
const settledMs = 10_000;

/** The hot reload. */
export class PolicyWatch implements Component {
  readonly name = "policy watch";
  readonly #options: WatchOptions;
  readonly #clock: Clock;
  readonly #alarm: FolderAlarm;
  #current: PolicySet;
  /** The calendars and samples that the last checked set names. */
  #named: readonly string[];
  /** The hashes of the last set that was read, and of the last that was checked. */
  #readHash = "";
  #checkedHash = "";
  /** The state of the files when they were read as the set in force, and how long that counts. */
  #known = { state: "", untilMs: 0 };
  /** The content that was rejected last, and why; undefined: the last one was in order. */
  #rejected: string | undefined;
  #refused = false;
  #stopped = false;
  #wake = new AbortController();
  #running: Promise<void> | undefined;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#current = options.current;
    this.#named = options.current.files.filter((file) => !/\.ya?ml$/.test(file));
    // A named file may have changed since it was read: then all is checked once more.
    if (this.#named.length === 0) this.#checkedHash = options.current.textsHash ?? "";
    this.#alarm = new FolderAlarm(options.path, () => {
      this.#known = { state: "", untilMs: 0 };
      this.#wake.abort();
    });
  }

  async start(): Promise<void> {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#wake.abort();
    await this.#running;
    this.#alarm.off();
  }

  async #run(): Promise<void> {
    const { pollMs = pollMsDefault } = this.#options;
    while (!this.#stopped) {
      this.#wake = new AbortController();
      // Set before reading: a change in between causes a second read.
      await this.#setAlarm();
      const isUnchanged = await this.#look();
      if (isUnchanged && !this.#stopped) await this.#clock.sleep(pollMs, this.#wake.signal);
      if (!this.#stopped) await this.#clock.sleep(debounceMs);
    }
  }

  async #setAlarm(): Promise<void> {
    const refusal = await this.#alarm.set();
    if (refusal !== undefined && !this.#refused) {
      const seconds = (this.#options.pollMs ?? pollMsDefault) / 1_000;
      this.#options.log.warn("config.watch-refused", {
        reason: refusal,
        detail: `changes are seen within ${seconds} s`,
      });
    }
    this.#refused = refusal !== undefined;
  }

  /** Returns whether the files are unchanged since the last check. */
  async #look(): Promise<boolean> {
    const { path } = this.#options;
    const state = await stateOf(path, this.#named);
    if (state.all === this.#known.state && this.#clock.monotonicMs() < this.#known.untilMs) return true;
    const found = await readUnmoved(path, this.#named, state);
    if (found === undefined) return false;
    const liesStill = found.hash === this.#readHash;
    this.#readHash = found.hash;
    if (found.hash === this.#checkedHash) this.#noteKnown(state);
    if (!liesStill) return found.hash === this.#checkedHash;
    if (found.hash === this.#checkedHash) return true;
    this.#checkedHash = found.hash;
    let content = found.hash;
    try {
      const loaded = await checkPolicyFiles(path, found.read, this.#options);
      const { files } = loaded.ok ? loaded.set : loaded;
      this.#named = files.filter((file) => !found.read.files.includes(file));
      // With other named files than before, the same content is checked once more.
      content = hashOfTexts(found.read, stateTexts(await statesOf(this.#named)));
      this.#take(loaded, content);
    } catch (error) {
      // Neither a bug that a file triggers nor a set that cannot be adopted may end a running
      // process.
      this.#reject({ problems: 1, message: errorText(error) }, content);
    }
    return true;
  }

  /** The files were just read in this state, and are what was checked last. */
  #noteKnown({ all, changedMs }: FilesState): void {
    const isSettled = this.#clock.nowMs() - changedMs >= settledMs;
    if (!isSettled || this.#rejected !== undefined) return;
    this.#known = { state: all, untilMs: this.#clock.monotonicMs() + unreadMsMax };
  }

  #take(loaded: LoadedPolicies, content: string): void {
    if (!loaded.ok) {
      const [first] = loaded.problems;
      this.#reject({ problems: loaded.problems.length, ...(first === undefined ? {} : placeOf(first)) }, content);
      return;
    }
    const { set } = loaded;
    if (set.contentHash !== this.#current.contentHash) {
      this.#options.adopt(set);
      const before = this.#current;
      this.#current = set;
      this.#options.log.info("config.reloaded", {
        config: set.contentHash,
        policies: set.policies.length,
        services: set.services.size,
        ...differences(before, set),
      });
    } else if (this.#rejected !== undefined) this.#options.log.info("config.recovered", { config: set.contentHash });
    this.#rejected = undefined;
    this.#options.noteRejected?.(undefined);
  }

  #reject(why: Rejection, content: string): void {
    const rejected = JSON.stringify([content, why]);
    const isKnown = rejected === this.#rejected;
    this.#rejected = rejected;
    this.#options.noteRejected?.(why);
    if (!isKnown) this.#options.log.error("config.rejected", { ...why, inForce: this.#current.contentHash });
  }
}

function placeOf({ file, line, message }: Problem): { where: string; message: string } {
  return { where: line === 0 ? file : `${file}:${line}`, message };
}

/** The parts of a set by name, as texts that show a changed meaning. */
function textsOf(set: PolicySet): Readonly<Record<string, ReadonlyMap<string, string>>> {
  const texts = { policies: new Map(), services: new Map(), sinks: new Map(), calendars: new Map() };
  for (const [what, name, text] of contentOf(set)) texts[what].set(name, text);
  return texts;
}

/** What is added, changed or removed: `policiesAdded: 2`, `policiesAddedNames` and the like. */
function differences(before: PolicySet, after: PolicySet): Record<string, number | readonly string[]> {
  const old = textsOf(before);
  const fields = Object.entries(textsOf(after)).flatMap(([what, texts]) => {
    const known = old[what] ?? new Map<string, string>();
    const names = [...texts.keys()];
    return [
      [`${what}Added`, names.filter((name) => !known.has(name))] as const,
      [`${what}Changed`, names.filter((name) => known.has(name) && known.get(name) !== texts.get(name))] as const,
      [`${what}Removed`, [...known.keys()].filter((name) => !texts.has(name))] as const,
    ];
  });
  return Object.fromEntries(
    fields.flatMap(([what, names]) =>
      names.length === 0
        ? []
        : [
            [what, names.length],
            [`${what}Names`, names.slice(0, namesMax)],
          ],
    ),
  );
}

/** What shows that a file has changed, without reading it. */
interface FileState {
  /** The target of links, inode, size and times. */
  readonly text: string;
  /** Its newest change, by the file system; Infinity when that is not known. */
  readonly changedMs: number;
}

/** The state of the files behind a path. */
interface FilesState {
  readonly files: string;
  /** Of those that they name. */
  readonly named: readonly string[];
  /** Of all of them, and of the path itself. */
  readonly all: string;
  readonly changedMs: number;
}

/**
 * Reads the files of a path, and hashes them with the state of those that they name; undefined when
 * one changed while it was read. `before`: their state right now.
 */
export async function readUnmoved(
  path: string,
  named: readonly string[] = [],
  before?: FilesState,
): Promise<{ read: FileTexts; hash: string } | undefined> {
  const state = before ?? (await stateOf(path, named));
  const read = await readPolicyFiles(path);
  if (state.files !== stateTexts(await statesIn(path)).join()) return undefined;
  return { read, hash: hashOfTexts(read, state.named) };
}

async function stateOf(path: string, named: readonly string[]): Promise<FilesState> {
  const [own, others, place] = await Promise.all([statesIn(path), statesOf(named), statesOf([path])]);
  const all = [...own, ...others, ...place];
  return {
    files: stateTexts(own).join(),
    named: stateTexts(others),
    all: stateTexts(all).join(),
    changedMs: all.reduce((newest, { changedMs }) => Math.max(newest, changedMs), 0),
  };
}

/** The states of the policy files of a path, or why it cannot be read. */
async function statesIn(path: string): Promise<FileState[]> {
  try {
    return await statesOf(await listPolicyFiles(path));
  } catch (error) {
    return [{ text: errorCode(error), changedMs: Number.POSITIVE_INFINITY }];
  }
}

function statesOf(files: readonly string[]): Promise<FileState[]> {
  return Promise.all(files.map(stateOfFile));
}

function stateTexts(states: readonly FileState[]): string[] {
  return states.map(({ text }) => text);
}

async function stateOfFile(file: string): Promise<FileState> {
  try {
    const target = await realpath(file);
    const { ino, size, mtimeNs, ctimeNs } = await stat(target, { bigint: true });
    const changedNs = mtimeNs > ctimeNs ? mtimeNs : ctimeNs;
    return { text: [target, ino, size, mtimeNs, ctimeNs].join(" "), changedMs: Number(changedNs / 1_000_000n) };
  } catch (error) {
    return { text: `${file} ${errorCode(error)}`, changedMs: Number.POSITIVE_INFINITY };
  }
}

class FolderAlarm {
  readonly #path: string;
  readonly #ring: () => void;
  #watchers: FSWatcher[] = [];

  constructor(path: string, ring: () => void) {
    this.#path = resolve(path);
    this.#ring = ring;
  }

  /** Sets the watches anew: one on a replaced folder is silent. Returns why the system refuses. */
  async set(): Promise<string | undefined> {
    const old = this.#watchers;
    const isFolder = await stat(this.#path).then(
      (found) => found.isDirectory(),
      () => false,
    );
    const name = basename(this.#path);
    const refusals: string[] = [];
    this.#watchers = [];
    // Editors replace a file by renaming; a path may be a link that is set to another folder.
    this.#watch(dirname(this.#path), (changed) => changed === name || changed.startsWith(".."), refusals);
    if (isFolder)
      this.#watch(this.#path, (changed) => changed.startsWith("..") || /\.(ya?ml|ics|json)$/.test(changed), refusals);
    for (const watcher of old) watcher.close();
    return refusals[0];
  }

  /** Removes all watches. */
  off(): void {
    for (const watcher of this.#watchers) watcher.close();
    this.#watchers = [];
  }

  #watch(folder: string, concerns: (changed: string) => boolean, refusals: string[]): void {
    try {
      const watcher = watch(folder, { persistent: false }, (_event, changed) => {
        if (changed === null || concerns(changed)) this.#ring();
      });
      this.#watchers.push(watcher.on("error", () => this.#ring()));
    } catch (error) {
      const code = errorCode(error);
      if (code !== "ENOENT") refusals.push(code);
    }
  }
}
