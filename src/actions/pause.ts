// Pauses and resumes a policy, a service, the policies with a label, or all. Called by
// `syncline pause`, `syncline resume` and web/.
import type { Policy, PolicySet } from "../config/policy-set.ts";
import { ConflictError, UsageError } from "../core/errors.ts";
import { lastInstantMs, showInstant } from "../core/instant.ts";
import { didYouMean } from "../core/nearest-word.ts";
import { isRedisOutage } from "../core/redis-outage.ts";
import { labelsOf } from "../model/label.ts";
import type { OutcomeStatus } from "../model/outcome.ts";
import { isAbout, isInForce, type Pause, type PauseSubject, showSubject, subjectKey } from "../model/pause.ts";
import type { SlotRecord } from "../model/slot-record.ts";
import { parseTaskId, type Task, targetFromMasks, taskId } from "../model/task.ts";
import type { Producer } from "../queue/producer.ts";
import { readTasksInFlight } from "../queue/tasks-in-flight.ts";
import { newestDuePaused, newestPaused, type ResumeMoment } from "../schedule/plan-slots.ts";
import { tasksOf, toCaughtUp } from "../schedule/slot-tasks.ts";
import { Pauses, pausesMax, Quarantines, readPauses } from "../store/pauses.ts";
import { readPolicyStates } from "../store/policy-states.ts";
import { redisTimeMs, type Store } from "../store/redis.ts";
import { SlotLedger } from "../store/slot-ledger.ts";
import { StartJournal } from "../store/start-journal.ts";
import { type By, beginChange } from "./record-change.ts";

const matchedNamedMax = 100;

/**
 * What both actions need. Without a set, the policies are those that schedulers plan, and no name
 * of a service is checked.
 */
export interface PauseParts {
  readonly store: Store;
  readonly set: PolicySet | undefined;
  readonly by: By;
}

/**
 * Skips the slots of a subject from now until `untilMs` (null: until it is resumed). Replaces its
 * pause in force.
 * @throws UsageError for an unknown subject, or an end that has passed or is too far away.
 */
export async function pause(
  subject: PauseSubject,
  untilMs: number | null,
  { store, set, by }: PauseParts,
): Promise<Pause> {
  await checkIsThere(subject, set, store);
  const nowMs = await redisTimeMs(store);
  if (untilMs !== null && untilMs <= nowMs)
    throw new UsageError(`the pause would end before it begins: ${showInstant(untilMs)} has passed already`);
  if (untilMs !== null && untilMs > lastInstantMs)
    throw new UsageError("the pause would end after the year 9999: give no end, and it lasts until it is resumed");
  const pauses = new Pauses(store);
  const before = (await pauses.all()).filter((one) => isInForce(one, nowMs) && subjectKey(one) === subjectKey(subject));
  const { actor, reason } = by;
  const change = await beginChange(store, by, { what: "pause", subject: showSubject(subject), before });
  const after = await pauses.set({ ...subject, note: reason ?? "", actor, untilMs });
  if (after === undefined) {
    await change.drop();
    throw new ConflictError(`${pausesMax} pauses are in force, which is the most: pause a service, or all`);
  }
  const matched = subject.scope === "label" ? { matched: describeMatched(subject, set) } : {};
  await change.end({ after: { ...after, ...matched } });
  return after;
}

/** The policies that a label stands for now: their number, and the names of the first. */
function describeMatched(subject: PauseSubject, set: PolicySet | undefined) {
  const names = (set?.policies ?? []).flatMap((policy) => (isAbout(subject, policy) ? [policy.name] : []));
  return { count: names.length, policies: names.slice(0, matchedNamedMax) };
}

/** A policy that was queued for the newest slot that its pause had skipped. */
interface CaughtUpPolicy {
  readonly policy: string;
  readonly slotMs: number;
  readonly tasks: readonly string[];
}

const caughtUpRecordedMax = 100;

