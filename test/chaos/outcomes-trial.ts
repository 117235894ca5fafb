// Many outcomes over many policies, in a real Redis: what `audit`, `explain`, `history` and
// `failed` say of them is held against what was recorded, while more is recorded. Called by
// outcomes.test.ts and, with many more, by outcomes.ts.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { policyChecks } from "../../src/cli/shared-options.ts";
import { loadPolicies } from "../../src/config/load-policies.ts";
import type { Policy } from "../../src/config/policy-set.ts";
import type { OutcomeLimits } from "../../src/config/settings.ts";
import { silentLog } from "../../src/core/event-log.ts";
import { isGood, type Outcome, replayable } from "../../src/model/outcome.ts";
import { isFromMasks, type Task, taskId } from "../../src/model/task.ts";
import type { TaskStory } from "../../src/queries/task-story.ts";
import { Producer } from "../../src/queue/producer.ts";
import { tasksOf, toRecords } from "../../src/schedule/slot-tasks.ts";
import { createSlotSource, scheduleText } from "../../src/schedule/slots.ts";
import { History, outcomePlaceMs } from "../../src/store/history.ts";
import { leaseKey } from "../../src/store/leases.ts";
import { openStore, redisTimeMs, type Store } from "../../src/store/redis.ts";
import { SlotLedger } from "../../src/store/slot-ledger.ts";
import { StartJournal } from "../../src/store/start-journal.ts";
import { runHere } from "../support/commands-here.ts";
import { testOutcome } from "../support/outcomes.ts";
import { createRandom, type SeededRandom } from "./seeded-random.ts";

/** How large a trial is. `slots`: of each policy that is due often; `sets`: five policies each. */
export interface OutcomeTrialOptions {
  readonly redis: { readonly url: string; readonly prefix: string };
  readonly sets: number;
  readonly slots: number;
  readonly limits: OutcomeLimits;
  readonly audits: number;
  readonly samples: number;
  readonly seed: number;
}

/** What a trial found, and how much it looked at. */
export interface OutcomeTrialReport {
  readonly outcomes: number;
  readonly dropped: number;
  readonly explained: Readonly<Record<string, number>>;
  /** Everything that was told and is not so. */
  readonly untrue: readonly string[];
}

const dayMs = 86_400_000;
const childrenOfMasks = ["101", "102", "103", "104", "105"];
const wideJobs = Array.from({ length: 20 }, (_, index) => 1_000 + index);

/** Fills Redis, looks at it through the commands, and says what was not true. */
export async function tryOutcomes(options: OutcomeTrialOptions): Promise<OutcomeTrialReport> {
  const folder = await mkdtemp(join(tmpdir(), "syncline-outcomes-"));
  const store = await openStore(options.redis);
  const producer = new Producer(options.redis, silentLog);
  try {
    const file = join(folder, "policies.yaml");
    await writeFile(file, policyFile(options));
    const loaded = await loadPolicies(file, { variables: { TEST_TOKEN: "secret" }, checks: policyChecks });
    if (!loaded.ok) throw new Error(loaded.problems.map(({ message }) => message).join("\n"));
    const trial = new Trial({ options, store, producer, file, policies: loaded.set.policies });
    await trial.fill();
    await trial.auditWhileRecording();
    await trial.explainSome();
    await trial.readHistory();
    await trial.readFailed();
    await trial.loseSome();
    return trial.report();
  } finally {
    await producer.close();
    await store.close();
    await rm(folder, { recursive: true });
  }
}

function policyFile({ sets }: OutcomeTrialOptions): string {
  const all = Array.from({ length: sets }, (_, index) => [
    `{ name: often-${index}, service: main, run: { syncJobs: [${index + 1}] }, schedule: { every: 1m } }`,
    `{ name: wide-${index}, service: main, run: { syncJobs: [${wideJobs.join(", ")}] }, schedule: { every: 10m } }`,
    `{ name: masks-${index}, service: main, repository: HR, run: { fromMasks: { name: "*" } }, schedule: { every: 10m } }`,
    `{ name: daily-${index}, service: main, run: { syncJobs: [7] }, schedule: { cron: "30 2 * * *", timezone: UTC } }`,
    `{ name: by-hand-${index}, service: main, run: { syncJobs: [8] } }`,
  ]).flat();
  const service = `  main: { baseUrl: "http://127.0.0.1:9", token: { env: TEST_TOKEN } }`;
  return `apiVersion: syncline/v1\nservices:\n${service}\npolicies:\n${all.map((one) => `  - ${one}\n`).join("")}`;
}

