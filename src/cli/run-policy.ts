// `syncline run`: runs a policy, or one sync job without a policy, by hand and now. Its tasks go
// the same way as scheduled ones. `run --wait` and `delete --yes` show how they come along.
import type { Command } from "commander";
import { type QueuedTasks, type RunParts, runNow, runSyncJob } from "../actions/run.ts";
import { type RunningApp, startApp } from "../app/app.ts";
import type { Policy, PolicySet } from "../config/policy-set.ts";
import { systemClock } from "../core/clock.ts";
import { formatDuration } from "../core/duration.ts";
import { OutOfReachError, UsageError } from "../core/errors.ts";
import { type EventLog, silentLog } from "../core/event-log.ts";
import { showClock } from "../core/instant.ts";
import { counted, someNames } from "../core/plain-text.ts";
import { isRedisOutage } from "../core/redis-outage.ts";
import { withoutSecrets } from "../core/secrets.ts";
import { isGood, type Outcome } from "../model/outcome.ts";
import { isFromMasks, runByHand, type Task, targetOf } from "../model/task.ts";
import { findRunningSet } from "../queries/policy-set.ts";
import { type RunningTask, readRunning, waitWords } from "../queries/running.ts";
import { isSkippedBeside } from "../queries/task-words.ts";
import { readTasksInFlight, type TaskInFlight } from "../queue/tasks-in-flight.ts";
import { History } from "../store/history.ts";
import { type RedisTarget, readPresence, redisTimeMs, type Store } from "../store/redis.ts";
import { StartJournal } from "../store/start-journal.ts";
import { defaultTiming } from "../tasks/timing.ts";
import { byHand } from "./changes.ts";
import type { CommandIo } from "./command-io.ts";
import { outcomeTable } from "./history.ts";
import {
  durationOption,
  findPolicy,
  findService,
  loadPoliciesOf,
  type ReasonOption,
  reasonOption,
  redisCommand,
  refuseIgnoredOptions,
  type SetOptions,
  serviceOption,
  syncJobArgument,
  withPolicies,
  withProducer,
} from "./shared-options.ts";
import { wideOption } from "./table.ts";

interface RunOptions extends SetOptions, ReasonOption {
  readonly service?: string;
  readonly syncJob?: number;
  readonly repository?: string;
  readonly wait?: true;
  readonly timeout: number;
}

const readEveryMs = 250;
const lookEveryMs = 2_000;
const reasonsShownMax = 20;

const help = `
A running \`syncline serve\` does the work. With --wait every change is told, and why nothing goes on. Without a worker alive and with --config, this process works itself meanwhile; notices and heartbeats wait for a \`serve\` that has the policy. Ctrl-C ends the wait, not the run: it says what goes on and how to look again.
A sync job without a policy is run by the \`defaults\` of the policy files; its outcome is in \`syncline history by-hand.run\`.
Exit codes: 0 all succeeded or were accepted, 1 one did not, had conflicts, was skipped, or had no outcome when the wait ended, 2 wrong use, 3 Redis is out of reach.

Examples:
  $ syncline run contracts-nightly --wait && echo good
  $ syncline run contracts-nightly --config policies/ --wait --timeout 20m
  $ syncline run --service main --sync-job 42 --repository HR --reason "ticket 7" --wait`;

