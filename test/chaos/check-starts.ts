// The checker of a chaos of starts: holds every task's outcome against the book of what the service
// really did. Says everything that is off in one line each; an empty list means that promise P2
// held. Looks only; changes nothing.
import type { Redis } from "ioredis";
import type { Outcome } from "../../src/model/outcome.ts";
import type { Task } from "../../src/model/task.ts";
import { createChance } from "../../src/sandbox/chance.ts";
import type { LedgerEntry } from "../../src/sandbox/ledger.ts";
import { planRun } from "../../src/sandbox/runs.ts";
import { History } from "../../src/store/history.ts";
import type { StartEntry } from "../../src/store/start-entry.ts";
import { StartJournal } from "../../src/store/start-journal.ts";
import type { ChaosFixture } from "./chaos-fixture.ts";
import type { StartChaos } from "./plan-starts.ts";

/** What came out. */
export interface StartVerdict {
  readonly findings: readonly string[];
  readonly tasks: number;
  /** What the service started or activated. */
  readonly starts: number;
  /** Tasks whose outcome is `unknown`, by why it could not be known. */
  readonly unknown: Readonly<Record<WhyUnknown, number>>;
}

/**
 * Why an outcome is `unknown`. `asked`: the policy says `give-up`; `activation`: one leaves no
 * evidence; `unsent`: permitted, and its worker died before the request; `rivals`: another start of
 * the sync job was near; `avoidable`: it left evidence that no other start can have left.
 */
export const whysUnknown = ["asked", "activation", "unsent", "rivals", "avoidable"] as const;
type WhyUnknown = (typeof whysUnknown)[number];

/** `onUnknown: retry` sends three requests at most. */
const sendsMax = 3;
/**
 * How old a permission may be when its request goes out (work/timing.ts), and what a busy machine
 * adds between two looks at the clock.
 */
const permissionMsMax = 5_000 + 500;
/** As long after a permission a run may begin (attribution.ts). */
const mistakenWithinMs = 22_000;
const neverStarted: ReadonlySet<string> = new Set(["not-started", "skipped", "missed"]);

/** Checks one chaos of starts, when everything stands still. */
export async function checkStarts(
  fixture: ChaosFixture,
  { plan, tasks }: { plan: StartChaos; tasks: readonly Task[] },
): Promise<StartVerdict> {
  const { store, sandbox } = fixture.parts;
  const history = await new History(store).newest(20_000);
  const outcomes = new Map(history.map((outcome) => [outcome.taskId, outcome]));
  const ledger = sandbox.ledger();
  const started = Map.groupBy(ledger, ({ idempotencyKey }) => String(idempotencyKey));
  const ids = new Set(tasks.map(({ id }) => id));
  const journal = new StartJournal(store);
  const entries = new Map(await Promise.all(tasks.map(async ({ id }) => [id, await journal.entry(id)] as const)));
  const check = { fixture, plan, outcomes, entries, started };
  return {
    findings: [
      ...[...started].flatMap(([id, entries]) => checkAsked(id, entries.length, ids)),
      ...[...outcomes.keys()].filter((id) => !ids.has(id)).map((id) => `${id} has an outcome and was no task`),
      ...tasks.flatMap((task) => checkTask(task, check)),
      ...checkOutcomes(tasks, check),
      ...checkJournal(tasks, check),
      ...(await checkLeft(fixture, new Set(tasks.map(({ id }) => id).filter((id) => isForgotten(id, check))))),
    ],
    tasks: tasks.length,
    starts: ledger.length,
    unknown: countUnknown(history, check),
  };
}

/** A run may have an activation before it, once, under a name of its own. */
function checkAsked(id: string, times: number, ids: ReadonlySet<string>): string[] {
  if (ids.has(id)) return [];
  if (!ids.has(id.replace(/__activate$/, ""))) return [`the service did ${id}, which nobody asked for`];
  return times > 1 ? [`${id} was done ${times} times`] : [];
}

interface Check {
  readonly fixture: ChaosFixture;
  readonly plan: StartChaos;
  readonly outcomes: ReadonlyMap<string, Outcome>;
  readonly entries: ReadonlyMap<string, StartEntry | undefined>;
  readonly started: ReadonlyMap<string, readonly LedgerEntry[]>;
}

