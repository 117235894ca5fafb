// `syncline running`: what is in flight now, in which step, since when, and what it waits for.
import type { Command } from "commander";
import { formatRoughly } from "../core/duration.ts";
import { showInstant } from "../core/instant.ts";
import { counted } from "../core/plain-text.ts";
import { isByHand } from "../model/task.ts";
import { type RunningTask, readRunning } from "../queries/running.ts";
import { describeMissingRoles } from "../queries/service-words.ts";
import { readTasksInFlight, tasksLookedThrough } from "../queue/tasks-in-flight.ts";
import { readPresence, redisTimeMs } from "../store/redis.ts";
import type { CommandIo } from "./command-io.ts";
import {
  choosePolicies,
  countArgument,
  findPolicy,
  findService,
  labelOption,
  redisCommand,
  type SetOptions,
  withPolicies,
} from "./shared-options.ts";
import { toTable, wideOption } from "./table.ts";

interface RunningOptions extends SetOptions {
  readonly service?: string;
  readonly label: readonly string[];
  readonly limit: number;
  readonly ids?: true;
}

const help = `
Steps: queued; waits for sync job (another task holds it); held back (breaker, or the service throttles); preparing (reads lists before the start); sending; verifying (looks for proof of what the answer leaves open); following; working (polls and declared objects); cancelling.

Examples:
  $ syncline running
  $ syncline running contracts-nightly --ids
  $ syncline running --service main --json`;

/** The command `running`. */
export function runningCommand(io: CommandIo): Command {
  return redisCommand("running", "set")
    .argument("[policy]", "only its tasks")
    .option("--service <name>", "only tasks of this service")
    .addOption(labelOption())
    .option("-n, --limit <count>", "how many", countArgument(10_000), 50)
    .option("--ids", "show the id of each task, as cancel and explain take it")
    .option("--json", "print JSON")
    .addOption(wideOption())
    .addHelpText("after", help)
    .action((policy: string | undefined, options: RunningOptions) =>
      withPolicies(options, io, async ({ set, store }) => {
        if (options.service !== undefined) findService(set, options.service);
        if (policy !== undefined && !isByHand(policy)) findPolicy(set, policy);
        const services = options.service === undefined ? [...set.services.keys()] : [options.service];
        const labelled = options.label.length === 0 ? undefined : choosePolicies(set, { label: options.label });
        const isMeant = (name: string) =>
          (policy ?? name) === name && (labelled?.some((one) => one.name === name) ?? true);
        const found = await readTasksInFlight(store, services, isMeant);
        const running = await readRunning(found.tasks, set, store);
        const shown = running.slice(0, options.limit);
        if (options.json) io.out(JSON.stringify({ v: 1, total: found.total, tasks: shown }));
        else if (shown.length === 0)
          io.err(found.isCut ? `nothing of this is among ${tasksLookedThrough}` : "nothing is in flight");
        else io.out(runningTable(shown, options, await redisTimeMs(store), io));
        if (found.isCut && (shown.length > 0 || options.json))
          io.err(`there are more tasks: only ${tasksLookedThrough} were looked through`);
        if (found.total > shown.length) io.err(`and ${counted(found.total - shown.length, "more task")}: --limit`);
        for (const line of describeMissingRoles(await readPresence(store))) io.err(line);
      }),
    );
}

function runningTable(tasks: readonly RunningTask[], { ids }: RunningOptions, nowMs: number, io: CommandIo): string {
  const rows = tasks.map((task) => [
    ...(ids ? [task.id] : [task.policy, task.name]),
    task.step,
    task.since === null ? "" : formatRoughly(Math.max(nowMs - Date.parse(task.since), 0)),
    task.deadline === null ? "" : showInstant(Date.parse(task.deadline)),
    task.waitsFor ?? "",
  ]);
  return toTable([...(ids ? ["id"] : ["policy", "task"]), "step", "for", "until", "waits for"], rows, io, {
    leaveOut: ["until"],
  });
}