/** The command `run`. */
export function runCommand(io: CommandIo): Command {
  return redisCommand("run", "set")
    .argument("[policy]", "its name")
    .option("--sync-job <id>", "run this sync job, without a policy", syncJobArgument)
    .addOption(serviceOption())
    .option("--repository <key>", "of the sync job (default: the service chooses)")
    .option("-w, --wait", "show each change and wait for the outcomes; exit 1 unless all are good")
    .addOption(durationOption("--timeout <duration>", "how long --wait waits", "1h"))
    .addOption(reasonOption("why; stands in the record of changes, and is required without a policy"))
    .option("--json", "print JSON: task ids, or with --wait the outcomes")
    .addOption(wideOption())
    .addHelpText("after", help)
    .action(async (name: string | undefined, options: RunOptions, chosen: Command) => {
      if (options.wait !== true) refuseIgnoredOptions(chosen, ["timeout"], "without --wait");
      if (options.syncJob === undefined) refuseIgnoredOptions(chosen, ["service", "repository"], "without --sync-job");
      await withPolicies(options, io, async ({ set, store, target: redis }) => {
        const queue = chooseRun(name, options, set);
        const by = byHand(io, options);
        const isMeant = (policy: string) => policy === (name ?? runByHand);
        const busy = await readTasksInFlight(store, [...set.services.keys()], isMeant);
        const queued = await withProducer(redis, (producer) => queue({ store, producer, by }));
        const context = { set, redis, store, options, io };
        const ids = queued.tasks.map(({ id }) => id);
        const what = `${counted(ids.length, "task")} of ${queued.tasks[0]?.policy} queued: ${someNames(ids, "--json")}`;
        tellBusy(busy.tasks, queued.tasks, isSkippedBeside(policyOf(set, name)), io);
        if (options.wait) {
          io.err(what);
          return workAndWait(queued, context);
        }
        io.out(options.json ? JSON.stringify({ v: 1, policy: queued.tasks[0]?.policy ?? null, tasks: ids }) : what);
        if (queued.workers === 0)
          io.err(`no worker runs under the prefix ${options.prefix}: start \`syncline serve\`, or check --prefix`);
      });
    });
}

function policyOf(set: PolicySet, name: string | undefined): Policy {
  return set.policies.find((policy) => policy.name === name) ?? set.byHand;
}

/**
 * Says which tasks of the same policies and sync jobs were in flight already, and what the new ones
 * do then.
 */
export function tellBusy(
  before: readonly TaskInFlight[],
  queued: readonly Pick<Task, "service" | "repository" | "target">[],
  isSkipped: boolean,
  io: CommandIo,
): void {
  const keyOf = ({ service, repository, target }: Pick<Task, "service" | "repository" | "target">) =>
    JSON.stringify([service, repository, target]);
  const targets = new Set(queued.map(keyOf));
  const ids = before.flatMap(({ task }) => (targets.has(keyOf(task)) ? [task.id] : []));
  if (ids.length === 0) return;
  const shown = someNames(ids, "`syncline running --ids`");
  const then = isSkipped ? "; while they go on, these are skipped (overlap: skip)" : "";
  io.err(`in flight before these: ${shown}${then}; \`syncline running\` says what they wait for`);
}

/** What is meant: a policy, or one sync job. @throws UsageError for neither, or for both. */
function chooseRun(
  name: string | undefined,
  { service, syncJob, repository, reason }: RunOptions,
  set: PolicySet,
): (parts: RunParts) => Promise<QueuedTasks> {
  if (name !== undefined && syncJob === undefined) {
    const policy = findPolicy(set, name);
    return (parts) => runNow(policy, parts);
  }
  if (name !== undefined) throw new UsageError(`${name} and --sync-job are given: leave one out`);
  if (syncJob === undefined)
    throw new UsageError("name a policy, or a sync job: --service NAME --sync-job ID --reason TEXT");
  if (reason === undefined)
    throw new UsageError("--reason is required without a policy: say why, for the people who find the run");
  const settings = findService(set, service);
  return (parts) => runSyncJob({ service: settings.name, syncJob, repository }, set, parts);
}

/** What a command needs to wait for the outcomes of tasks by hand. */
interface HandContext {
  readonly set: PolicySet;
  readonly redis: RedisTarget;
  readonly store: Store;
  readonly options: Pick<RunOptions, "timeout" | "json" | "config">;
  readonly io: CommandIo;
}

/** Waits for the outcomes of these tasks; while no worker is alive, this process works. */
export async function workAndWait({ tasks }: QueuedTasks, context: HandContext): Promise<void> {
  const standIn = new StandIn(tasks[0], context);
  try {
    await waitAndReport(tasks, standIn, context);
  } finally {
    await standIn.stop();
  }
}

/** The worker that this process becomes when none is left that could take the tasks. */
class StandIn {
  readonly #task: Task | undefined;
  readonly #context: HandContext;
  /** Whether the set that runs has the service; asked once. */
  #isServed: boolean | undefined;
  #lookAtMs = 0;
  #isSaid = false;
  #worker: RunningApp | undefined;

  constructor(task: Task | undefined, context: HandContext) {
    this.#task = task;
    this.#context = context;
  }

