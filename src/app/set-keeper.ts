// Keeps the policy set in force in Redis, and notes what this process runs: at its start, at each
// reload, and again when Redis has lost it, or has one that only older processes run or none. Built
// by app.ts; a failure stops nothing.
import { hostname } from "node:os";
import { resolve } from "node:path";
import { pid } from "node:process";
import type { PolicySet } from "../config/policy-set.ts";
import type { Rejection } from "../config/watch-policies.ts";
import { systemClock, withTimeLimit } from "../core/clock.ts";
import type { Component } from "../core/component.ts";
import { errorText } from "../core/errors.ts";
import type { EventLog } from "../core/event-log.ts";
import { NewerVersionError } from "../core/newer-version.ts";
import { toPlainText } from "../core/plain-text.ts";
import { version } from "../core/version.ts";
import { keepPolicySet, noteReplica, type Replica, readKeptNote, readReplicas } from "../store/kept-policies.ts";
import { redisTimeMs, type Store } from "../store/redis.ts";
import type { RedisGuard } from "./redis-guard.ts";

interface KeeperOptions {
  readonly store: Store;
  readonly guard: Pick<RedisGuard, "isSafe" | "watch" | "mayBeForeign">;
  readonly set: PolicySet;
  readonly roles: readonly string[];
  readonly path: string | undefined;
  readonly log: EventLog;
  /** How long no live process has run the kept set before this one replaces it. */
  readonly awayForMs: number;
}

const noteEveryMs = 10_000;
const stopWithinMs = 500;
const messageCharactersMax = 300;

/** The keeper of one process. */
export class SetKeeper implements Component {
  readonly name = "set keeper";
  readonly #options: KeeperOptions;
  #set: PolicySet;
  #isKept = false;
  /** Since when no live process has run the kept set, by Redis; undefined: one does. */
  #awaySinceMs: number | undefined;
  #sinceMs: number | undefined;
  #rejection: Rejection | undefined;
  #rejectedSinceMs: number | undefined;
  #failure = "";
  #busy: Promise<void> = Promise.resolve();
  #isWaiting = false;
  #endTicks: (() => void) | undefined;

  constructor(options: KeeperOptions) {
    this.#options = options;
    this.#set = options.set;
  }

  async start(): Promise<void> {
    this.#endTicks = systemClock.every(noteEveryMs, () => this.#note());
    this.#note();
    await this.#busy;
  }

  async stop(): Promise<void> {
    this.#endTicks?.();
    await withTimeLimit(this.#busy, stopWithinMs, () => new Error("no answer")).catch(() => {});
  }

  /** Notes that this process runs another set now. */
  adopt(set: PolicySet): void {
    this.#set = set;
    this.#isKept = false;
    this.#sinceMs = undefined;
    this.#note();
  }

  /** Notes why newer files are not in force; undefined: they are. */
  noteRejected(why: Rejection | undefined): void {
    if (why === undefined) this.#rejectedSinceMs = undefined;
    const isNew = why?.message !== this.#rejection?.message || why?.where !== this.#rejection?.where;
    this.#rejection = why;
    if (isNew) this.#note();
  }

  /** At most one write waits behind the present one: it writes what is so then. */
  #note(): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    this.#busy = this.#busy
      .then(() => {
        this.#isWaiting = false;
        return this.#write();
      })
      .then(() => this.#noteFailure(""))
      .catch((error: unknown) => this.#noteFailure(errorText(error)));
  }

  async #write(): Promise<void> {
    const { store, guard, roles, path = null } = this.#options;
    const nowMs = await redisTimeMs(store);
    const set = this.#set;
    this.#sinceMs ??= nowMs;
    const where = `${hostname()}/${pid}`;
    const rejected = this.#showRejection(nowMs);
    const replica: Replica = {
      // Under another owner's prefix it works on nothing, so it runs no set.
      ...{ v: 1, where, roles: guard.mayBeForeign ? [] : [...roles], version, hash: set.contentHash, path },
      ...{ sinceMs: this.#sinceMs, rejected },
    };
    const isThere = await noteReplica(store, guard.watch.process, replica);
    if (isThere && !(await this.#mayReplace(replica, nowMs))) return;
    // Under another owner's prefix this process runs nothing, and its set is not the one.
    if (!guard.isSafe()) return;
    await keepPolicySet(store, set, where);
    this.#isKept = set === this.#set;
  }

  /**
   * Whether this set takes the place of the kept one. After its first time it does so again only
   * where no live process that began later runs the kept one: so two never replace each other.
   */
  async #mayReplace({ hash, path, sinceMs }: Replica, nowMs: number): Promise<boolean> {
    if (!this.#isKept && path !== null) return true;
    const { store, awayForMs } = this.#options;
    try {
      const replicas = (await readReplicas(store)).filter((one) => one.roles.length > 0);
      const followed = replicas.filter((one) => one.path !== null);
      // The set of `run --wait`, whose file is not followed, takes the place of none that is.
      if (path === null && followed.length > 0) return false;
      const kept = await readKeptNote(store);
      if (!this.#isKept || kept === undefined) return true;
      const rivals = (path === null ? replicas : followed).filter((one) => one.hash === kept.hash);
      const isAway = kept.hash !== hash && rivals.length === 0;
      this.#awaySinceMs = isAway ? (this.#awaySinceMs ?? nowMs) : undefined;
      // They may restart: until they are back, older policies must not count as the newest.
      if (this.#awaySinceMs !== undefined) return nowMs - this.#awaySinceMs >= awayForMs;
      return kept.hash !== hash && rivals.every((one) => one.sinceMs < sinceMs);
    } catch (error) {
      if (error instanceof NewerVersionError) return false;
      throw error;
    }
  }

  #showRejection(nowMs: number): Replica["rejected"] {
    if (this.#rejection === undefined) return null;
    const { problems, where: given, message = "" } = this.#rejection;
    // Processes may name the same file by other paths.
    const where = given === undefined ? "" : resolve(given);
    this.#rejectedSinceMs ??= nowMs;
    return { sinceMs: this.#rejectedSinceMs, problems, where, message: toPlainText(message, messageCharactersMax) };
  }

  /** The next tick tries again. */
  #noteFailure(message: string): void {
    if (message !== "" && message !== this.#failure) this.#options.log.warn("config.not-kept", { message });
    this.#failure = message;
  }
}
