// The start journal: what is known about the one request that a task may send. Called by work/ around every POST.
//
//   (none) ──claim──▶ claimed ──beginSending──▶ sending ──answered──▶ answered ──▶ settled (History.record, with the outcome)
//                      ▲ ▲ └─ claimed again      │  │ ▲ └─────────────settled──────────▲
//                      │ └───────────────────────┘  └─┘ sendAgain, where work/ decides so
//                        notSent, by the owner
//   (none) ──sendAtOnce: claim, lease and permission in one step──▶ sending ──History.record, the answer being the outcome──▶ settled
//   claimed, over masks ──willExpand: names its sync jobs, by the owner──▶ claimed ──expanded: their tasks are queued──▶ settled
//
// Only the step to `sending` permits the request, and it succeeds at most once per task: for the newest claimant, and
// not after the task's start-by time. A task that is found `sending` without an answer is sent again by `onUnknown: retry`, or once it is shown to be absent.
import { isHold, unsaid } from "../core/gate.ts";
import type { AtOnce, AtOnceIntent } from "./at-once.ts";
import { type Attributable, type Attributed, attributeActivities, inFlightMs } from "./attributed.ts";
import { feedStatusKey } from "./feed-keys.ts";
import {
  answeredScript,
  claimScript,
  closeScript,
  expandedScript,
  noteScript,
  notSentScript,
  sendAgainScript,
  sendAtOnceScript,
  sendScript,
  willExpandScript,
} from "./journal-scripts.ts";
import { type LeaseSubject, leaseKey } from "./leases.ts";
import type { Store } from "./redis.ts";
import type { RedisWatch } from "./redis-watch.ts";
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
/** What permits a request. `slotMs`: of the task, to know whether a loss of Redis's memory touches it. */
interface Intent {
  readonly startByMs: number;
  readonly slotMs?: number;
}

/** The start journal in Redis. */
export class StartJournal {
  readonly #store: Store;
  readonly #watch: RedisWatch | undefined;

  /** Without a watch, nobody asks whether Redis can be trusted: for readers and for tests. */
  constructor(store: Store, watch?: RedisWatch) {
    this.#store = store;
    this.#watch = watch;
  }

