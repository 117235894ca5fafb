// The start journal: what is known about the one request that a task may send. tasks/ calls it
// around every POST.
//
//   (none) ──claim──▶ claimed ──beginSending──▶ sending ──answered──▶ answered ──▶ settled (History.record)
//                      ▲ ▲ └─ claimed again      │  │ ▲ └────────────settled──────────▲
//                      │ └───────────────────────┘  └─┘ sendAgain, where tasks/ decides so
//  notSent, by the owner
//   (none) ──tryAcquireAndSend: claim, lease, permission──▶ sending ──History.record──▶ settled
//   claimed, over masks ──planFanOut, by the owner──▶ claimed ──fannedOut: tasks queued──▶ settled
//
// Only the step to `sending` permits the request. It succeeds at most once per task: for the newest
// claimant, and not after the start-by time. A task found `sending` without an answer is sent again
// only under `onUnknown: retry`, or once the run is shown to be absent.
import { randomUUID } from "node:crypto";
import { systemClock } from "../core/clock.ts";
import { isDenied, noVerdict } from "../core/limiter.ts";
import { isRedisOutage } from "../core/redis-outage.ts";
import type { Task } from "../model/task.ts";
import { type Attributable, type Attributed, attributeActivities, inFlightMs } from "./attributed.ts";
import { feedStatusKey } from "./feed-keys.ts";
import {
  answeredScript,
  claimScript,
  closeScript,
  fannedOutScript,
  finishSeenScript,
  noteScript,
  notSentScript,
  planFanOutScript,
  sendAgainScript,
  sendScript,
  tryAcquireAndSendScript,
} from "./journal-scripts.ts";
import { type LeaseSubject, leaseKey } from "./leases.ts";
import { notifyStreamKey } from "./notify-store.ts";
import type { Store } from "./redis.ts";
import type { RedisWatch } from "./redis-watch.ts";
import type { AtOnce, AtOnceIntent } from "./service-limiter.ts";
import {
  type AnswerLoss,
  entryKey,
  inFlightKey,
  type JournalTask,
  type Permission,
  type StartEntry,
  toEntry,
  toLoss,
  toPermission,
  toTexts,
} from "./start-entry.ts";

/** How long an entry is kept after its last step. */
export const entryRetentionMs = 30 * 86_400_000;
/**
 * How often and how many times the worker tries to take back a permission after a lost answer of
 * Redis: two minutes, while Redis is out of reach.
 */
const takeBackEveryMs = 1_000;
const takeBackRoundsMax = 120;

/** The intent of a request. `slotMs` tells whether a loss of Redis's memory touches the task. */
interface Intent {
  readonly startByMs: number;
  readonly slotMs?: number;
}

/** The start journal in Redis. */
export class StartJournal {
  readonly #store: Store;
  readonly #watch: RedisWatch | undefined;

  /** Without a watch the journal trusts Redis: for readers and tests. */
  constructor(store: Store, watch?: RedisWatch) {
    this.#store = store;
    this.#watch = watch;
  }