function checkTask(task: Task, check: Check): string[] {
  const outcome = check.outcomes.get(task.id);
  if (outcome === undefined) return isForgotten(task.id, check) ? [] : [`${task.id} has no outcome`];
  const starts = check.started.get(task.id) ?? [];
  const mayRepeat = check.fixture.parts.set.policies.find(({ name }) => name === task.policy)?.onUnknown === "retry";
  const findings = [...untrue(task, outcome, check), ...misjudged(outcome, check), ...mistaken(task, starts)];
  if (starts.length > (mayRepeat ? sendsMax : 1)) findings.push(`${task.id} was started ${starts.length} times`);
  return [...findings, ...late(task, check)];
}

/**
 * Told, and lost with Redis's memory; the queue has learned since that the task is over. What held
 * its sync job ends by itself.
 */
function isForgotten(id: string, { fixture, plan, outcomes }: Check): boolean {
  return (
    forgets(plan) &&
    !outcomes.has(id) &&
    fixture.events.some(({ event, taskId }) => event === "task.finished" && taskId === id)
  );
}

function forgets({ redisTrouble }: StartChaos): boolean {
  return redisTrouble.some(({ action }) => /forget|flush|fail-over/.test(action));
}

/** An outcome that says that something was started, or that nothing was, has to be so. */
function untrue({ id, kind, target }: Task, outcome: Outcome, { plan, started }: Check): string[] {
  const { status, reason } = outcome;
  const isStarted = started.has(id);
  if (status === "unknown") return [];
  // What is said is how the sync job is, whoever made it so. Its own activation cannot be late: it
  // is looked for until it could have come.
  if (reason === "seen-active")
    return isActive(outcome, started) ? [] : [`${id} says that ${target} is active, which nobody activated`];
  if (reason === "not-active") return isStarted ? [`${id} says that ${target} is not active, but activated it`] : [];
  if (neverStarted.has(status)) return isStarted ? [`${id} is ${status} (${reason}), but was started`] : [];
  // What such a service says cannot be told from the truth where nothing is followed.
  const isSaid = plan.hollowJobs.includes(Number(target)) && (kind === "activate" || status === "accepted");
  const isOnlyWaitedFor = status === "timed-out" && plan.hollowJobs.includes(Number(target));
  if (isStarted || isSaid || isOnlyWaitedFor) return [];
  return [`${id} is ${status} (${reason}), but was never started`];
}

/** A worker's clock lags by the time that Redis took for its answer (store/redis.ts). */
const clockLagMs = 500;

function isActive({ target, finishedAt }: Outcome, started: Check["started"]): boolean {
  const untilMs = Date.parse(finishedAt) + clockLagMs;
  return [...started.values()]
    .flat()
    .some(({ operation, key, atMs }) => operation === "EnableSyncJobById" && key === target && atMs <= untilMs);
}

/**
 * How a run is said to have ended has to be how it ended: the luck of each is known. Of several
 * starts of one task any may be meant.
 */
function misjudged({ kind, status, taskId, confidence }: Outcome, { fixture, started }: Check): string[] {
  const { seed, runMs } = fixture.parts.sandbox.settings;
  const starts = started.get(taskId) ?? [];
  if (kind !== "run" || starts.length === 0) return [];
  const ends = starts.map(({ key, runNumber }) => planRun(createChance(seed), Number(key), runNumber ?? 0, runMs));
  const said = { succeeded: "well", conflicts: "well", failed: "badly" }[status as string];
  const was = ends.map(({ fails }) => (fails ? "badly" : "well"));
  const findings: string[] = [];
  if (said !== undefined && !was.some((one) => one === said))
    findings.push(`${taskId} is ${status} (${confidence}), but its run ended ${was}`);
  if (status === "succeeded" && ends.every(({ conflicts }) => conflicts > 0))
    findings.push(`${taskId} is succeeded (${confidence}), but its run left conflicts`);
  return findings;
}

/** What was done under a task's name has to be what the task asks for. */
function mistaken({ id, kind, target }: Task, starts: readonly LedgerEntry[]): string[] {
  const wanted = kind === "run" ? "RunSyncJob" : "EnableSyncJobById";
  return starts
    .filter(({ operation, key }) => operation !== wanted || key !== target)
    .map(({ operation, key }) => `under ${id} the service did ${operation} of ${key}`);
}

function countUnknown(history: readonly Outcome[], check: Check): StartVerdict["unknown"] {
  const counts = { asked: 0, activation: 0, unsent: 0, rivals: 0, avoidable: 0 };
  for (const outcome of history) if (outcome.status === "unknown") counts[whyUnknown(outcome, check)] += 1;
  return counts;
}

