// The hot reload: notices changed policy files and hands a valid set to the app. A set with any
// problem is rejected as a whole: the last good one stays in force (P6).
//
//   alarm or 30 s ─▶ read, twice the same ─▶ check ─┬─▶ problems: config.rejected, nothing else happens
//                                                   ├─▶ means the same as the set in force: nothing
//                                                   └─▶ adopt ─▶ config.reloaded
//
// Never throws for the content of a file or disk, and never changes a set. Built by app.ts.
import { type FSWatcher, watch } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { type Clock, systemClock } from "../core/clock.ts";
import type { Component } from "../core/component.ts";
import { errorText } from "../core/errors.ts";
import type { EventLog } from "../core/event-log.ts";
import { canonicalJson, hashText } from "../core/stable-hash.ts";
import { checkPolicyFiles, type LoadedPolicies, type LoadOptions } from "./load-policies.ts";
import type { PolicySet } from "./policy-set.ts";
import type { Problem } from "./problem.ts";
import { type FileTexts, listPolicyFiles, readPolicyFiles } from "./read-policy-files.ts";

/** What the hot reload needs. */
export interface WatchOptions extends LoadOptions {
  /** The policy file, or the folder. */
  readonly path: string;
  /** The set in force at the start. */
  readonly current: PolicySet;
  /** Puts a set in force: all of it, or nothing when it throws. */
  readonly adopt: (set: PolicySet) => void;
  readonly log: EventLog;
  /** How often the files are checked without a file event; default 30 s. */
  readonly pollMs?: number;
  readonly clock?: Clock;
}

const pollMsDefault = 30_000;
/**
 * How long files must stay unchanged, so that a half-written state of an editor or `git pull` is
 * not read.
 */
const settleMs = 100;
/** The most names in one log line. */
const namesMax = 20;

/** Makes the hot reload. */
export function watchPolicies(options: WatchOptions): Component {
  return new PolicyWatch(options);
}

class PolicyWatch implements Component {
  readonly name = "policy watch";
  readonly #options: WatchOptions;
  readonly #clock: Clock;
  readonly #alarm: FolderAlarm;
  #current: PolicySet;
  /** The hashes of the last set that was read, and of the last that was checked. */
  #readHash = "";
  #checkedHash = "";
  #rejected = false;
  #refused = false;
  #stopped = false;
  #wake = new AbortController();
  #running: Promise<void> | undefined;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#current = options.current;
    this.#alarm = new FolderAlarm(options.path, () => this.#wake.abort());
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
      const settled = await this.#look();
      if (settled && !this.#stopped) await this.#clock.sleep(pollMs, this.#wake.signal);
      if (!this.#stopped) await this.#clock.sleep(settleMs);
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
    const found = await readUnmoved(path);
    if (found === undefined) return false;
    const settled = found.hash === this.#readHash;
    this.#readHash = found.hash;
    if (!settled) return found.hash === this.#checkedHash;
    if (found.hash === this.#checkedHash) return true;
    this.#checkedHash = found.hash;
    try {
      this.#take(await checkPolicyFiles(path, found.read, this.#options));
    } catch (error) {
      // Neither a bug that a file triggers nor a set that cannot be adopted may end a running
      // process.
      this.#reject({ problems: 1, message: errorText(error) });
    }
    return true;
  }

  #take(loaded: LoadedPolicies): void {
    if (!loaded.ok) {
      const [first] = loaded.problems;
      this.#reject({ problems: loaded.problems.length, ...(first === undefined ? {} : placeOf(first)) });
      return;
    }
    const { set } = loaded;
    if (set.contentHash !== this.#current.contentHash) {
      this.#options.adopt(set);
      const { policies, services, sinks } = compareSets(this.#current, set);
      this.#current = set;
      this.#options.log.info("config.reloaded", {
        config: set.contentHash,
        policies: set.policies.length,
        ...fieldsOf("policies", policies),
        services: set.services.size,
        ...fieldsOf("services", services),
        ...fieldsOf("sinks", sinks),
      });
    } else if (this.#rejected) this.#options.log.info("config.recovered", { config: set.contentHash });
    this.#rejected = false;
  }

  #reject(why: { readonly problems: number; readonly where?: string; readonly message?: string }): void {
    this.#rejected = true;
    this.#options.log.error("config.rejected", { ...why, inForce: this.#current.contentHash });
  }
}

function placeOf({ file, line, message }: Problem): { where: string; message: string } {
  return { where: line === 0 ? file : `${file}:${line}`, message };
}

/**
 * The number and the first names, e.g. `policiesAdded: 2, policiesAddedNames: ["a", "b"]`; nothing
 * without a difference.
 */
