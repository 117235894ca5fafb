// `syncline run POLICY`: runs a policy by hand, now. Its tasks go the same way as scheduled ones.
import type { Command } from "commander";
import { type Queued, runNow } from "../actions/run.ts";
import { startApp } from "../app/app.ts";
import type { Policy, PolicySet } from "../config/policy-set.ts";
import { systemClock } from "../core/clock.ts";
import { silentLog } from "../core/event-log.ts";
import { counted } from "../core/plain-text.ts";
import { isGood, type Outcome, offendingItemsMax } from "../model/outcome.ts";
import { isFromMasks, type Task } from "../model/task.ts";
import { History } from "../store/history.ts";
import type { RedisTarget, Store } from "../store/redis.ts";
import { StartJournal } from "../store/start-journal.ts";
import { byHand } from "./changes.ts";
import type { CommandIo } from "./command-io.ts";
import { withProducer, withStore } from "./connections.ts";
import { outcomeTable } from "./history.ts";
import {
  durationOption,
  findPolicy,
  loadPoliciesOrThrow,
  type PolicyOptions,
  type ReasonOption,
  reasonOption,
  redisCommand,
  redisTarget,
  refuseIdle,
} from "./shared-options.ts";
import { wideOption } from "./table.ts";

interface RunOptions extends PolicyOptions, ReasonOption {
  readonly wait?: true;
  readonly timeout: number;
}

const readEveryMs = 250;

/** The command `run`. */
export function runCommand(io: CommandIo): Command {
  return redisCommand("run", "config")
    .argument("<policy>", "its name")
    .option("-w, --wait", "wait for the outcomes; exit 1 unless all are good")
    .addOption(durationOption("--timeout <duration>", "how long --wait waits", "1h"))
    .addOption(reasonOption())
    .option("--json", "print JSON: task ids, or with --wait the outcomes")
    .addOption(wideOption())
    .addHelpText(
      "after",
      "\nA running `syncline serve` does the work. With --wait and no worker about, this process does it itself.\n\nExamples:\n  $ syncline run contracts-nightly --config policies/\n  $ syncline run contracts-nightly --config policies/ --wait && echo good",
    )
    .action(async (name: string, options: RunOptions, chosen: Command) => {
      if (options.wait !== true) refuseIdle(chosen, ["timeout"], "without --wait");
      const redis = redisTarget(options, io);
      const set = await loadPoliciesOrThrow(options.config, io);
      const policy = findPolicy(set, name);
      await withStore(redis, (store) => run(policy, { set, redis, store, options, io }));
    });
}

/** What a command needs to start tasks by hand and to wait for their outcomes. */
export interface HandContext {
  readonly set: PolicySet;
  readonly redis: RedisTarget;
  readonly store: Store;
  readonly options: Pick<RunOptions, "timeout" | "json">;
  readonly io: CommandIo;
}

async function run(policy: Policy, context: HandContext & { readonly options: RunOptions }): Promise<void> {
  const { redis, store, options, io } = context;
  const by = byHand(io, options);
  const queued = await withProducer(redis, (producer) => runNow(policy, { store, producer, by }));
  const { tasks, workers } = queued;
  if (options.wait) return workAndWait(queued, context);
  const all = tasks.map(({ id }) => id);
  if (options.json) io.out(JSON.stringify({ policy: policy.name, tasks: all }));
  else io.out(`${counted(all.length, "task")} of ${policy.name} queued: ${all.join(", ")}`);
  if (workers === 0) io.err("no worker is running: start `syncline serve`");
}

/** Waits for the outcomes of these tasks. Without a worker alive, this process works meanwhile. */
export async function workAndWait({ tasks, workers }: Queued, context: HandContext): Promise<void> {
  if (workers > 0) return waitAndReport(tasks, context);
  const { set, redis, io } = context;
  io.err("no worker is running: this process works until the outcome is there");
  const worker = await startApp({
    set,
    redis,
    roles: ["worker"],
    variables: io.settings.variables,
    log: silentLog,
    takeOverAfterMs: 60_000,
    drainMs: 25_000,
    toldToStop: io.signal,
  });
  try {
    await waitAndReport(tasks, context);
  } finally {
    await worker.stop();
  }
}

/** Shows the outcomes and sets the exit code: 0 when all are good and none was skipped. */
async function waitAndReport(tasks: readonly Task[], { store, options, io }: HandContext): Promise<void> {
  const { outcomes, open } = await waitForOutcomes(tasks, store, options.timeout, io.signal);
  if (options.json) io.out(JSON.stringify(outcomes));
  else if (outcomes.length > 0) io.out(outcomeTable(outcomes, io, { itemsMax: offendingItemsMax }));
  if (open.length > 0) io.err(`still without an outcome: ${open.join(", ")}`);
  const skipped = outcomes.filter(({ status }) => status === "skipped").length;
  if (skipped > 0) io.err(`not started: ${skipped} of ${outcomes.length}, see above`);
  io.exitCode = open.length === 0 && skipped === 0 && outcomes.every(({ status }) => isGood[status]) ? 0 : 1;
}

/** The outcomes of tasks of one policy, and the ids of those that have none in time. */
async function waitForOutcomes(tasks: readonly Task[], store: Store, timeoutMs: number, signal: AbortSignal) {
  const history = new History(store);
  const journal = new StartJournal(store);
  const deadlineMs = systemClock.monotonicMs() + timeoutMs;
  const outcomes: Outcome[] = [];
  const open = new Set(tasks.map(({ id }) => id));
  const masks = new Set(tasks.filter(isFromMasks).map(({ id }) => id));
  while (open.size > 0 && systemClock.monotonicMs() < deadlineMs && !signal.aborted) {
    // Read together: where few outcomes are kept, later ones would drop those of a thousand tasks
    // read one by one.
    const found = await history.outcomes(tasks[0]?.policy ?? "", [...open]);
    outcomes.push(...found.values());
    for (const id of found.keys()) open.delete(id);
    for (const id of [...open].filter((one) => masks.has(one))) {
      const expanded = await journal.fannedOutInto(id);
      for (const into of expanded ?? []) open.add(into);
      if (expanded !== undefined) open.delete(id);
    }
    if (open.size > 0) await systemClock.sleep(readEveryMs, signal);
  }
  return { outcomes, open: [...open] };
}
