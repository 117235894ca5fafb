// The hot reload: looks whether the policy files have changed, and offers a set that is right, whole, to whoever runs with it.
// A set with any problem is not offered: the last good one stays in force until the files are right again (P6).
//
//   alarm or 30 s ─▶ read, twice the same ─▶ check ─┬─▶ problems: config.rejected, nothing else happens
//                                                   ├─▶ means the same as the set in force: nothing
//                                                   └─▶ adopt ─▶ config.reloaded
//
// Built by app.ts. Never throws for what stands in a file or on the disk, and never changes a set.
import { type Clock, systemClock } from "../core/clock.ts";
import type { Component } from "../core/component.ts";
import { errorText } from "../core/errors.ts";
import type { EventLog } from "../core/event-log.ts";
import { compareSets, type Difference } from "./compare-sets.ts";
import { FolderAlarm } from "./folder-alarm.ts";
import { checkPolicyFiles, type LoadedPolicies, type LoadOptions } from "./load-policies.ts";
import type { PolicySet } from "./policy-set.ts";
import type { Problem } from "./problem.ts";
import { readUnmoved } from "./unmoved-read.ts";

/** What the hot reload needs. */
export interface WatchOptions extends LoadOptions {
  /** The policy file, or the folder. */
  readonly path: string;
  /** The set in force at the start. */
  readonly current: PolicySet;
  /** Puts a set in force, all of it or, when it throws, nothing. */
  readonly adopt: (set: PolicySet) => void;
  readonly log: EventLog;
  /** How often the files are looked at without an alarm; 30 s unless set. */
  readonly pollMs?: number;
  readonly clock?: Clock;
}

const pollMsDefault = 30_000;
/** How long files must stay as they are, so that half of what an editor or `git pull` writes is not taken for all of it. */
const settleMs = 100;
/** The most names that one log line holds. */
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
  /** Of what was read last, and of what was checked last. */
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
      // Before reading: a change in between rings, and is read a second time.
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

  /** Answers whether the files lie still. */
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
      // Neither a file that finds a mistake of ours nor a set that cannot be put in force may end a running Syncline.
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

/** How many, and the first names, e.g. `policiesAdded: 2, policiesAddedNames: ["a", "b"]`; nothing where nothing differs. */
function fieldsOf(what: string, { added, changed, removed }: Difference): Record<string, number | readonly string[]> {
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
