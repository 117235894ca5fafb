// The start journal: what is known about the one request that a task may send. tasks/ calls it
// around every POST.
//
//   from                 call                                      to
//   (none), claimed      claim                                     claimed
//   claimed              beginSending                              sending
//   (none), claimed      tryBeginSending: with lease and permit    sending
//   sending              beginSendingAgain, if tasks/ decides so   sending
//   sending              takeBack, by the claimant                 claimed; sending, if sent before
//   confirmed by         takeBack, if the sender says that its     claimed
//   an activity          only request never left
//   confirmed by         noteConfirmed, when the answer comes      confirmed by it
//   an activity
//   sending              noteConfirmed: by answer or evidence      confirmed
//   claimed, over masks  planFanOut by claimant; noteFannedOut     claimed; then settled
//   any but settled      cancel, by a person: nothing may be sent  claimed, if none; else the same
//   as `from` says       History.record: the outcome               settled
//   any                  close: without an outcome of its own      settled, or the same
//
// Only the step to `sending` permits the request: for the newest claimant, and not after the
// start-by time; that of an activation before a run also needs the claim of the run. One permission
// stands at a time. A second one needs `takeBack` (the request surely started nothing) or
// `beginSendingAgain` (under `onUnknown: retry`, or once the run is absent).
import { randomUUID } from "node:crypto";
import { silentLog } from "../core/event-log.ts";
import { type Denial, isDenied, noEnding, type Permit } from "../core/limiter.ts";
import type { LongRun } from "../model/notify-event.ts";
import type { Loss } from "../model/slot-record.ts";
import { runOfActivation, type Task } from "../model/task.ts";
import { feedStatusKey } from "./feed-store.ts";
import { KeptWrites } from "./kept-writes.ts";
import { type LeaseSubject, leaseKey, leaseMs } from "./leases.ts";
import { notifyStreamKey } from "./notify-store.ts";
import { changedPoliciesKey, policyStateKey } from "./policy-states.ts";
import type { Store } from "./redis.ts";
import type { RedisWatch } from "./redis-watch.ts";
import {
  asFlag,
  asList,
  asNothing,
  asNumber,
  asOptional,
  asText,
  asTexts,
  asWord,
  createScript,
  pairsOf,
} from "./script.ts";
import { asAcquireAnswer, type ScriptedAcquire } from "./service-limiter.ts";
import {
  entryKey,
  inFlightKey,
  type JournalTask,
  type Permission,
  type StartDoubt,
  type StartEntry,
  type StartState,
  toDoubt,
  toEntry,
  toTexts,
} from "./start-entry.ts";
import { troublesKey } from "./troubles.ts";

/** How long an entry is kept after its last claim, its cancelling or its end. */
export const entryRetentionMs = 30 * 86_400_000;
/** How long a start may be in flight, and how long Redis remembers an attribution. */
const inFlightMs = 7 * 86_400_000;
/** Attributions that Redis remembers for one sync job; the oldest go first. */
const attributionsMax = 1_000;
/** An activity without `startedAt` is of an unanswered start if first seen within this. */
export const timelessForMs = 1_200_000;
/** The term of a journal that watches nothing: no fence. */
const noTerm = "-";

const claimScript = createScript("start/claim", (answer) => toEntry(asTexts(answer)));
const beginSendingScript = createScript("start/begin-sending", asPermission);
const beginSendingAgainScript = createScript("start/begin-sending-again", asPermission);
const tryBeginSendingScript = createScript("start/try-begin-sending", asFastPath);
const takeBackScript = createScript("start/take-back", asFlag);
const confirmedScript = createScript("start/confirmed", asFlag);
const cancelScript = createScript("start/cancel", asWord("claimed", "sending", "confirmed", "settled", "fanned-out"));
const closeScript = createScript("start/close", asNothing);
const planFanOutScript = createScript("start/plan-fan-out", asFlag);
const fannedOutScript = createScript("start/fanned-out", asNothing);
const noteOnceScript = createScript("start/note-once", asText);
const noteDoubtScript = createScript("start/note-doubt", asText);
const noteLongScript = createScript("start/note-long", asFlag);
const finishSeenScript = createScript("start/finish-seen", asOptional(asNumber));
const attributeScript = createScript("start/attribute", (answer) => {
  const [tasks = [], inFlight = [], losses = []] = asList(answer).map(asTexts);
  return { tasks, inFlight, losses };
});