  /** Looks for workers now and then; without one, works if it can, else says what to do. */
  async look(): Promise<void> {
    if (this.#worker !== undefined || systemClock.monotonicMs() < this.#lookAtMs) return;
    this.#lookAtMs = systemClock.monotonicMs() + lookEveryMs;
    const isAlone = !(await this.#isOneAlive());
    if (isAlone && !this.#isSaid) await this.#work();
    this.#isSaid = isAlone;
  }

  async stop(): Promise<void> {
    await this.#worker?.stop();
  }

  /** A worker counts where its policies name the service, and for ten seconds after its death. */
  async #isOneAlive(): Promise<boolean> {
    if (this.#task === undefined) return true;
    if ((await readPresence(this.#context.store)).workers === 0) return false;
    this.#isServed ??= await this.#findService(this.#task.service);
    return this.#isServed;
  }

  async #findService(name: string): Promise<boolean> {
    const running = await findRunningSet(this.#context.store);
    return running === undefined || running.set.services.has(name);
  }

  async #work(): Promise<void> {
    const { redis, options, io } = this.#context;
    // The set that Redis keeps holds no secrets: only that of the files can start requests.
    const own = options.config === undefined ? undefined : await loadPoliciesOf(options.config, io);
    io.progress?.("");
    if (own?.ok !== true) {
      io.err(
        "no worker is alive for this service: start `syncline serve`, or give --config with files that can be used, and this process works",
      );
      return;
    }
    io.err(
      "no worker is alive for this service: this process works until the outcome is there; notices and heartbeats wait for a `serve` that has the policy",
    );
    const error: EventLog["error"] = (event, fields = {}) =>
      io.err(withoutSecrets(`${event}: ${JSON.stringify(fields)}`));
    this.#worker = await startApp({
      set: own.set,
      redis,
      roles: ["worker"],
      variables: io.settings.variables,
      log: { ...silentLog, error },
      // The defaults of `serve`.
      takeOverAfterMs: 60_000,
      drainMs: 25_000,
      stopSignal: io.signal,
      isStandIn: true,
      // A policy that these files lack is no removed one: its tasks are left to `serve`.
      timing: { ...defaultTiming, unknownPolicyForMs: Number.POSITIVE_INFINITY },
    });
  }
}

/** Shows the outcomes and sets the exit code: 0 when all are good and none was skipped. */
async function waitAndReport(
  tasks: readonly Task[],
  standIn: Pick<StandIn, "look">,
  context: HandContext,
): Promise<void> {
  const { set, store, options, io } = context;
  const zoneOf = (name: string) => policyOf(set, name).timezone;
  const progress = createProgress(set, store, io);
  const show: ShowProgress = async (open, outcomes) => {
    await progress(open, outcomes);
    if (open.length > 0) await standIn.look();
  };
  const { outcomes, open } = await waitForOutcomes(tasks, context, show);
  io.progress?.("");
  if (options.json) io.out(JSON.stringify(outcomes));
  else if (outcomes.length > 0) io.out(outcomeTable(outcomes, io, { zoneOf }));
  const bad = outcomes.filter(({ status }) => !isGood[status] || status === "skipped");
  for (const { taskId, status, reason, detail } of bad.slice(0, reasonsShownMax))
    io.err(`${taskId}: ${status} (${reason}): ${detail}`);
  if (bad.length > reasonsShownMax) io.err(`and ${bad.length - reasonsShownMax} more: syncline history`);
  if (open.length > 0) io.err(describeOpen(open, io.signal.aborted));
  io.exitCode = open.length === 0 && bad.length === 0 ? 0 : 1;
}

/** What goes on after the wait, and how to look again. */
function describeOpen(open: readonly Task[], isStopped: boolean): string {
  const ids = open.map(({ id }) => id);
  const [first = ""] = ids;
  const what = `still without an outcome, and not stopped: ${someNames(ids, "`syncline running --ids`")}`;
  const why = isStopped ? "the wait ends here" : "--timeout has passed";
  return `${why}; ${what}\nlook again: syncline explain ${first}\nstop it: syncline cancel ${first}`;
}

/** The outcomes of tasks of one policy, and the tasks that have none in time, over outages. */
async function waitForOutcomes(tasks: readonly Task[], { store, options, io }: HandContext, show: ShowProgress) {
  const history = new History(store);
  const journal = new StartJournal(store);
  const deadlineMs = systemClock.monotonicMs() + options.timeout;
  const outcomes: Outcome[] = [];
  const open = new Map(tasks.map((task) => [task.id, task]));
  const look = async () => {
    // All at once: read one by one, newer outcomes could push out the last of a thousand
    // (SYNCLINE_OUTCOMES_KEPT may be 100).
    const found = await history.outcomes(tasks[0]?.policy ?? "", [...open.keys()]);
    outcomes.push(...found.values());
    for (const id of found.keys()) open.delete(id);
    for (const task of [...open.values()].filter(isFromMasks)) {
      const expanded = await journal.fannedOutInto(task.id);
      for (const id of expanded ?? []) open.set(id, { ...task, id, target: targetOf(id) });
      if (expanded !== undefined) open.delete(task.id);
    }
    await show([...open.values()], outcomes);
  };
  let isAway = false;
  while (open.size > 0 && systemClock.monotonicMs() < deadlineMs && !io.signal.aborted) {
    try {
      await look();
      isAway = false;
    } catch (error) {
      if (!isRedisOutage(error) && !(error instanceof OutOfReachError)) throw error;
      io.progress?.("");
      if (!isAway) io.err("Redis does not answer; the wait goes on");
      isAway = true;
    }
    if (open.size > 0) await systemClock.sleep(readEveryMs, io.signal);
  }
  return { outcomes, open: [...open.values()] };
}

/** Tasks that are shown one by one; of more, only how many have ended. */
const shownMax = 20;

/** Looks once, and shows what is new. `open`: the tasks without an outcome. */
type ShowProgress = (open: readonly Task[], outcomes: readonly Outcome[]) => Promise<void>;

/** Makes the progress of some tasks of one policy. */
function createProgress(set: PolicySet, store: Store, io: CommandIo): ShowProgress {
  const journal = new StartJournal(store);
  const said = new Map<string, string>();
  // A figure that runs down is no news.
  const say = (about: string, text: string, news = text.replaceAll(/\d/g, "")) => {
    if (said.get(about) === news) return;
    said.set(about, news);
    io.progress?.("");
    io.err(text);
  };
  return async (open, outcomes) => {
    const count = open.length + outcomes.length;
    const label = ({ target }: Pick<Task, "target">) => (count === 1 ? "" : `${target}: `);
    for (const { taskId, status, reason, target } of outcomes.slice(0, shownMax))
      say(taskId, `${label({ target })}${status} (${reason})`);
    if (count > shownMax) say("all", `${outcomes.length} of ${count} have ended`, String(outcomes.length));
    const nowMs = await redisTimeMs(store);
    // The queue is not asked: without a journal entry a task counts as queued, and nothing is said
    // of it.
    const looked = open.slice(0, shownMax).map((task) => ({ task, state: "waiting", queuedAtMs: nowMs }) as const);
    const timezone = policyOf(set, open[0]?.policy).timezone;
    const running = await readRunning(looked, set, store);
    for (const one of running) {
      // A request under way may still turn out to have never left.
      if (one.sent !== null && one.step !== "sending")
        say(`${one.id} sent`, `${label(one)}start permitted ${showClock(Date.parse(one.sent), timezone, nowMs)}`);
      const isSeen = one.step === "following" && one.kind === "run" && (await journal.hasActivity(one));
      if (one.step !== "queued") say(one.id, `${label(one)}${describeStep(one, isSeen)}`);
    }
    const [first] = running;
    if (first !== undefined) io.progress?.(`${first.step}${sinceOf(first, nowMs)}; Ctrl-C ends the wait, not the run`);
  };
}

function describeStep(task: RunningTask, isSeen: boolean): string {
  const { shownBy, kind } = task;
  const seen = isSeen ? ", and its first activity is seen" : "";
  return waitWords(
    task,
    shownBy === "evidence"
      ? `confirmed: an activity shows that the ${kind} has started`
      : `answered: the service took the ${kind}${seen}`,
  );
}

function sinceOf({ since }: RunningTask, nowMs: number): string {
  const forMs = since === null ? 0 : Math.max(nowMs - Date.parse(since), 0);
  return forMs < 1_000 ? "" : ` for ${formatDuration(Math.floor(forMs / 1_000) * 1_000)}`;
}
