// The checker of a chaos of schedules: holds what stands in Redis and what the service saw against
// what had to be. Says everything that is off in one line each; an empty list means that promise P1
// held. Looks only; changes nothing.
import { Queue } from "bullmq";
import type { Policy } from "../../src/config/policy-set.ts";
import type { SlotRecord } from "../../src/model/slot-record.ts";
import { parseTask, type Task, taskId } from "../../src/model/task.ts";
import { auditSlots } from "../../src/schedule/audit-slots.ts";
import { onTimeMs } from "../../src/schedule/plan-slots.ts";
import { History } from "../../src/store/history.ts";
import type { RedisTarget } from "../../src/store/redis.ts";
import { type LedgerHoldings, SlotLedger } from "../../src/store/slot-ledger.ts";
import type { ChaosFixture } from "./chaos-fixture.ts";
import type { ReplicaEvent } from "./replica.ts";

/** What the checker has to be told beside the fixture. */
export interface Evidence {
  /** Where each policy's memory began, before the first fault. */
  readonly beganMs: ReadonlyMap<string, number>;
  /** What was due until then (time of Redis) has to be there. */
  readonly endMs: number;
  /** Whether tasks were worked on, so that each has its outcome. */
  readonly hasWorkers: boolean;
}

/** What came out. `slots`: how many were due. */
export interface Verdict {
  readonly findings: readonly string[];
  readonly slots: number;
  readonly tasks: number;
}

/** Checks one chaos of schedules, when everything stands still. */
export async function checkSchedules(fixture: ChaosFixture, evidence: Evidence): Promise<Verdict> {
  const { store, set, redis } = fixture.parts;
  const ledger = new SlotLedger(store);
  const holdings = new Map<Policy, LedgerHoldings>();
  for (const policy of set.policies) holdings.set(policy, await ledger.holdings(policy.name));
  const queued = await queuedTasks(redis);
  const audits = [...holdings].map(([policy, held]) => checkPolicy(policy, held, evidence));
  const started = new Map([...holdings].flatMap(([policy, held]) => startedTasks(policy, held)));
  const outbox = await ledger.outbox();
  const ended = new Set((await new History(store).newest(20_000)).map((outcome) => outcome.taskId));
  return {
    findings: [
      ...audits.flatMap(({ findings }) => findings),
      ...outbox.map(({ policy, newWatermarkMs }) => `${policy} ${at(newWatermarkMs)} is still in the outbox`),
      ...compareTasks(started, { queued, ended }),
      ...recordedTwice(fixture.events),
      ...checkOutcomes(fixture, started, { ended, hasWorkers: evidence.hasWorkers }),
    ],
    slots: audits.reduce((sum, { slots }) => sum + slots, 0),
    tasks: started.size,
  };
}

function checkPolicy(policy: Policy, held: LedgerHoldings, { beganMs, endMs }: Evidence) {
  const began = beganMs.get(policy.name);
  // Audited a while after the end, so that a slot which nobody planned counts as one.
  const audit = auditSlots(policy, { ...held, fromMs: undefined, toMs: endMs, nowMs: endMs + onTimeMs + 1 });
  if (audit === undefined) return { findings: [`${policy.name} has no mark`], slots: 0 };
  const findings = audit.findings.map(({ slotMs, problem }) => `${policy.name} ${at(slotMs)} is ${problem}`);
  if (held.keptSinceMs !== began)
    findings.push(`${policy.name} remembers since ${at(held.keptSinceMs)}, but began at ${at(began)}`);
  if (audit.slots === 0) findings.push(`${policy.name} had no slot: this chaos proves nothing`);
  return { findings: [...findings, ...checkStates(policy, held.records)], slots: audit.slots };
}

/**
 * A coalesced slot names a later one that started; inside a few seconds nothing is missed or
 * skipped.
 */
function checkStates(policy: Policy, records: readonly SlotRecord[]): string[] {
  const started = new Set(records.filter(({ state }) => state === "started").map(({ slotMs }) => slotMs));
  return records.flatMap(({ slotMs, state, detail }) => {
    const name = `${policy.name} ${at(slotMs)}`;
    if (state === "missed" || state === "skipped") return [`${name} is ${state}: ${detail}`];
    if (state !== "coalesced") return [];
    if (policy.catchUp !== "latest") return [`${name} is coalesced against its policy`];
    const intoMs = Date.parse(detail);
    return intoMs > slotMs && started.has(intoMs) ? [] : [`${name} is coalesced into ${detail}, which did not start`];
  });
}

