// `syncline cancel TASK`: what is not sent never goes out, and Syncline stops to follow what is.
import type { Command } from "commander";
import { cancel, findToCancel } from "../actions/cancel.ts";
import type { PolicySet } from "../config/policy-set.ts";
import { systemClock } from "../core/clock.ts";
import { UsageError } from "../core/errors.ts";
import { showInstant } from "../core/instant.ts";
import { someNames } from "../core/plain-text.ts";
import type { Outcome } from "../model/outcome.ts";
import { parseTaskId, type Task } from "../model/task.ts";
import { targetWords } from "../queries/task-words.ts";
import { readTasksInFlight, tasksLookedThrough } from "../queue/tasks-in-flight.ts";
import { History } from "../store/history.ts";
import { readPresence, type Store } from "../store/redis.ts";
import { StartJournal } from "../store/start-journal.ts";
import { describeActivation } from "../tasks/finish.ts";
import { byHand } from "./changes.ts";
import { type CommandIo, isConfirmed } from "./command-io.ts";
import { checkKnownPolicy } from "./history.ts";
import {
  type ReasonOption,
  reasonOption,
  redisCommand,
  type SetOptions,
  withPolicies,
  withProducer,
} from "./shared-options.ts";

interface CancelOptions extends SetOptions, ReasonOption {
  readonly yes?: true;
}

/** A free worker takes the cancelled task at once; a busy one after the step that it is in. */
const outcomeWithinMs = 10_000;
const readEveryMs = 100;

const help = `
TASK is an id, as \`syncline running --ids\` shows it, or the name of a policy with one task in flight. Before its request, nothing is sent any more: the task ends as skipped (cancelled). After its request, Syncline stops to follow the run and releases its sync job: the task ends as unknown (cancelled). The service has no way to stop a run: it goes on there, and the next slot may start another one beside it.
Exit codes: 0 cancelled, 1 it had ended before or the answer was no, 2 wrong use or configuration, 3 Redis is out of reach.

Examples:
  $ syncline cancel contracts-nightly --reason "wrong repository"
  $ syncline cancel contracts-nightly__run__42__1795228200 --reason "wrong repository" --yes`;

/** The command `cancel`. */
export function cancelCommand(io: CommandIo): Command {
  return redisCommand("cancel", "set")
    .argument("<task>", "its id, or its policy; see `syncline running --ids`")
    .addOption(reasonOption("why; stands in the outcome and in the record of changes"))
    .option("-y, --yes", "do not ask")
    .option("--json", "print JSON: the outcome, or null where no worker has recorded it yet")
    .addHelpText("after", help)
    .action(async (name: string, options: CancelOptions) => {
      await withPolicies(options, io, async ({ set, store, target }) => {
        const task = await findTask(name, set, store);
        const ended = await new History(store).outcome(task);
        if (ended !== undefined || !("service" in task)) return showEnded(ended, task.id, options, io);
        if (!(await isConfirmed(await questionOf(task, store), options, io))) {
          io.err("nothing was cancelled");
          io.exitCode = 1;
          return;
        }
        const by = byHand(io, options);
        const met = await withProducer(target, (producer) => cancel(task, { store, producer, by }));
        if (met === "fanned-out") throw new UsageError(`${task.id} stands for other tasks by now: cancel those`);
        const outcome = await waitForOutcome(task, store, io.signal);
        if (met === "settled" || (outcome !== undefined && outcome.reason !== "cancelled"))
          return showEnded(outcome, task.id, options, io);
        const unsent = task.kind === "apply" ? "what it has changed by now stays" : "nothing is sent";
        const becomes = met === "claimed" ? unsent : "it goes on at the service";
        if (options.json) io.out(JSON.stringify(outcome ?? null));
        else io.out(outcome?.detail ?? `${task.id} is cancelled: ${becomes}`);
        if (outcome === undefined) io.err(await describeWait(store));
      });
    });
}

/** @throws UsageError unless exactly one task is meant. */
async function findTask(
  name: string,
  { services }: PolicySet,
  store: Store,
): Promise<Task | Pick<Task, "id" | "policy">> {
  const names = [...services.keys()];
  if (!name.includes("__")) {
    const { tasks, isCut } = await readTasksInFlight(store, names, (policy) => policy === name);
    const [first] = tasks;
    if (first === undefined) {
      await checkKnownPolicy(name, store);
      if (isCut) throw new UsageError(`no task of a policy ${name} is among ${tasksLookedThrough}: name it by its id`);
      throw new UsageError(`no task of a policy ${name} is in flight: see \`syncline running\``);
    }
    if (tasks.length === 1 && !isCut) return first.task;
    const ids = tasks.map(({ task }) => `${task.id} (${targetWords(task)})`);
    throw new UsageError(
      `${ids.length}${isCut ? " or more" : ""} tasks of ${name} are in flight, name one: ${someNames(ids, "`syncline running`")}`,
    );
  }
  return (await findToCancel(name, names, store)) ?? { id: name, policy: parseTaskId(name)?.policy ?? "" };
}

async function questionOf(task: Task, store: Store): Promise<string> {
  const journal = new StartJournal(store);
  const { state, sentAtMs } = (await journal.entry(task.id)) ?? {};
  const activation = await describeActivation(task, { journal });
  const isSent = state === "sending" || state === "confirmed";
  const now = isSent
    ? `It was sent ${sentAtMs === undefined ? "" : `at ${showInstant(sentAtMs)} `}and goes on at the service; Syncline stops to follow it.`
    : task.kind === "apply"
      ? "What it has changed by now stays, and a step under way ends first."
      : activation === undefined
        ? "Nothing was sent yet."
        : `The run is not started yet, but ${activation}.`;
  return `${now} Cancel ${task.id}?`;
}

function showEnded(outcome: Outcome | undefined, id: string, { json }: CancelOptions, io: CommandIo): void {
  if (outcome === undefined)
    throw new UsageError(`there is no task ${id} in flight, and no outcome of it is kept: see \`syncline running\``);
  io.exitCode = 1;
  const { status, reason, finishedAt, detail } = outcome;
  if (json) io.out(JSON.stringify(outcome));
  else io.err(`${id} has ended before: ${status} (${reason}) at ${showInstant(Date.parse(finishedAt))}: ${detail}`);
}

async function waitForOutcome(task: Task, store: Store, signal: AbortSignal): Promise<Outcome | undefined> {
  const history = new History(store);
  const untilMs = systemClock.monotonicMs() + outcomeWithinMs;
  for (;;) {
    const outcome = await history.outcome(task);
    if (outcome !== undefined || signal.aborted || systemClock.monotonicMs() >= untilMs) return outcome;
    if ((await readPresence(store)).workers === 0) return undefined;
    await systemClock.sleep(readEveryMs, signal);
  }
}

async function describeWait(store: Store): Promise<string> {
  const { workers } = await readPresence(store);
  return workers === 0
    ? "no worker is alive: its outcome is recorded when one starts"
    : "its outcome is recorded when the worker that has it ends its step: see `syncline history`";
}
