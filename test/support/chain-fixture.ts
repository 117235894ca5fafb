// Chains on the real ledger, book and history, with a clock that the test moves: schedulers, and
// workers that end tasks by hand.
import type { Policy } from "../../src/config/policy-set.ts";
import { silentLog } from "../../src/core/event-log.ts";
import type { OutcomeStatus } from "../../src/model/outcome.ts";
import type { Pause } from "../../src/model/pause.ts";
import type { Task } from "../../src/model/task.ts";
import { type AuditInput, auditSlots } from "../../src/schedule/audit-slots.ts";
import { Chains, createFollowerMap } from "../../src/schedule/chains.ts";
import { Scheduler } from "../../src/schedule/scheduler.ts";
import type { SlotLedgerPort } from "../../src/schedule/scheduler-ports.ts";
import { ChainStore } from "../../src/store/chain-store.ts";
import { History } from "../../src/store/history.ts";
import type { Store } from "../../src/store/redis.ts";
import { SlotLedger } from "../../src/store/slot-ledger.ts";
import { testOutcome } from "./outcomes.ts";
import { testPolicy } from "./policies.ts";
import { TestLog } from "./test-log.ts";

/** The instant at which test clocks begin; a slot of `every: 5s`. */
export const chainStart = Date.parse("2026-11-21T00:00:00Z");

/**
 * A policy that follows another one with the schedule of `testPolicy`; without delay unless
 * changed.
 */
export function followerPolicy(name: string, after: string, changes: Partial<Policy> & { root: string }): Policy {
  const { root, ...rest } = changes;
  const schedule = { kind: "every", everyMs: 5_000, spreadMs: 0 } as const;
  const following = { policy: after, on: ["succeeded"], withinMs: 60_000, root: { name: root, schedule } } as const;
  return { ...testPolicy({ name, schedule: undefined, ...rest }), after: rest.after ?? following };
}

/** One Redis, one clock, any number of replicas. */
export class ChainFixture {
  readonly ledger: SlotLedger;
  readonly book: ChainStore;
  readonly history: History;
  /** Every task that was put into the queue, in order. */
  readonly queued: Task[] = [];
  /** What the chains log. */
  readonly log = new TestLog();
  pauses: Pause[] = [];
  newestSinceMs = 0;
  nowMs = chainStart;
  policies: readonly Policy[];

  constructor(store: Store, policies: readonly Policy[]) {
    this.ledger = new SlotLedger(store);
    this.book = new ChainStore(store);
    this.history = new History(store);
    this.policies = policies;
  }

  readonly enqueue = async (tasks: readonly Task[]): Promise<void> => {
    this.queued.push(...tasks);
  };

  /** The chains as one replica works on them. */
  chains(enqueue = this.enqueue): Chains {
    return new Chains({
      policy: (name) => this.policies.find((one) => one.name === name),
      followers: (name) => createFollowerMap(this.policies).direct(name),
      chainStore: this.book,
      ledger: this.#onTestTime(),
      enqueue,
      pauses: async () => this.pauses,
      newestSinceMs: async () => this.newestSinceMs,
      log: this.log,
    });
  }

  scheduler(newestSinceMs = async () => Number.POSITIVE_INFINITY): Scheduler {
    const options = { policies: this.policies, ledger: this.#onTestTime(), enqueue: this.enqueue, newestSinceMs };
    return new Scheduler({ ...options, pauses: async () => this.pauses, chains: this.chains(), log: silentLog });
  }

  /** Looks at these seconds after the start. */
  async inspect(scheduler: Scheduler, ...seconds: readonly number[]): Promise<void> {
    for (const second of seconds) {
      this.nowMs = chainStart + second * 1_000;
      await scheduler.runOnce();
    }
  }

  /** Writes the outcome of a task, as a worker that dies right afterwards. */
  async record(task: Task, status: OutcomeStatus = "succeeded"): Promise<void> {
    const { id, policy, target, kind, origin } = task;
    const finishedAt = new Date(this.nowMs).toISOString();
    const slot = new Date(task.slotMs).toISOString();
    await this.history.record(testOutcome({ taskId: id, policy, target, kind, origin, slot, finishedAt, status }));
  }

  /** Ends a task as a worker does. */
  async end(task: Task, status: OutcomeStatus = "succeeded", chains = this.chains()): Promise<void> {
    await this.record(task, status);
    await chains.taskOver(task);
  }

  /** The tasks of a policy that were queued so far. */
  tasksOf(policy: string): Task[] {
    return this.queued.filter((task) => task.policy === policy);
  }

  /** What the ledger says of a policy: second, state, detail and note of each record. */
  async records(policy: string): Promise<(string | number | undefined)[][]> {
    const { records } = await this.ledger.holdings(policy);
    return records.map(({ slotMs, state, detail, note }) => [(slotMs - chainStart) / 1_000, state, detail, note]);
  }

  /** The audit of a policy up to now. */
  async audit(policy: Policy): Promise<{ slots: number | undefined; findings: unknown }> {
    const waiting = new Set((await this.book.waitingOf(policy.name)).map(({ slotMs }) => slotMs));
    const { nowMs } = this;
    const input: AuditInput = {
      ...(await this.ledger.holdings(policy.name)),
      fromMs: undefined,
      toMs: nowMs,
      nowMs,
      waiting,
    };
    const audit = auditSlots(policy, input);
    return { slots: audit?.slots, findings: audit?.findings };
  }

  #onTestTime(): SlotLedgerPort {
    const { ledger } = this;
    return {
      nowMs: async () => this.nowMs,
      openWatermarks: ledger.openWatermarks.bind(ledger),
      record: ledger.record.bind(ledger),
      confirmQueued: ledger.confirmQueued.bind(ledger),
      unqueued: ledger.unqueued.bind(ledger),
      drop: ledger.drop.bind(ledger),
      tidy: ledger.tidy.bind(ledger),
    };
  }
}