/** What an intent says. `slotMs`: of the task; a loss that ended before it does not touch it. */
interface Intent {
  readonly startByMs: number;
  readonly slotMs?: number;
}

/** What the fast path asks for. Instants are milliseconds UTC by Redis. */
export interface FastPathIntent extends Intent {
  /** Whether it takes the lease on the sync job. */
  readonly takesLease: boolean;
  /** Whether to note how far the feed is known. */
  readonly notesFeed: boolean;
  /** The limiter's part, where the service has limits: then the permission comes with a permit. */
  readonly limiter?: ScriptedAcquire | undefined;
}

/**
 * Permitted since `sentAtMs`, with the limiter's permit where asked for, or denied by the limiter.
 */
export type FastPathAnswer =
  | { readonly sentAtMs: number; readonly permit: Permit | undefined }
  | { readonly denied: Denial };

/** An activity to attribute. */
export interface Attributable {
  readonly id: string;
  readonly startedAtMs: number | undefined;
}

/** The answer of an attribution. */
export interface JournalAttribution {
  /** Activity id → task id; no entry where no start in flight could have made the activity. */
  readonly taskOf: ReadonlyMap<string, string>;
  /**
   * Starts of the sync job, also ended ones that may yet show: task id → the instants at which its
   * requests were permitted.
   */
  readonly inFlight: ReadonlyMap<string, readonly number[]>;
  /** Intervals that Redis lost lately: starts from them may be missing in `inFlight`. */
  readonly losses: readonly Loss[];
}

/** The start journal in Redis. */
export class StartJournal {
  readonly #store: Store;
  readonly #watch: RedisWatch | undefined;
  readonly #keptWrites: KeptWrites;

  /** Without a watch the journal trusts Redis: for readers and tests. */
  constructor(store: Store, watch?: RedisWatch, keptWrites: KeptWrites = new KeptWrites(silentLog)) {
    this.#store = store;
    this.#watch = watch;
    this.#keptWrites = keptWrites;
  }