/** What a resume did. `stillPaused`: all pauses and quarantines in force after it. */
export interface ResumeResult {
  readonly ended: readonly Pause[];
  readonly caughtUp: readonly CaughtUpPolicy[];
  /**
   * Policies that were not caught up: the command was stopped, its time was over, an answer of
   * Redis got lost, or no scheduler has recorded the slot yet that the pause skips.
   */
  readonly left: readonly string[];
  readonly stillPaused: readonly Pause[];
}

/** What a resume with catch-up needs: the policies, and how their tasks are queued. */
export interface CatchUp {
  readonly policies: readonly Policy[];
  readonly producer: Pick<Producer, "enqueue">;
  readonly signal: AbortSignal;
}

/**
 * Ends the pause of exactly this subject, or the quarantine of the policy.
 * @throws UsageError for an unknown subject that is not paused.
 */
export async function resume(
  subject: PauseSubject,
  wish: CatchUp | undefined,
  { store, set, by }: PauseParts,
): Promise<ResumeResult> {
  const pauses = new Pauses(store);
  const before = (await readPauses(store)).filter((one) => subjectKey(one) === subjectKey(subject));
  // It may have gone from the files while it was paused.
  if (before.length === 0) await checkIsThere(subject, set, store);
  const quarantines = new Quarantines(store);
  const change = await beginChange(store, by, { what: "resume", subject: showSubject(subject) });
  const released = subject.scope === "policy" ? await quarantines.release(subject.name, by.actor) : undefined;
  const ended = [...(await pauses.end(subject, by.actor)), ...(released === undefined ? [] : [released])];
  const nowMs = await redisTimeMs(store);
  const all = await readPauses(store);
  const stillPaused = all.filter((one) => isInForce(one, nowMs));
  const resumed = (wish?.policies ?? []).filter(
    (policy) => isAbout(subject, policy) && !stillPaused.some((one) => isAbout(one, policy)),
  );
  if (ended.length === 0) {
    // Another person has ended it just now, or this command did, sent twice after a lost answer:
    // its record stays, as begun.
    const isUnsure = before.some((one) => isInForce(one, nowMs));
    if (!isUnsure) await change.drop();
    return { ended, caughtUp: [], left: isUnsure ? resumed.map(({ name }) => name) : [], stillPaused };
  }
  const endMs = Math.max(...ended.map(({ untilMs }) => untilMs ?? nowMs));
  const { caughtUp, left } =
    wish === undefined
      ? { caughtUp: [], left: [] }
      : await catchUp(resumed, { nowMs, pauses: all, endMs }, wish, { store, set, by });
  const counts = { caughtUpCount: caughtUp.length, leftCount: left.length };
  const [first, firstLeft] = [caughtUp.slice(0, caughtUpRecordedMax), left.slice(0, caughtUpRecordedMax)];
  await change.end({ before: ended, after: { caughtUp: first, left: firstLeft, ...counts } });
  return { ended, caughtUp, left, stillPaused };
}

async function catchUp(
  policies: readonly Policy[],
  moment: ResumeMoment,
  { producer, signal }: CatchUp,
  { store, set, by }: PauseParts,
): Promise<Pick<ResumeResult, "caughtUp" | "left">> {
  const ledger = new SlotLedger(store);
  const caughtUp: CaughtUpPolicy[] = [];
  const left = new Set(policies.map(({ name }) => name));
  const start = async (policy: Policy, { skipped, tasks }: SkippedSlot) => {
    const planned = { policy: policy.name, newWatermarkMs: moment.nowMs, tasks, timezone: policy.timezone };
    const note = `${skipped.note ?? ""}; resumed by ${by.actor}`;
    const record = { ...toCaughtUp(policy, skipped, note), targets: tasks.map(({ target }) => target) };
    const isStarted = await ledger.startSkipped(policy.name, record, planned);
    left.delete(policy.name);
    if (!isStarted) return;
    // When Redis is lost from here on, a scheduler queues it.
    caughtUp.push({ policy: policy.name, slotMs: skipped.slotMs, tasks: tasks.map(({ id }) => id) });
    await producer.enqueue(tasks);
    await ledger.confirmQueued([planned]);
  };
  // A run goes on where its policy was.
  const services = [...new Set([...policies.map(({ service }) => service), ...(set?.services.keys() ?? [])])];
  try {
    const { tasks: inFlight } = await readTasksInFlight(store, services, (name) => left.has(name));
    const openOf = Map.groupBy(inFlight, ({ task }) => task.policy);
    for (const policy of policies) {
      if (signal.aborted) break;
      const open = (openOf.get(policy.name) ?? []).map(({ task }) => task.id);
      const found = await findSkipped(policy, moment, { open, store });
      if (found === undefined) left.delete(policy.name);
      else if (found !== "unrecorded") await start(policy, found);
    }
  } catch (error) {
    if (!isRedisOutage(error)) throw error;
  }
  return { caughtUp, left: [...left] };
}