  /**
   * Claims a start for this owner, unless it has gone further already; answers what stands there now. `lease`: what it holds while it is
   * under way, prolonged in the same step.
   * @throws NewerVersionError when a newer version of Syncline has it in work.
   */
  async claim(taskId: string, owner: string, lease?: LeaseSubject & { readonly leaseMs: number }): Promise<StartEntry> {
    const keys = lease === undefined ? [] : [leaseKey(this.#store, lease)];
    const args = [owner, entryRetentionMs, taskId, lease?.leaseMs ?? ""];
    return toEntry(await claimScript(this.#store, [this.#key(taskId), ...keys], args));
  }

  /** What stands there; undefined when nobody has claimed the start, or it was forgotten (30 days after its last step). */
  async entry(taskId: string): Promise<StartEntry | undefined> {
    const fields = Object.entries(await this.#store.redis.hgetall(this.#key(taskId))).flat();
    return fields.length === 0 ? undefined : toEntry(fields);
  }

  /**
   * Asks for the one permission to send. The intent and the baseline are written in the same step, and where Redis has replicas
   * one of them has it too. `knownSeq` where there is no baseline: how far the feed was known at some time.
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
   * The whole way of a plain start in one step: claims it, takes its lease, notes how far its feed is known, and asks for the permission.
   * Answers since when (by Redis) the request may go out; undefined when anything stands in the way. Then nothing may be sent,
   * and `claim`, the lease and `beginSending` tell what it is.
   */
  async sendAtOnce(task: JournalTask, owner: string, intent: AtOnceIntent): Promise<AtOnce | undefined> {
    const watch = this.#watch;
    if (watch?.mayAsk() === false) return undefined;
    const { startByMs, slotMs = 0, leaseMs = "", notesFeed, entrance } = intent;
    const { keys, term } = watch?.fence() ?? { keys: [], term: "" };
    const feed = feedStatusKey(this.#store, { ...task, list: "activities" });
    const before = [...this.#keys(task), leaseKey(this.#store, task), feed, ...keys];
    const { keys: gateKeys = [], want = [] } = entrance ?? {};
    const flags = [leaseMs, notesFeed ? 1 : 0, term, slotMs, entrance === undefined ? 0 : before.length + 1];
    const args = [owner, startByMs, task.id, entryRetentionMs, inFlightMs, ...flags, ...want];
    const asked = sendAtOnceScript(this.#store, [...before, ...gateKeys], args);
    const answer = await this.#orTakenBack(asked, task, owner);
    if (!Array.isArray(answer)) return undefined;
    const [gate, sentAtMs, intents]: unknown[] = answer;
    const pass = entrance?.read(gate);
    if (pass !== undefined && isHold(pass)) return { hold: pass };
    let isKept = false;
    try {
      isKept = await this.#isKept(task, owner, Number(intents));
    } finally {
      // Also when Redis was lost meanwhile: nobody else may have the place before its lease ends.
      if (!isKept) void pass?.leave(unsaid);
    }
    return isKept ? { sentAtMs: Number(sentAtMs), pass } : undefined;
  }

  /**
   * Asks to send once more although nobody knows what became of the requests so far (`onUnknown: retry`), or since they are shown to be absent.
   * `sends`, `sender`: how many there were, and whose the newest was, when that was found out.
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
   * Takes the permission back: this owner's request surely did not reach the service. The task may claim and send again,
   * unless an earlier request is still undecided.
   */
  async notSent(task: JournalTask, owner: string): Promise<void> {
    await notSentScript(this.#store, this.#keys(task), [owner, task.id]);
  }

  /** Takes a start that has no outcome of its own out of flight, as the activation before a run; with `isOver` nothing happens to it any more. */
  async close(task: JournalTask, { isOver }: { readonly isOver: boolean }): Promise<void> {
    await closeScript(this.#store, this.#keys(task), [task.id, entryRetentionMs, isOver ? 1 : 0]);
  }

  /** Decides whose these activities of the task's sync job are, once for all tasks: each is at most one start's. Oldest first. */
  attribute(task: JournalTask, activities: readonly Attributable[]): Promise<Attributed> {
    return attributeActivities(this.#store, task, activities);
  }

  /** Notes why the answer is missing. The first note stays; answers the one that stands. */
  async answerLost(taskId: string, loss: AnswerLoss): Promise<AnswerLoss> {
    return toLoss(await noteScript(this.#store, [this.#key(taskId)], ["lost", JSON.stringify(loss)]));
  }

  /** Notes that nothing stands in the way of the start any more; answers when that was so first. */
  async ready(taskId: string): Promise<number> {
    return Number(await noteScript(this.#store, [this.#key(taskId)], ["readyAtMs", ""]));
  }

  /** Takes that back: so much time has passed that what was known then is of no use. */
  async notReady(taskId: string): Promise<void> {
    await this.#store.redis.hdel(this.#key(taskId), "readyAtMs");
  }

  /** Notes that the run was seen finished now; answers when that was seen first. */
  async finishSeen(taskId: string): Promise<number> {
    return Number(await noteScript(this.#store, [this.#key(taskId)], ["finishSeenAtMs", ""]));
  }

  /** Notes that a look said nothing that could have said what became of the newest request; answers when the first such look was. */
  async unreadable(taskId: string, nowMs: number): Promise<number> {
    return Number(await noteScript(this.#store, [this.#key(taskId)], ["unreadableAtMs", nowMs]));
  }

  /** Notes until when nobody may look whether the start happened. */
  async heldUntil(taskId: string, untilMs: number): Promise<void> {
    await this.#store.redis.hset(this.#key(taskId), "heldUntilMs", untilMs);
  }

  /**
   * Asks whether the tasks of these sync jobs (at most 1,000) may be queued in place of this one: yes, if it is still claimed by this owner.
   * From then on whoever claims it finds them in its entry, and nobody who claimed it before can end it.
   */
  async willExpand(taskId: string, owner: string, targets: readonly string[]): Promise<boolean> {
    return (await willExpandScript(this.#store, [this.#key(taskId)], [owner, JSON.stringify(targets)])) === 1;
  }

  /** Notes that other tasks stand for this one: nothing may happen to it any more. */
  async expanded(taskId: string, into: readonly string[]): Promise<void> {
    await expandedScript(this.#store, [this.#key(taskId)], [JSON.stringify(into), entryRetentionMs]);
  }

  /** The ids of the tasks that stand for this one; undefined when there are none, or not yet. */
  async expandedInto(taskId: string): Promise<readonly string[] | undefined> {
    return toTexts(await this.#store.redis.hget(this.#key(taskId), "expanded"));
  }

  #key(taskId: string): string {
    return entryKey(this.#store, taskId);
  }

  /** Asks the script, unless Redis cannot be trusted now; takes the permission back when no replica has the intent. */
  async #permit(
    task: JournalTask,
    { owner, slotMs }: { owner: string; slotMs: number },
    ask: (keys: readonly string[], fence: readonly (string | number)[]) => Promise<unknown>,
  ): Promise<Permission> {
    const watch = this.#watch;
    if (watch?.mayAsk() === false) return "hold";
    const { keys, term } = watch?.fence() ?? { keys: [], term: "" };
    const answer = await this.#orTakenBack(ask([...this.#keys(task), ...keys], [term, slotMs]), task, owner);
    const [permission, count] = String(answer).split(" ");
    if (permission !== "permitted") return toPermission(permission);
    return (await this.#isKept(task, owner, Number(count))) ? "permitted" : "hold";
  }

  /** Whether a permission holds: where Redis has replicas, one of them must have the intent. Otherwise it is taken back. */
  async #isKept(task: JournalTask, owner: string, intents: number): Promise<boolean> {
    this.#watch?.noteIntents(intents);
    if (this.#watch === undefined) return true;
    if (await this.#orTakenBack(this.#watch.reachReplica(intents), task, owner)) return true;
    await this.notSent(task, owner);
    return false;
  }

  /** An answer that does not come may still mean a permission, as soon as Redis thaws: over the same connection it is taken back right after. */
  #orTakenBack<T>(asked: Promise<T>, task: JournalTask, owner: string): Promise<T> {
    asked.catch(() => this.notSent(task, owner)).catch(() => {});
    return asked;
  }

  #keys(task: JournalTask): string[] {
    return [this.#key(task.id), inFlightKey(this.#store, task)];
  }
}