  /**
   * Claims a start, unless it is beyond `claimed`, and answers its entry; takes or prolongs the
   * `lease` of one under way, whatever its `overlap`. Throws NewerVersionError.
   */
  async claim(taskId: string, claimant: string, lease?: LeaseSubject): Promise<StartEntry> {
    const keys = lease === undefined ? [] : [leaseKey(this.#store, lease)];
    const args = [claimant, entryRetentionMs, taskId, leaseMs];
    return claimScript(this.#store, [this.#key(taskId), ...keys], args);
  }

  /** Reads an entry; undefined: not claimed, or dropped after `entryRetentionMs`. */
  async entry(taskId: string): Promise<StartEntry | undefined> {
    const fields = Object.entries(await this.#store.redis.hgetall(this.#key(taskId))).flat();
    return fields.length === 0 ? undefined : toEntry(fields);
  }

  /**
   * Asks for the one permission to send; writes intent and baseline, or how far the feed was known.
   */
  async beginSending(
    task: JournalTask,
    claimant: string,
    intent: Intent & { readonly baseline: string; readonly knownSeq?: number | undefined },
  ): Promise<Permission> {
    const { baseline, knownSeq = "" } = intent;
    return this.#askPermission(task, claimant, intent, (keys, args) =>
      beginSendingScript(this.#store, keys, [...args, task.id, baseline, knownSeq, inFlightMs]),
    );
  }

  /**
   * The fast path: claim, lease, limiter and permission in one step. Undefined: an obstacle stands,
   * which the single steps name.
   */
  async tryBeginSending(
    task: JournalTask,
    claimant: string,
    intent: FastPathIntent,
  ): Promise<FastPathAnswer | undefined> {
    if (this.#watch?.mayAsk() === false) return undefined;
    const { takesLease, notesFeed, limiter } = intent;
    const feed = feedStatusKey(this.#store, { ...task, list: "activities" });
    const others = [leaseKey(this.#store, task), feed, ...(limiter?.keys ?? [])];
    const flags = [takesLease ? leaseMs : "", notesFeed ? 1 : 0];
    const more = [task.id, entryRetentionMs, inFlightMs, ...flags, ...(limiter?.request ?? [])];
    const { keys, args } = this.#permissionCommand(task, claimant, intent);
    const asked = tryBeginSendingScript(this.#store, [...keys, ...others], [...args, ...more]);
    const answer = await this.#orTakenBack(asked, task, claimant);
    if (answer === undefined) return undefined;
    const permit = answer.permit && limiter?.read(answer.permit);
    if (permit !== undefined && isDenied(permit)) return { denied: permit };
    let isReplicated = false;
    try {
      isReplicated = await this.#isReplicated(task, claimant, answer.intents);
    } finally {
      // Also when Redis fails here; if this fails, too, the place is free when its lease ends.
      if (!isReplicated) void permit?.release(noEnding);
    }
    return isReplicated ? { sentAtMs: answer.sentAtMs, permit } : undefined;
  }

  /**
   * Asks to send once more after `sends` requests of unknown end, or shown to be absent; the newest
   * is `sender`'s.
   */
  async beginSendingAgain(
    task: JournalTask,
    claimant: string,
    state: Intent & { readonly sends: number; readonly sender: string },
  ): Promise<Permission> {
    const { sends, sender } = state;
    return this.#askPermission(task, claimant, state, (keys, args) =>
      beginSendingAgainScript(this.#store, keys, [...args, task.id, sends, sender, inFlightMs]),
    );
  }

  /** Notes that the service accepted the start (`atMs`: when), or that an activity proves it. */
  async noteConfirmed(task: JournalTask, by: "answer" | "evidence", atMs?: number): Promise<void> {
    const write = () => confirmedScript(this.#store, this.#keys(task), [task.id, by, atMs ?? ""]);
    const untaken = (isTaken: boolean) =>
      isTaken ? undefined : "the service accepted it, and the start had ended without that, or Redis forgot it";
    await (by === "answer" ? this.#keptWrites.write({ taskId: task.id, what: "answer" }, write, untaken) : write());
  }

  /**
   * Takes the permission back: this claimant's request surely started nothing. If no other request
   * may have gone out, the task gives back its lease, too (`leaseHolder`: where another has it in
   * its name). `by`: who says so. When an activity has confirmed the start meanwhile, `answer`
   * changes nothing. `sender` still takes an only request back: it never left this process, so the
   * activity is another start's.
   */
  async takeBack(
    task: JournalTask & { readonly leaseHolder?: string },
    claimant: string,
    by: "sender" | "answer" = "sender",
  ): Promise<void> {
    const keys = [...this.#keys(task), leaseKey(this.#store, task)];
    const write = () => takeBackScript(this.#store, keys, [claimant, task.id, task.leaseHolder ?? task.id, by]);
    const untaken = (isTaken: boolean) => (isTaken ? undefined : "it started nothing, and the start had ended as sent");
    await this.#keptWrites.write({ taskId: task.id, what: "started nothing" }, write, untaken);
  }

  /**
   * Notes that a person cancels the task: from now on no request of it is permitted, and its next
   * step ends it. Answers what it meets; `claimed`: it was not sent, but an activation before it
   * may have been.
   */
  async cancel(taskId: string, cancelled: string): Promise<StartState | "fanned-out"> {
    return cancelScript(this.#store, [this.#key(taskId)], [cancelled, entryRetentionMs]);
  }

  /** Returns who cancelled the task, and why; undefined: no person has. */
  async readCancelled(taskId: string): Promise<string | undefined> {
    return (await this.#store.redis.hget(this.#key(taskId), "cancelled")) ?? undefined;
  }

  /** Takes a start without an outcome of its own out of flight; `isOver` settles it. */
  async close(task: JournalTask, { isOver }: { readonly isOver: boolean }): Promise<void> {
    await closeScript(this.#store, this.#keys(task), [task.id, entryRetentionMs, isOver ? 1 : 0]);
  }

  /** Attributes each activity, oldest first, to at most one start of the task's sync job. */
  async attribute(task: JournalTask, activities: readonly Attributable[]): Promise<JournalAttribution> {
    const { key } = this.#store;
    const syncJob = [task.service, task.repository ?? "", task.target];
    const attributions = [key("attributions", ...syncJob), key("attribution-order", ...syncJob)];
    const keys = [...attributions, inFlightKey(this.#store, task), key("losses")];
    const pairs = activities.flatMap(({ id, startedAtMs }) => [id, startedAtMs ?? ""]);
    const { tasks, inFlight, losses } = await attributeScript(this.#store, keys, [
      inFlightMs,
      attributionsMax,
      timelessForMs,
      ...pairs,
    ]);
    const taskOf = activities.map(({ id }, index) => [id, tasks[index] ?? ""] as const);
    const spans = losses.map(instantsOf);
    return {
      taskOf: new Map(taskOf.filter(([, taskId]) => taskId !== "")),
      inFlight: new Map(pairsOf(inFlight).map(([id, requests]) => [id, instantsOf(requests)])),
      losses: spans.map(([fromMs = 0, untilMs = 0]) => ({ fromMs, untilMs })),
    };
  }

  /** Whether an activity is attributed to the task. */
  async hasActivity({ id, service, repository, target }: JournalTask): Promise<boolean> {
    const key = this.#store.key("attributions", service, repository ?? "", target);
    return (await this.#store.redis.hvals(key)).includes(id);
  }

  /**
   * Notes why the start is in doubt; answers the note that stands: the first one, but what the
   * sender says goes before a guess that it died.
   */
  async noteDoubt(taskId: string, doubt: StartDoubt): Promise<StartDoubt> {
    const write = () => noteDoubtScript(this.#store, [this.#key(taskId)], [JSON.stringify(doubt), doubt.kind]);
    return toDoubt(await (doubt.kind === "crash" ? write() : this.#keptWrites.write({ taskId, what: "doubt" }, write)));
  }

  /** Notes that nothing blocks the start any more; answers since when. */
  async noteReady(taskId: string): Promise<number> {
    return Number(await noteOnceScript(this.#store, [this.#key(taskId)], ["readyAtMs", ""]));
  }

  /** Takes that note back: what was known then is too old to use. */
  async forgetReady(taskId: string): Promise<void> {
    await this.#store.redis.hdel(this.#key(taskId), "readyAtMs");
  }

  /**
   * Notes that these activities are finished; answers since when. Undefined: one of them goes on.
   */
  async noteFinishSeen(taskId: string, activities: string | undefined): Promise<number | undefined> {
    return finishSeenScript(this.#store, [this.#key(taskId)], [activities ?? ""]);
  }

  /**
   * Notes the first check after the window, and answers when it was: the patience with lists that
   * cannot be read starts there.
   */
  async noteWindowOver(taskId: string, nowMs: number): Promise<number> {
    return Number(await noteOnceScript(this.#store, [this.#key(taskId)], ["windowOverAtMs", nowMs]));
  }

  /** Notes the first check past the deadline of a run; answers when it was. */
  async noteOverdue(taskId: string, nowMs: number): Promise<number> {
    return Number(await noteOnceScript(this.#store, [this.#key(taskId)], ["overdueAtMs", nowMs]));
  }

  /** Notes from when on the run is unusually long. The first note stays; answers that one. */
  async noteLongFrom(taskId: string, longAtMs: number): Promise<number> {
    return Number(await noteOnceScript(this.#store, [this.#key(taskId)], ["longAtMs", longAtMs]));
  }

  /** Notes that the run is unusually long and goes on; writes its event. False: it was noted. */
  async noteLong({ policy, taskId, slotMs, ...run }: LongRun, isNotified: boolean): Promise<boolean> {
    const keys = [this.#key(taskId), notifyStreamKey(this.#store)];
    const text = JSON.stringify({ taskId, ...run });
    return noteLongScript(this.#store, keys, [text, policy, slotMs, isNotified ? 1 : 0]);
  }

  /** Notes until when a throttle or our own limits deny the verification of the start. */
  async noteDeniedUntil(taskId: string, untilMs: number): Promise<void> {
    await this.#store.redis.hset(this.#key(taskId), "deniedUntilMs", untilMs);
  }

  /**
   * Whether the tasks of these sync jobs may replace this one: only while this step has the claim.
   * The same step writes the notifier's event, and the policy's state forgets sync jobs that are
   * gone.
   */
  async planFanOut(
    { id, policy, slotMs }: Pick<Task, "id" | "policy" | "slotMs">,
    claim: { readonly claimant: string; readonly isNotified: boolean },
    targets: readonly string[],
  ): Promise<boolean> {
    const noted = [policyStateKey(this.#store, policy), changedPoliciesKey(this.#store), troublesKey(this.#store)];
    const keys = [this.#key(id), notifyStreamKey(this.#store), ...noted];
    const { claimant, isNotified } = claim;
    return planFanOutScript(this.#store, keys, [claimant, JSON.stringify(targets), policy, slotMs, isNotified ? 1 : 0]);
  }

  /** Notes that other tasks replace this one and settles it. */
  async noteFannedOut(taskId: string, into: readonly string[]): Promise<void> {
    await fannedOutScript(this.#store, [this.#key(taskId)], [JSON.stringify(into), entryRetentionMs]);
  }

  /** Returns the ids of the tasks that replace this one; undefined when there are none as yet. */
  async fannedOutInto(taskId: string): Promise<readonly string[] | undefined> {
    return toTexts(await this.#store.redis.hget(this.#key(taskId), "fannedOutInto"));
  }

  #key(taskId: string): string {
    return entryKey(this.#store, taskId);
  }

  /** What all scripts that permit a request share: keys, and arguments up to the command id. */
  #permissionCommand(task: JournalTask, claimant: string, { startByMs, slotMs = 0 }: Intent) {
    const { key } = this.#store;
    const term = this.#watch?.term ?? noTerm;
    const keys = [...this.#keys(task), key("watch"), key("losses")];
    return { keys, args: [claimant, startByMs, term, slotMs, randomUUID()] };
  }

  /** Asks for a permission, unless Redis is unsafe; takes it back where Redis replicas lack it. */
  async #askPermission(
    task: JournalTask,
    claimant: string,
    intent: Intent,
    ask: (keys: readonly string[], args: readonly (string | number)[]) => ReturnType<typeof beginSendingScript>,
  ): Promise<Permission> {
    if (this.#watch?.mayAsk() === false) return "undecided";
    const { keys, args } = this.#permissionCommand(task, claimant, intent);
    const run = runOfActivation(task.id);
    if (run !== undefined) keys.push(this.#key(run));
    const { permission, intents } = await this.#orTakenBack(ask(keys, args), task, claimant);
    if (permission !== "permitted") return permission;
    return (await this.#isReplicated(task, claimant, intents)) ? "permitted" : "undecided";
  }

  /** Whether a permission holds: enough Redis replicas have the journal's note. */
  async #isReplicated(task: JournalTask, claimant: string, intents: number): Promise<boolean> {
    if (this.#watch === undefined) return true;
    const isReplicated = await this.#orTakenBack(this.#watch.reachReplicas(intents), task, claimant);
    // No request goes out otherwise, so a Redis that forgets those intents loses no start.
    if (isReplicated) this.#watch.noteIntents(intents);
    else await this.takeBack(task, claimant);
    return isReplicated;
  }

  /**
   * The answer of Redis may be lost although it permitted the request: the worker takes such a
   * permission back. Until then the start counts as sent, with an unknown end.
   */
  #orTakenBack<T>(asked: Promise<T>, task: JournalTask, claimant: string): Promise<T> {
    asked.catch(() => this.takeBack(task, claimant).catch(() => {}));
    return asked;
  }

  #keys(task: JournalTask): string[] {
    return [this.#key(task.id), inFlightKey(this.#store, task)];
  }
}

function asPermission(answer: unknown): { readonly permission: Permission; readonly intents: number } {
  const [word, intents = 0] = asList(answer);
  const permission = asWord("permitted", "lost-claim", "too-late", "undecided", "loss")(word);
  return { permission, intents: asNumber(intents) };
}

function asFastPath(answer: unknown) {
  const [word, sentAtMs, intents, limiter] = asList(answer);
  if (asWord("permitted", "denied", "obstacle")(word) === "obstacle") return undefined;
  const permit = limiter === "" ? undefined : asAcquireAnswer(limiter);
  return { sentAtMs: asNumber(sentAtMs), intents: asNumber(intents), permit };
}

function instantsOf(text: string): readonly number[] {
  return text.split(":").map(Number);
}