interface TrialParts {
  readonly options: OutcomeTrialOptions;
  readonly store: Store;
  readonly producer: Producer;
  readonly file: string;
  readonly policies: readonly Policy[];
}

/** What is true of a task: its outcome, or that it is under way, or that it was lost by hand. */
type Truth = Outcome | "running" | "lost";

interface KnownTask {
  readonly policy: Policy;
  readonly slotMs: number;
  truth: Truth;
}

class Trial {
  readonly #parts: TrialParts;
  readonly #random: SeededRandom;
  readonly #history: History;
  readonly #tasks = new Map<string, KnownTask>();
  readonly #recorded = new Map<string, Outcome[]>();
  /** By policy, the oldest first. */
  readonly #kept = new Map<string, Outcome[]>();
  readonly #untrue: string[] = [];
  readonly #explained: Record<string, number> = {};
  #untilMs = 0;

  constructor(parts: TrialParts) {
    this.#parts = parts;
    this.#random = createRandom(parts.options.seed);
    this.#history = new History(parts.store, { limits: parts.options.limits });
  }

  report(): OutcomeTrialReport {
    const all = [...this.#recorded].map(([policy, outcomes]) => outcomes.length - this.#keptOf(policy).size);
    const outcomes = [...this.#recorded.values()].reduce((sum, some) => sum + some.length, 0);
    const dropped = all.reduce((sum, one) => sum + one, 0);
    return { outcomes, dropped, explained: this.#explained, untrue: this.#untrue };
  }

  /**
   * Slot records, outcomes and running tasks of all policies, as the scheduler and the workers
   * leave them.
   */
  async fill(): Promise<void> {
    this.#untilMs = (await redisTimeMs(this.#parts.store)) - 1_000;
    await Promise.all(this.#parts.policies.map((policy) => this.#fillOne(policy)));
    // Whoever holds a sync job holds up no task that has ended.
    for (const target of ["1", "1000", "7"])
      await this.#parts.store.redis.set(
        leaseKey(this.#parts.store, { service: "main", repository: null, target }),
        "another__run__1__1",
      );
  }

  async #fillOne(policy: Policy): Promise<void> {
    const slots = this.#slotsOf(policy);
    const source = createSlotSource(policy);
    if (source !== undefined) {
      const ledger = new SlotLedger(this.#parts.store);
      const beganMs = (slots[0] ?? 0) - 1;
      await ledger.openWatermarks([{ policy: policy.name, schedule: scheduleText(policy) ?? "" }], beganMs);
      const records = toRecords(
        policy,
        slots.map((slotMs) => ({ slotMs, state: "started", covers: [] })),
      );
      const step = {
        policy: policy.name,
        expectedWatermarkMs: beganMs,
        newWatermarkMs: this.#untilMs,
        records,
        tasks: [],
      };
      await ledger.record([step]);
    }
    const origin = source === undefined ? "manual" : "schedule";
    for (const [index, slotMs] of slots.entries()) {
      const isNew = index >= slots.length - 2;
      for (const task of await this.#expanded(tasksOf(policy, { slotMs, origin, covers: [] }), policy)) {
        // An old one may be under way as well, as a run that takes long.
        if (this.#random.chance(isNew ? 0.3 : 0.001)) await this.#run(task, policy);
        else await this.#end(task, policy);
      }
    }
  }

  #slotsOf(policy: Policy): readonly number[] {
    const { slots } = this.#parts.options;
    const source = createSlotSource(policy);
    if (source === undefined)
      return Array.from({ length: slots }, (_, index) => this.#untilMs - (slots - index) * 60_000);
    const every = policy.name.startsWith("often") ? slots * 60_000 : Math.ceil(slots / 8) * 600_000;
    const spanMs = policy.name.startsWith("daily") ? 60 * dayMs : every;
    const due: number[] = [];
    for (
      let slot = source.next(this.#untilMs - spanMs);
      slot !== undefined && slot <= this.#untilMs;
      slot = source.next(slot)
    )
      due.push(slot);
    return due;
  }

  async #expanded(tasks: readonly Task[], policy: Policy): Promise<readonly Task[]> {
    const [masks] = tasks;
    if (masks === undefined || !isFromMasks(masks)) return tasks;
    const children = childrenOfMasks.map((target) => ({
      ...masks,
      target,
      id: taskId({ ...masks, policy: policy.name, target }),
    }));
    await new StartJournal(this.#parts.store).noteFannedOut(
      masks.id,
      children.map(({ id }) => id),
    );
    return children;
  }

  async #run(task: Task, policy: Policy): Promise<void> {
    await this.#parts.producer.enqueue([task]);
    this.#tasks.set(task.id, { policy, slotMs: task.slotMs, truth: "running" });
  }

  async #end(task: Task, policy: Policy): Promise<void> {
    const status = this.#random.weighted({ succeeded: 20, failed: 2, conflicts: 1, skipped: 1 });
    // By a clock that is late some end before their slot.
    const finishedMs = Math.min(task.slotMs + this.#random.integer(-2_000, 50_000), this.#untilMs);
    const outcome = testOutcome({
      ...{ taskId: task.id, policy: policy.name, service: task.service, repository: task.repository, status },
      ...{ kind: task.kind, target: task.target, origin: task.origin, slot: new Date(task.slotMs).toISOString() },
      finishedAt: new Date(finishedMs).toISOString(),
      detail: `seed ${this.#random.integer(0, 1_000_000)}`,
    });
    this.#tasks.set(task.id, { policy, slotMs: task.slotMs, truth: outcome });
    await this.#record(outcome);
  }

  async #record(outcome: Outcome): Promise<void> {
    await this.#history.record(outcome);
    const recorded = this.#recorded.get(outcome.policy) ?? [];
    recorded.push(outcome);
    this.#recorded.set(outcome.policy, recorded);
    this.#keep(outcome);
  }

  /** What is kept, step by step: the newest ones that are not too old, and a few more by number. */
  #keep(outcome: Outcome): void {
    const { count, forMs } = this.#parts.options.limits;
    const kept = this.#kept.get(outcome.policy) ?? [];
    const isBefore = (other: Outcome) => {
      const apartMs = outcomePlaceMs(other) - outcomePlaceMs(outcome);
      return apartMs === 0 ? other.taskId < outcome.taskId : apartMs < 0;
    };
    kept.splice(kept.findLastIndex(isBefore) + 1, 0, outcome);
    const oldestMs = outcomePlaceMs(outcome) - forMs;
    const old = kept.findIndex((other) => outcomePlaceMs(other) >= oldestMs);
    if (kept.length % 16 === 0) kept.splice(0, Math.max(old, kept.length - count));
    this.#kept.set(outcome.policy, kept);
  }

  #keptOf(policy: string): Set<string> {
    return new Set((this.#kept.get(policy) ?? []).map(({ taskId: id }) => id));
  }

  /**
   * Audits while workers record runs by hand, each of which drops what the audit may just be
   * looking for.
   */
  async auditWhileRecording(): Promise<void> {
    const end = new AbortController();
    const writing = this.#writeUntil(end.signal);
    for (let round = 1; round <= this.#parts.options.audits; round += 1) {
      const { ok, findings } = await this.#audit();
      if (!ok) this.#untrue.push(`audit ${round}: ${JSON.stringify(findings.slice(0, 3))} of ${findings.length}`);
    }
    end.abort();
    await writing;
  }

  async #writeUntil(signal: AbortSignal): Promise<void> {
    let handMs = this.#untilMs;
    while (!signal.aborted) {
      handMs += 1;
      const slotMs = handMs;
      const written = this.#parts.policies.flatMap((policy) => {
        if (policy.action.kind !== "run" || !policy.name.startsWith("wide")) return [];
        const [task] = tasksOf(policy, { slotMs, origin: "manual", covers: [] });
        return task === undefined ? [] : [this.#end(task, policy)];
      });
      await Promise.all(written);
    }
  }

  async #audit(): Promise<{ ok: boolean; findings: { taskId: string | null }[] }> {
    const until = ["--until", new Date(this.#untilMs).toISOString()];
    const { code, out, err } = await this.#command("audit", "--config", this.#parts.file, ...until, "--json");
    const { ok, findings } = JSON.parse(out);
    if ((code === 0) !== ok) this.#untrue.push(`audit: exit ${code}, ok ${ok}: ${err}`);
    return { ok, findings };
  }

  /** Slots of each policy from the oldest to the newest, and all that are about a running task. */
  async explainSome(): Promise<void> {
    const policies = this.#parts.policies.filter(({ schedule }) => schedule !== undefined);
    const slots = Map.groupBy(this.#tasks.values(), ({ policy, slotMs }) => `${policy.name} ${slotMs}`);
    const running = [...slots.values()].filter((tasks) => tasks.some(({ truth }) => truth === "running"));
    // Of policies whose slots are recorded for longer than their outcomes are kept.
    const dropped = [...slots.values()].filter((tasks) => tasks.some((task) => this.#isDroppedOften(task)));
    const chosen = [...running.slice(0, this.#parts.options.samples), ...dropped.slice(-1)];
    for (let index = 0; index < this.#parts.options.samples; index += 1) {
      const policy = this.#random.pick(policies);
      chosen.push(this.#random.pick([...slots.values()].filter(([one]) => one?.policy === policy)));
    }
    for (const [one] of chosen) if (one !== undefined && one.policy.schedule !== undefined) await this.#explain(one);
  }

  #isDroppedOften({ policy: { name }, truth }: KnownTask): boolean {
    return name.startsWith("often") && typeof truth === "object" && !this.#keptOf(name).has(truth.taskId);
  }

  async #explain({ policy, slotMs }: KnownTask): Promise<void> {
    const at = new Date(slotMs).toISOString();
    const { out } = await this.#command("explain", policy.name, at, "--config", this.#parts.file, "--json");
    const story: { record: unknown; tasks: TaskStory[] } = JSON.parse(out);
    if (story.record === null) return this.#count("slot too old");
    const text = await this.#command("explain", policy.name, at, "--config", this.#parts.file);
    const kept = this.#keptOf(policy.name);
    if (story.tasks.length === 0) this.#untrue.push(`explain ${policy.name} ${at}: no tasks`);
    for (const task of story.tasks) {
      const known = this.#tasks.get(task.taskId);
      const wrong =
        known === undefined ? "is told and was none" : this.#wrongOf(task, known.truth, { kept, text: text.out });
      if (wrong !== undefined) this.#untrue.push(`explain ${task.taskId}: ${wrong}: ${JSON.stringify(task)}`);
    }
  }

  #wrongOf(
    task: TaskStory,
    truth: Truth,
    { kept, text }: { kept: ReadonlySet<string>; text: string },
  ): string | undefined {
    const says = text.slice(text.indexOf(`task ${task.taskId}\n`)).split(/\n {2}(?=\S)/)[0] ?? "";
    const isDropped = typeof truth === "object" && !kept.has(truth.taskId);
    this.#count(truth === "running" || truth === "lost" ? truth : isDropped ? "dropped" : "kept");
    if (truth === "running")
      return task.isInFlight && task.outcome === null && says.includes("no outcome yet") ? undefined : "is under way";
    if (task.isInFlight || task.waitsFor !== null || says.includes("no outcome yet")) return "is not under way";
    if (truth === "lost") return says.includes("no outcome, and no worker has it") ? undefined : "is lost";
    if (!isDropped) return task.outcome?.detail === truth.detail ? undefined : `ended as ${truth.status}`;
    return task.outcome === null && task.droppedUpTo !== null && says.includes("no longer kept")
      ? undefined
      : "was dropped";
  }

  /** The whole history of each policy, and the newest of all. */
  async readHistory(): Promise<void> {
    for (const { name } of this.#parts.policies) {
      const { out, err } = await this.#command("history", name, "--limit", "20000", "--json");
      const told: Outcome[] = JSON.parse(out);
      const kept = this.#keptOf(name);
      const all = this.#recorded.get(name) ?? [];
      if (told.length !== kept.size || told.some(({ taskId }) => !kept.has(taskId)))
        this.#untrue.push(`history ${name}: ${told.length} told, ${kept.size} kept`);
      if (err.includes("no longer kept") !== kept.size < all.length) this.#untrue.push(`history ${name}: "${err}"`);
    }
    const { out } = await this.#command("history", "--limit", "1000", "--json");
    const told: Outcome[] = JSON.parse(out);
    const places = [...this.#recorded].flatMap(([policy, outcomes]) => {
      const kept = this.#keptOf(policy);
      return outcomes.filter(({ taskId }) => kept.has(taskId)).map(outcomePlaceMs);
    });
    const newest = places.toSorted((a, b) => b - a).slice(0, 1_000);
    if (JSON.stringify(told.map(outcomePlaceMs)) !== JSON.stringify(newest))
      this.#untrue.push("history: not the newest");
    if (new Set(told.map(({ taskId }) => taskId)).size !== told.length) this.#untrue.push("history: one told twice");
  }

  /** The failed list holds what failed and is kept, and knows what has mended it. */
  async readFailed(): Promise<void> {
    const { out } = await this.#command("failed", "list", "--corrected", "--limit", "30000", "--json");
    const told = new Map<string, boolean>(
      JSON.parse(out).map(({ id, isMended }: { id: string; isMended: boolean }) => [id, isMended]),
    );
    let failed = 0;
    for (const [policy, outcomes] of this.#recorded) {
      const kept = this.#keptOf(policy);
      const goodAt = new Map<string, number>();
      for (const one of outcomes)
        if (isGood[one.status] && one.status !== "skipped")
          goodAt.set(one.target, Math.max(goodAt.get(one.target) ?? 0, outcomePlaceMs(one)));
      for (const one of outcomes) {
        if (replayable[one.status] === undefined || !kept.has(one.taskId)) continue;
        failed += 1;
        const isMended = (goodAt.get(one.target) ?? 0) > outcomePlaceMs(one);
        if (told.get(one.taskId) !== isMended)
          this.#untrue.push(`failed ${one.taskId}: ${told.get(one.taskId)}, is ${isMended}`);
      }
    }
    if (told.size !== failed) this.#untrue.push(`failed: ${told.size} told, ${failed} are`);
  }

  /**
   * Outcomes that Redis has lost and that would be kept: the audit names them and nothing else, and
   * nobody calls them dropped.
   */
  async loseSome(): Promise<void> {
    const { store, policies } = this.#parts;
    const lost = new Set<string>();
    for (const policy of policies.filter(({ name }) => name.startsWith("often"))) {
      const [newest] = (this.#recorded.get(policy.name) ?? []).slice(-10);
      const known = newest === undefined ? undefined : this.#tasks.get(newest.taskId);
      if (newest === undefined || known === undefined) continue;
      await store.redis.hdel(store.key("outcomes", policy.name), newest.taskId);
      known.truth = "lost";
      lost.add(newest.taskId);
      await this.#explain(known);
    }
    const { findings } = await this.#audit();
    const found = new Set(findings.map(({ taskId: id }) => id));
    if (found.size !== lost.size || [...lost].some((id) => !found.has(id)))
      this.#untrue.push(`audit: ${JSON.stringify(findings.slice(0, 3))}, lost ${[...lost].slice(0, 3)}`);
  }

  #count(what: string): void {
    this.#explained[what] = (this.#explained[what] ?? 0) + 1;
  }

  #command(...args: string[]): Promise<{ code: number; out: string; err: string }> {
    const { url, prefix } = this.#parts.options.redis;
    return runHere([...args, "--prefix", prefix, "--redis-url", url], { TEST_TOKEN: "secret" });
  }
}