/** The tasks that the ledger promises, with the slots that each must stand for. */
function startedTasks(policy: Policy, { records }: LedgerHoldings): [string, readonly number[]][] {
  return records.flatMap(({ slotMs, state, kind, targets }) => {
    if (state !== "started" || kind === undefined || targets === undefined) return [];
    const into = new Date(slotMs).toISOString();
    const covers = records.filter((one) => one.state === "coalesced" && one.detail === into).map((one) => one.slotMs);
    return targets.map((target): [string, readonly number[]] => [
      taskId({ policy: policy.name, kind, target, slotMs, origin: "schedule" }),
      covers,
    ]);
  });
}

async function queuedTasks(redis: RedisTarget): Promise<Map<string, Task>> {
  const tasks = new Map<string, Task>();
  for (const name of ["main-actions", "main-polls"]) {
    const queue = new Queue(name, { connection: { url: redis.url }, prefix: redis.prefix });
    for (const job of await queue.getJobs()) {
      if (job?.name !== "feed-walk" && job !== undefined) tasks.set(job.id ?? "", parseTask(job.data));
    }
    await queue.close();
  }
  return tasks;
}

function compareTasks(
  started: ReadonlyMap<string, readonly number[]>,
  { queued, ended }: { queued: ReadonlyMap<string, Task>; ended: ReadonlySet<string> },
): string[] {
  const findings: string[] = [];
  for (const [id, covers] of started) {
    const task = queued.get(id);
    // The queue forgets finished tasks by its worker's clock: one that is a year ahead forgets at
    // once.
    if (task === undefined && !ended.has(id)) findings.push(`task ${id} was recorded and is nowhere`);
    if (task !== undefined && String(task.covers) !== String(covers))
      findings.push(`task ${id} stands for ${task.covers.length} slots, its record for ${covers.length}`);
  }
  for (const id of queued.keys())
    if (!started.has(id)) findings.push(`task ${id} is in the queue, but its slot did not start`);
  return findings;
}

/**
 * Whoever records a slot says so in one line, after the one atomic step that only one replica can
 * win.
 */
function recordedTwice(events: readonly ReplicaEvent[]): string[] {
  const counts = new Map<string, number>();
  for (const { event, policy, slot } of events) {
    if (!/^slot\.(queued|coalesced|missed|skipped)$/.test(event)) continue;
    const name = `${String(policy)} ${String(slot)}`;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].flatMap(([name, count]) => (count > 1 ? [`${name} was recorded ${count} times`] : []));
}

function checkOutcomes(
  { events, parts: { sandbox } }: ChaosFixture,
  started: ReadonlyMap<string, unknown>,
  { ended, hasWorkers }: { ended: ReadonlySet<string>; hasWorkers: boolean },
): string[] {
  const findings: string[] = [];
  const sent = sandbox.ledger().map(({ idempotencyKey }) => String(idempotencyKey));
  for (const id of new Set(sent)) {
    if (!started.has(id)) findings.push(`the service did ${id}, which was never due`);
    if (sent.indexOf(id) !== sent.lastIndexOf(id)) findings.push(`the service did ${id} twice`);
  }
  // Whoever dies between the line and its mark leaves the line to somebody else: at least once, and
  // always the same.
  const told = new Map<string, string>();
  for (const { event, taskId, status, finishedAt } of events) {
    if (event !== "task.finished") continue;
    const line = `${status} at ${finishedAt}`;
    const known = told.get(String(taskId)) ?? line;
    if (known !== line) findings.push(`the outcome of ${taskId} was told as ${known} and as ${line}`);
    told.set(String(taskId), known);
  }
  for (const id of ended) if (!started.has(id)) findings.push(`${id} has an outcome, but its slot did not start`);
  if (hasWorkers) for (const id of started.keys()) if (!ended.has(id)) findings.push(`task ${id} has no outcome`);
  return findings;
}

function at(instantMs: number | undefined): string {
  return instantMs === undefined ? "nowhere" : new Date(instantMs).toISOString();
}