/** A slot that the pause has skipped, and its tasks that nothing stands for. */
interface SkippedSlot {
  readonly skipped: SlotRecord;
  readonly tasks: readonly Task[];
}

/** Finds what to catch up of a policy. `unrecorded`: a scheduler has yet to record it. */
async function findSkipped(
  policy: Policy,
  moment: ResumeMoment,
  { open, store }: { readonly open: readonly string[]; readonly store: Store },
): Promise<SkippedSlot | "unrecorded" | undefined> {
  const { records, watermarkMs } = await new SlotLedger(store).holdings(policy.name);
  const skipped = newestPaused(policy, records, moment);
  const dueMs = newestDuePaused(policy, watermarkMs, moment);
  const slotMs = skipped?.slotMs ?? dueMs;
  if (slotMs === undefined) return undefined;
  const begun = await targetsBegunAfter(dueMs ?? slotMs, [...open, ...(await readEndedTasks(policy, store))], store);
  const all = tasksOf(policy, { slotMs, origin: "schedule", covers: [] });
  // What a person has run since stands for it.
  const tasks = all.filter(({ target }) => !begun.has(target));
  if (tasks.length === 0) return undefined;
  return skipped === undefined ? "unrecorded" : { skipped, tasks };
}

/** The last tasks, also by hand, of the targets of a policy, if they began at all. */
async function readEndedTasks({ name }: Policy, store: Store): Promise<readonly string[]> {
  const { targets = [] } = (await readPolicyStates(store, [name])).get(name) ?? {};
  return targets.flatMap(({ newest: { status, taskId: id } }) => (notBegun.has(status) ? [] : [id]));
}

/** The targets of tasks of newer slots; also masks, where such a slot has fanned out. */
async function targetsBegunAfter(slotMs: number, ids: readonly string[], store: Store): Promise<ReadonlySet<string>> {
  const tasks = ids.flatMap((id) => parseTaskId(id) ?? []).filter((task) => task.slotMs > slotMs);
  const begun = new Set(tasks.map(({ target }) => target));
  const journal = new StartJournal(store);
  // A replay of one sync job has a slot without masks.
  for (const id of new Set(tasks.map((task) => taskId({ ...task, target: targetFromMasks }))))
    if ((await journal.fannedOutInto(id)) !== undefined) begun.add(targetFromMasks);
  return begun;
}

const notBegun: ReadonlySet<OutcomeStatus> = new Set(["skipped", "missed", "not-started"]);

/** A typo must not pause nothing. Without a configuration, schedulers know the policies. */
async function checkIsThere(subject: PauseSubject, set: PolicySet | undefined, store: Store): Promise<void> {
  const { scope, name } = subject;
  if (scope === "label") {
    if (set?.policies.some((policy) => isAbout(subject, policy))) return;
    const labels = [...new Set((set?.policies ?? []).flatMap(labelsOf))];
    throw new UsageError(`no policy has the label ${name}; ${didYouMean(name, labels) ?? "none has any"}`);
  }
  if (scope === "all" || (scope === "service" && set === undefined)) return;
  const configured = scope === "service" ? set?.services.keys() : set?.policies.map((policy) => policy.name);
  const known = [...(configured ?? (await new SlotLedger(store).policies()))];
  if (known.includes(name)) return;
  const hint = didYouMean(name, known) ?? "there is none";
  const where = set === undefined ? " (no scheduler plans it here; check with --config)" : "";
  throw new UsageError(`there is no ${scope} ${name}${where}; ${hint}`);
}