  /**
   * Claims a start for this owner, unless it is beyond `claimed`; answers its entry. The same step
   * prolongs the `lease` of a start under way.
   * @throws NewerVersionError when a newer version of Syncline works on it.
   */
  async claim(taskId: string, owner: string, lease?: LeaseSubject & { readonly leaseMs: number }): Promise<StartEntry> {
    const keys = lease === undefined ? [] : [leaseKey(this.#store, lease)];
    const args = [owner, entryRetentionMs, taskId, lease?.leaseMs ?? ""];
    return toEntry(await claimScript(this.#store, [this.#key(taskId), ...keys], args));
  }

  /**
   * Reads an entry; undefined when no worker has claimed the start, or Redis dropped it (30 days
   * after its last step).
   */
  async entry(taskId: string): Promise<StartEntry | undefined> {
    const fields = Object.entries(await this.#store.redis.hgetall(this.#key(taskId))).flat();
    return fields.length === 0 ? undefined : toEntry(fields);
  }

  /**
   * Asks for the one permission to send. The same step writes intent and baseline; where Redis has
   * replicas, they get it before the answer. `knownSeq`, without a baseline: how far the feed was
   * known.
   */
  async beginSending(
    task: JournalTask,
    owner: string,
    intent: Intent & { readonly baseline: string; readonly knownSeq?: number | undefined },
  ): Promise<Permission> {
    const { startByMs, baseline, knownSeq = "", slotMs = 0 } = intent;
    return this.#permit(task, { owner, slotMs }, (keys, fence) =>
      sendScript(this.#store, keys, [owner, startByMs, baseline, task.id, inFlightMs, knownSeq, ...fence]),
    );
  }

  /**
   * The fast path of a plain start, in one step: claims it, takes its lease, notes how far its feed
   * is known and asks for the permission. Answers undefined when an obstacle stands: nothing may be
   * sent then, and `claim`, the lease and `beginSending` name the obstacle.
   */
  async tryAcquireAndSend(task: JournalTask, owner: string, intent: AtOnceIntent): Promise<AtOnce | undefined> {
    const watch = this.#watch;
    if (watch?.mayAsk() === false) return undefined;
    const { startByMs, slotMs = 0, leaseMs = "", notesFeed, entrance } = intent;
    const { keys, term } = watch?.fence() ?? { keys: [], term: "" };
    const feed = feedStatusKey(this.#store, { ...task, list: "activities" });
    const before = [...this.#keys(task), leaseKey(this.#store, task), feed, ...keys];
    const { keys: limiterKeys = [], want = [] } = entrance ?? {};
    const flags = [leaseMs, notesFeed ? 1 : 0, term, slotMs, entrance === undefined ? 0 : before.length + 1];
    const args = [owner, startByMs, task.id, entryRetentionMs, inFlightMs, ...flags, randomUUID(), ...want];
    const asked = tryAcquireAndSendScript(this.#store, [...before, ...limiterKeys], args);
    const answer = await this.#orTakenBack(asked, task, owner);
    if (!Array.isArray(answer)) return undefined;
    const [limiter, sentAtMs, intents]: unknown[] = answer;
    const permit = entrance?.read(limiter);
    if (permit !== undefined && isDenied(permit)) return { hold: permit };
    let isKept = false;
    try {
      isKept = await this.#isKept(task, owner, Number(intents));
    } finally {
      // Also when Redis is lost meanwhile: the place stays taken until its lease ends.
      if (!isKept) void permit?.release(noVerdict);
    }
    return isKept ? { sentAtMs: Number(sentAtMs), pass: permit } : undefined;
  }

  /**
   * Asks to send once more: the fate of the requests so far is unknown (`onUnknown: retry`), or
   * they are shown to be absent. `sends`, `sender`: how many they were, and the owner of the
   * newest.
   */
  async sendAgain(
    task: JournalTask,
    owner: string,
    state: Intent & { readonly sends: number; readonly sender: string },
  ): Promise<Permission> {
    const { startByMs, sends, sender, slotMs = 0 } = state;
    return this.#permit(task, { owner, slotMs }, (keys, fence) =>
      sendAgainScript(this.#store, keys, [owner, startByMs, sends, sender, ...fence]),
    );
  }

  /** Notes that the service accepted the start, or that an activity proves it. */
  async answered(task: JournalTask, shownBy: "answer" | "evidence" = "evidence"): Promise<void> {
    await answeredScript(this.#store, this.#keys(task), [task.id, shownBy]);
  }

  /**
   * Takes the permission back: this owner's request surely did not reach the service. The task may
   * claim and send again, unless an earlier request is undecided.
   */
  async notSent(task: JournalTask, owner: string): Promise<void> {
    await notSentScript(this.#store, this.#keys(task), [owner, task.id]);
  }

  /**
   * Takes a start without an outcome of its own out of flight, as the activation before a run.
   * `isOver` settles it, too.
   */
  async close(task: JournalTask, { isOver }: { readonly isOver: boolean }): Promise<void> {
    await closeScript(this.#store, this.#keys(task), [task.id, entryRetentionMs, isOver ? 1 : 0]);
  }

  /**
   * Attributes these activities of the task's sync job, oldest first, each to at most one start.
   */
  attribute(task: JournalTask, activities: readonly Attributable[]): Promise<Attributed> {
    return attributeActivities(this.#store, task, activities);
  }

  /** Notes why the answer is missing. The first note stays; answers the one that stands. */
  async answerLost(taskId: string, loss: AnswerLoss): Promise<AnswerLoss> {
    return toLoss(await noteScript(this.#store, [this.#key(taskId)], ["lost", JSON.stringify(loss)]));
  }

  /** Notes that nothing blocks the start any more; answers since when. */
  async ready(taskId: string): Promise<number> {
    return Number(await noteScript(this.#store, [this.#key(taskId)], ["readyAtMs", ""]));
  }

  /** Takes that note back: what was known then is too old to use. */
  async notReady(taskId: string): Promise<void> {
    await this.#store.redis.hdel(this.#key(taskId), "readyAtMs");
  }

  /**
   * Notes that these activities, as one text, are finished; answers since when the same ones are.
   * Others begin anew; undefined, one of them goes on, removes the note.
   */
  async finishSeen(taskId: string, activities: string | undefined): Promise<number | undefined> {
    const answer = await finishSeenScript(this.#store, [this.#key(taskId)], [activities ?? ""]);
    return answer === null ? undefined : Number(answer);
  }

  /**
   * Notes that an observation was unreadable, so that it says nothing of the newest request;
   * answers when the first such one was.
   */
  async unreadable(taskId: string, nowMs: number): Promise<number> {
    return Number(await noteScript(this.#store, [this.#key(taskId)], ["unreadableAtMs", nowMs]));
  }

  /** Notes until when limits block the verification of the start. */
  async heldUntil(taskId: string, untilMs: number): Promise<void> {
    await this.#store.redis.hset(this.#key(taskId), "heldUntilMs", untilMs);
  }

  /**
   * Asks whether the tasks of these sync jobs (at most 1,000) may replace this one: only if this
   * owner still has the claim. Later claimants find the sync jobs in the entry, earlier ones cannot
   * end it. The same step notifies the policy's sinks, where `isTold`.
   */
  async planFanOut(
    { id, policy, slotMs }: Pick<Task, "id" | "policy" | "slotMs">,
    claim: { readonly owner: string; readonly isTold: boolean },
    targets: readonly string[],
  ): Promise<boolean> {
    const keys = [this.#key(id), notifyStreamKey(this.#store)];
    const { owner, isTold } = claim;
    return (
      (await planFanOutScript(this.#store, keys, [owner, JSON.stringify(targets), policy, slotMs, isTold ? 1 : 0])) ===
      1
    );
  }

  /** Notes that other tasks replace this one and settles it. */
  async fannedOut(taskId: string, into: readonly string[]): Promise<void> {
    await fannedOutScript(this.#store, [this.#key(taskId)], [JSON.stringify(into), entryRetentionMs]);
  }

  /** Returns the ids of the tasks that replace this one; undefined when there are none as yet. */
  async expandedInto(taskId: string): Promise<readonly string[] | undefined> {
    return toTexts(await this.#store.redis.hget(this.#key(taskId), "expanded"));
  }

  #key(taskId: string): string {
    return entryKey(this.#store, taskId);
  }

  /**
   * Asks the script for a permission, unless Redis is unsafe. Takes it back when no replica has the
   * intent.
   */
  async #permit(
    task: JournalTask,
    { owner, slotMs }: { owner: string; slotMs: number },
    ask: (keys: readonly string[], fence: readonly (string | number)[]) => Promise<unknown>,
  ): Promise<Permission> {
    const watch = this.#watch;
    if (watch?.mayAsk() === false) return "hold";
    const { keys, term } = watch?.fence() ?? { keys: [], term: "" };
    const answer = await this.#orTakenBack(
      ask([...this.#keys(task), ...keys], [term, slotMs, randomUUID()]),
      task,
      owner,
    );
    const [permission, count] = String(answer).split(" ");
    if (permission !== "permitted") return toPermission(permission);
    return (await this.#isKept(task, owner, Number(count))) ? "permitted" : "hold";
  }

  /**
   * Whether a permission holds: where Redis has replicas, one of them has the intent. Otherwise it
   * is taken back.
   */
  async #isKept(task: JournalTask, owner: string, intents: number): Promise<boolean> {
    if (this.#watch === undefined) return true;
    const isKept = await this.#orTakenBack(this.#watch.reachReplica(intents), task, owner);
    // No request goes out otherwise, so a Redis that forgets those intents loses no start.
    if (isKept) this.#watch.noteIntents(intents);
    else await this.notSent(task, owner);
    return isKept;
  }

  /**
   * A lost answer may still be a permission, as soon as Redis thaws. The worker takes it back right
   * behind it, on the same connection or on later ones. A permission found before that, or after
   * this process died, belongs to a start of unknown fate.
   */
  #orTakenBack<T>(asked: Promise<T>, task: JournalTask, owner: string): Promise<T> {
    asked.catch(() => this.#takeBack(task, owner));
    return asked;
  }

  async #takeBack(task: JournalTask, owner: string): Promise<void> {
    for (let round = 1; round <= takeBackRoundsMax; round += 1) {
      const error = await this.notSent(task, owner).then(
        () => undefined,
        (reason: unknown) => reason,
      );
      if (error === undefined || !isRedisOutage(error) || this.#store.redis.status === "end") return;
      await systemClock.sleep(takeBackEveryMs);
    }
  }

  #keys(task: JournalTask): string[] {
    return [this.#key(task.id), inFlightKey(this.#store, task)];
  }
}