/** A run near another one of the same sync job leaves evidence that may be the other's. */
function whyUnknown({ kind, policy, taskId, target }: Outcome, { fixture, started }: Check): WhyUnknown {
  if (fixture.parts.set.policies.find(({ name }) => name === policy)?.onUnknown === "give-up") return "asked";
  if (kind === "activate") return "activation";
  const [start] = started.get(taskId) ?? [];
  if (start === undefined) return "unsent";
  const rivals = [...started.values()]
    .flat()
    .filter((other) => other.operation === "RunSyncJob" && other.key === target);
  const isAlone = rivals.every((other) => other === start || Math.abs(other.atMs - start.atMs) > mistakenWithinMs);
  return isAlone ? "avoidable" : "rivals";
}

/**
 * A process that slept between permission and request must not send any more: by its own clock,
 * which is Redis's here, at its last look.
 */
function late({ id }: Task, { fixture, entries }: Check): string[] {
  const { sentAtMs, sends = 0 } = entries.get(id) ?? {};
  const sent = fixture.events.findLast(({ event, taskId }) => event === "first-byte.let-out" && taskId === id);
  if (sent === undefined || sentAtMs === undefined || sends > 1) return [];
  const afterMs = Number(sent["atMs"]) - sentAtMs;
  return afterMs > permissionMsMax ? [`${id} was sent ${afterMs} ms after its permission`] : [];
}

/**
 * Each outcome is told at least once, always the same. Where Redis forgot, what it forgot was told
 * too, and may be unknown now.
 */
function checkOutcomes(tasks: readonly Task[], { fixture, plan, outcomes, started }: Check): string[] {
  const lines = fixture.events.filter(({ event }) => event === "task.finished");
  const told = Map.groupBy(lines, ({ taskId }) => String(taskId));
  const hasForgotten = forgets(plan);
  return tasks.flatMap(({ id }) => {
    const statuses = new Set((told.get(id) ?? []).map(({ status }) => String(status)));
    const status = outcomes.get(id)?.status;
    if (status !== undefined && !statuses.has(status)) return [`the outcome of ${id} was never told`];
    statuses.delete(status ?? "");
    if (statuses.size === 0) return [];
    const other = `${id} was told to be ${[...statuses]}, but is ${status}`;
    if (!hasForgotten) return [other];
    // Judged anew after a loss, a run may show more than before; whether it was started has to be
    // true both times.
    const isFalse = [...statuses].some((one) => one !== "unknown" && started.has(id) === neverStarted.has(one));
    return isFalse ? [other] : [];
  });
}

/**
 * All are settled, and no permission came after a start-by time: by Redis's clock, which gave it.
 */
function checkJournal(tasks: readonly Task[], check: Check): string[] {
  return tasks.flatMap(({ id, startByMs }) => {
    const { state = "settled", lastSentAtMs = 0 } = check.entries.get(id) ?? {};
    return [
      ...(state === "settled" || isForgotten(id, check) ? [] : [`the journal still has ${id} as ${state}`]),
      ...(lastSentAtMs > startByMs
        ? [`${id} was permitted ${lastSentAtMs - startByMs} ms after its start-by time`]
        : []),
    ];
  });
}

/** Nothing is held and nothing is in flight when all is over, and nobody waits for a feed. */
async function checkLeft({ parts: { store, redis } }: ChaosFixture, forgotten: ReadonlySet<string>): Promise<string[]> {
  const findings: string[] = [];
  const client = store.redis as Redis;
  for await (const keys of client.scanStream({ match: `${redis.prefix}:*`, count: 1_000 })) {
    for (const key of keys.map(String)) {
      const [noun] = key.slice(redis.prefix.length + 1).split(":");
      const holders =
        noun === "lease"
          ? [await store.redis.get(key)]
          : noun === "feed-waiters"
            ? await store.redis.zrange(key, "0", "-1")
            : [];
      if (holders.some((id) => !forgotten.has(id ?? ""))) findings.push(`${key} is left`);
      // What has ended is remembered for a while, with an "e".
      const flying = noun === "in-flight" ? Object.entries(await store.redis.hgetall(key)) : [];
      for (const [task, sent] of flying)
        if (!sent.startsWith("e") && !forgotten.has(task)) findings.push(`${task} is in flight still`);
    }
  }
  return findings;
}
