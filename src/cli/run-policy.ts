// `syncline run POLICY`: runs a policy by hand, now. Its tasks go the same way as scheduled ones.
import { Command } from "commander";
import type { Policy, PolicySet } from "../config/policy-set.ts";
import { systemClock } from "../core/clock.ts";
import { silentLog } from "../core/event-log.ts";
import { isGood, type Outcome, offendingItemsMax } from "../model/outcome.ts";
import { isFromMasks, type Task } from "../model/task.ts";
import { Producer } from "../queue/producer.ts";
import { urgencyOf } from "../queue/queues.ts";
import { tasksOf } from "../schedule/slot-tasks.ts";
import { History } from "../store/history.ts";
import { openStore, type RedisTarget, redisTimeMs, type Store } from "../store/redis.ts";
import { StartJournal } from "../store/start-journal.ts";
import type { CommandIo } from "./command-io.ts";
import { outcomeTable } from "./history.ts";
import { recordChange } from "./record-change.ts";
import type { StartApp } from "./serve.ts";
import {
  configOption,
  durationOption,
  findPolicy,
  loadPoliciesOrThrow,
  prefixOption,
  type RedisOptions,
  redisOption,
  redisTarget,
  refuseIdle,
} from "./shared-options.ts";

interface RunOptions extends RedisOptions {
  readonly config: string;
  readonly wait?: true;
  readonly timeout: number;
  readonly json?: true;
}

const lookEveryMs = 250;
const recordedTasksMax = 100;

/** The command `run`. */
export function runCommand(io: CommandIo, startApp: StartApp): Command {
  return new Command("run")
    .description("run a policy by hand, now")
    .argument("<policy>", "its name")
    .addOption(configOption())
    .addOption(redisOption())
    .addOption(prefixOption())
    .option("-w, --wait", "wait for the outcomes; exit 1 unless all are good")
    .addOption(durationOption("--timeout <duration>", "how long --wait waits", "1h"))
    .option("--json", "print JSON: task ids, or with --wait the outcomes")
    .addHelpText(
      "after",
      "\nA running `syncline serve` does the work. With --wait and no worker about, this process does it itself.\n\nExamples:\n  $ syncline run contracts-nightly --config policies/\n  $ syncline run contracts-nightly --config policies/ --wait && echo good",
    )
    .action(async (name: string, options: RunOptions, chosen: Command) => {
      if (options.wait !== true) refuseIdle(chosen, ["timeout"], "without --wait");
      const redis = redisTarget(options, io);
      const set = await loadPoliciesOrThrow(options.config, io);
      const policy = findPolicy(set, name);
      const store = await openStore(redis);
      try {
        await run({ set, policy, redis, store, options, io, startApp });
      } finally {
        await store.close();
      }
    });
}

interface WorkContext {
  readonly set: PolicySet;
  readonly redis: RedisTarget;
  readonly io: CommandIo;
  readonly startApp: StartApp;
}

interface WaitContext {
  readonly store: Store;
  readonly options: Pick<RunOptions, "timeout" | "json">;
  readonly io: CommandIo;
}

interface HandRunContext extends WorkContext, WaitContext {
  readonly policy: Policy;
  readonly options: RunOptions;
}

async function run(context: HandRunContext): Promise<void> {
  const { policy, redis, store, options, io } = context;
  const producer = new Producer(redis, silentLog);
  const tasks = tasksOf(policy, { slotMs: await redisTimeMs(store), origin: "manual", covers: [] });
  const workers = await producer.workers(policy.service, urgencyOf(policy.action.kind));
  try {
    await producer.enqueue(tasks);
  } finally {
    await producer.close();
  }
  const ids = tasks.slice(0, recordedTasksMax).map(({ id }) => id);
  const subject = `policy ${policy.name}`;
  await recordChange(store, io, { what: "run", subject, reason: null, before: null, after: { tasks: ids } });
  if (options.wait !== true) {
    if (options.json) io.out(JSON.stringify({ policy: policy.name, tasks: tasks.map(({ id }) => id) }));
    else
      io.out(
        `${tasks.length} task${tasks.length === 1 ? "" : "s"} of ${policy.name} queued: ${tasks.map(({ id }) => id).join(", ")}`,
      );
    if (workers === 0) io.err("no worker is running: start `syncline serve`");
    return;
  }
  const worker = workers === 0 ? await workHere(context) : undefined;
  try {
    await waitAndReport(context, tasks);
  } finally {
    await worker?.stop();
  }
}

/** Works in this process until it is stopped, for a caller that waits without a worker alive. */
export async function workHere({ set, redis, io, startApp }: WorkContext): Promise<{ stop(): Promise<void> }> {
  io.err("no worker is running: this process works until the outcome is there");
  return startApp({
    set,
    redis,
    roles: ["worker"],
    variables: io.settings.variables,
    log: silentLog,
    takeOverAfterMs: 60_000,
    drainMs: 25_000,
    toldToStop: io.signal,
  });
}

/**
 * Waits for the outcomes of these tasks of one policy, shows them, and sets the exit code: 0 when
 * all are good and none was skipped.
 */
export async function waitAndReport({ store, options, io }: WaitContext, tasks: readonly Task[]): Promise<void> {
  const history = new History(store);
  const journal = new StartJournal(store);
  const deadlineMs = systemClock.monotonicMs() + options.timeout;
  const outcomes: Outcome[] = [];
  const open = new Set(tasks.map(({ id }) => id));
  const masks = new Set(tasks.filter(isFromMasks).map(({ id }) => id));
  while (open.size > 0 && systemClock.monotonicMs() < deadlineMs && !io.signal.aborted) {
    // Read together: where few outcomes are kept, later ones would drop those of a thousand tasks
    // read one by one.
    const found = await history.outcomes(tasks[0]?.policy ?? "", [...open]);
    outcomes.push(...found.values());
    for (const id of found.keys()) open.delete(id);
    for (const id of [...open].filter((one) => masks.has(one))) {
      const expanded = await journal.expandedInto(id);
      for (const into of expanded ?? []) open.add(into);
      if (expanded !== undefined) open.delete(id);
    }
    if (open.size > 0) await systemClock.sleep(lookEveryMs, io.signal);
  }
  if (options.json) io.out(JSON.stringify(outcomes));
  else if (outcomes.length > 0) io.out(outcomeTable(outcomes, io.colours, offendingItemsMax));
  if (open.size > 0) io.err(`still without an outcome: ${[...open].join(", ")}`);
  const skipped = outcomes.filter(({ status }) => status === "skipped").length;
  if (skipped > 0) io.err(`not started: ${skipped} of ${outcomes.length}, see above`);
  io.exitCode = open.size === 0 && skipped === 0 && outcomes.every(({ status }) => isGood[status]) ? 0 : 1;
}
