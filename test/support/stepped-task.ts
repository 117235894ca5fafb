// One task of a service whose answers stand in line, step by step over a real journal, with a clock
// that jumps to wherever the task waits for. For tests of what becomes of one request.
import type { Denial, DeniedBy, Limiter } from "../../src/core/limiter.ts";
import type { Task } from "../../src/model/task.ts";
import { redisTimeMs, type Store } from "../../src/store/redis.ts";
import { StartJournal } from "../../src/store/start-journal.ts";
import type { ProcessDependencies } from "../../src/tasks/process-task.ts";
import type { Claim, StepResult } from "../../src/tasks/step.ts";
import { type Answer, answeringService } from "./answering-service.ts";
import { testDeps } from "./task-deps.ts";

/**
 * What is stepped through; what is given of `deps` takes the place of those without anything behind
 * them.
 */
interface Stepped {
  readonly task: Pick<Task, "kind"> & Partial<Task>;
  readonly by: (task: Task, deps: ProcessDependencies, claim: Claim) => Promise<StepResult>;
  readonly deps: Partial<ProcessDependencies>;
  /**
   * What the service does: to each read in turn (the last for all further ones), and to each other
   * request.
   */
  readonly reads: readonly Answer[];
  readonly writes: readonly Answer[];
  /** What denies reads, from the first one on, for so long; nothing unless set. */
  readonly denied?: { readonly by: DeniedBy; readonly forMs: number } | undefined;
}

const stepsMax = 80;
/**
 * When a denied request asks again: longer than a call waits in place, and no later than
 * store/service-limiter.ts says.
 */
const turnMs = [5_000, 60_000] as const;
let tasks = 0;

/** Makes the task, of sync job 42 of a repository of its own. */
export async function steppedTask(store: Store, { task: given, by, deps: more, denied, reads, writes }: Stepped) {
  let aheadMs = 0;
  const nowMs = async () => (await redisTimeMs(store)) + aheadMs;
  let deniedUntilMs: number | undefined;
  const denial = async (): Promise<Denial | undefined> => {
    if (denied === undefined) return undefined;
    deniedUntilMs ??= (await nowMs()) + denied.forMs;
    const restMs = deniedUntilMs - (await nowMs());
    const waitMs = Math.min(Math.max(restMs, turnMs[0]), turnMs[1]);
    return restMs > 0 ? { deniedBy: denied.by, waitMs } : undefined;
  };
  const limiter: Limiter = {
    acquire: async ({ isRead }) => (isRead ? await denial() : undefined) ?? { release: async () => {} },
  };
  const isOfAll = denied?.by === "throttle" || denied?.by === "breaker";
  const { asked, urls, service } = await answeringService({ reads, writes, limiter });
  const journal = new StartJournal(store);
  tasks += 1;
  const task: Task = {
    ...{
      v: 1,
      id: `${given.kind}-${tasks}`,
      policy: "stepped",
      service: "main",
      repository: `R${tasks}`,
      target: "42",
    },
    ...{ slotMs: 0, origin: "manual", covers: [], startByMs: 9_999_999_999_999, ...given },
  };
  const own = { service: () => service, journal, nowMs, denialOf: async () => (isOfAll ? denial() : undefined) };
  const deps = testDeps(store, { ...own, ...more });
  let owners = 0;
  const step = async () => {
    owners += 1;
    const claimant = `o${owners}`;
    return by(task, deps, { claimant, entry: await journal.claim(task.id, claimant) });
  };
  const later = (ms: number) => {
    aheadMs += ms;
  };
  const through = async () => {
    for (let round = 0; round < stepsMax; round += 1) {
      const done = await step();
      if (done.verdict === "complete") return done;
      if (done.verdict === "snooze") later(Math.max(done.untilMs - (await nowMs()), 0));
    }
    throw new Error(`no end in ${stepsMax} steps`);
  };
  return {
    ...{ asked, urls, service, journal, task, deps },
    /** One step, by a worker of its own. */
    step,
    /** Steps until the task ends, whenever it wants to go on. */
    through,
    /** Lets so much time pass. */
    later,
    nowMs,
    /** Lets a worker send the request and die, or lose the answer. */
    sentBy: async (end: "dead" | "lost") => {
      await journal.claim(task.id, end);
      await journal.beginSending(task, end, { startByMs: task.startByMs, baseline: "" });
      if (end === "lost")
        await journal.noteDoubt(task.id, { kind: "answer-lost", detail: "reset", atMs: await nowMs() });
    },
  };
}

/** A step in short: how the task ended, or what it does. */
export const told = (step: StepResult) =>
  "ending" in step ? `${step.ending?.status} ${step.ending?.evidence} ${step.ending?.reason}` : step.verdict;