function fieldsOf(
  what: string,
  { added, changed, removed }: SetDifference,
): Record<string, number | readonly string[]> {
  return Object.fromEntries(
    Object.entries({ Added: added, Changed: changed, Removed: removed }).flatMap(([how, names]) =>
      names.length === 0
        ? []
        : [
            [`${what}${how}`, names.length],
            [`${what}${how}Names`, names.slice(0, namesMax)],
          ],
    ),
  );
}

/** Names that are new, changed or gone; each in the order of the sets. */
interface SetDifference {
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
}

/** What differs in policies, services and sinks. Comments, order and places make no difference. */
function compareSets(
  before: PolicySet,
  after: PolicySet,
): { readonly policies: SetDifference; readonly services: SetDifference; readonly sinks: SetDifference } {
  return {
    policies: compare(policyTexts(before), policyTexts(after)),
    services: compare(serviceTexts(before), serviceTexts(after)),
    sinks: compare(sinkTexts(before), sinkTexts(after)),
  };
}

function policyTexts({ policies }: PolicySet): Map<string, string> {
  return new Map(policies.map(({ where: _, ...policy }) => [policy.name, canonicalJson(policy)]));
}

function serviceTexts({ services }: PolicySet): Map<string, string> {
  return new Map(
    [...services].map(([name, service]) => [
      name,
      canonicalJson({ ...service, mapping: Object.fromEntries(service.mapping) }),
    ]),
  );
}

function sinkTexts({ sinks }: PolicySet): Map<string, string> {
  return new Map([...sinks].map(([name, sink]) => [name, canonicalJson(sink)]));
}

function compare(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): SetDifference {
  const names = [...after.keys()];
  return {
    added: names.filter((name) => !before.has(name)),
    changed: names.filter((name) => before.has(name) && before.get(name) !== after.get(name)),
    removed: [...before.keys()].filter((name) => !after.has(name)),
  };
}

/** The files' content, and a hash over all of it: names, texts and what could not be read. */
interface UnmovedRead {
  readonly read: FileTexts;
  readonly hash: string;
}

/** Reads the files of a path; undefined when one of them changed while it was read. */
export async function readUnmoved(path: string): Promise<UnmovedRead | undefined> {
  const before = await stateOf(path);
  const read = await readPolicyFiles(path);
  if (before !== (await stateOf(path))) return undefined;
  return { read, hash: hashText(JSON.stringify([read.files, read.texts, read.problems]), 64) };
}

/** The state of the files behind a path: targets of links, inodes, sizes, times. */
async function stateOf(path: string): Promise<string> {
  try {
    const files = await listPolicyFiles(path);
    return JSON.stringify(await Promise.all(files.map(fileState)));
  } catch (error) {
    return codeOf(error);
  }
}

async function fileState(file: string): Promise<string> {
  try {
    const target = await realpath(file);
    const { ino, size, mtimeNs, ctimeNs } = await stat(target, { bigint: true });
    return [target, ino, size, mtimeNs, ctimeNs].join(" ");
  } catch (error) {
    return `${file} ${codeOf(error)}`;
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}

/** Watches the folder of a path, and the path itself when it is a folder. */
class FolderAlarm {
  readonly #path: string;
  readonly #ring: () => void;
  #watchers: readonly FSWatcher[] = [];

  constructor(path: string, ring: () => void) {
    this.#path = resolve(path);
    this.#ring = ring;
  }

  /**
   * Sets the watches anew: a watch on a replaced folder stays silent. Returns why the system
   * refuses, or undefined. A missing folder is no refusal.
   */
  async set(): Promise<string | undefined> {
    const old = this.#watchers;
    const isFolder = await stat(this.#path).then(
      (found) => found.isDirectory(),
      () => false,
    );
    const name = basename(this.#path);
    const refusals: string[] = [];
    const watchers = [
      // Editors replace a file by renaming; a path may be a link that is set to another folder.
      this.#watch(dirname(this.#path), (changed) => changed === name || changed.startsWith(".."), refusals),
      isFolder
        ? this.#watch(this.#path, (changed) => changed.startsWith("..") || /\.ya?ml$/.test(changed), refusals)
        : undefined,
    ];
    this.#watchers = watchers.filter((watcher) => watcher !== undefined);
    for (const watcher of old) watcher.close();
    return refusals[0];
  }

  /** Removes all watches. */
  off(): void {
    for (const watcher of this.#watchers) watcher.close();
    this.#watchers = [];
  }

  #watch(folder: string, concerns: (changed: string) => boolean, refusals: string[]): FSWatcher | undefined {
    try {
      const watcher = watch(folder, { persistent: false }, (_event, changed) => {
        if (changed === null || concerns(changed)) this.#ring();
      });
      return watcher.on("error", () => this.#ring());
    } catch (error) {
      const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
      if (code !== "ENOENT") refusals.push(code);
      return undefined;
    }
  }
}
