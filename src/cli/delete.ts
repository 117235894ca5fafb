// `syncline delete`: deletes one sync job by hand, guarded by its exact name. Without --yes it only
// shows what it would delete. With --yes its task goes the way of a policy's: queue, guard,
// journal, one DELETE, one outcome.

import type { Command } from "commander";
import { instantByHand, queueByHand } from "../actions/run.ts";
import { createService } from "../app/create-service.ts";
import type { PolicySet } from "../config/policy-set.ts";
import { UsageError } from "../core/errors.ts";
import { silentLog } from "../core/event-log.ts";
import { defined } from "../core/json.ts";
import { showName, someNames } from "../core/plain-text.ts";
import { deletionByHand, type Task, taskId } from "../model/task.ts";
import type { SyncService } from "../service/client.ts";
import { describeOther } from "../tasks/step.ts";
import { byHand } from "./changes.ts";
import type { CommandIo } from "./command-io.ts";
import { namedSyncJobs } from "./deleted-targets.ts";
import { workAndWait } from "./run-policy.ts";
import { withService } from "./service-call.ts";
import {
  durationOption,
  findService,
  loadPoliciesOrThrow,
  type PolicyOptions,
  type ReasonOption,
  reasonOption,
  redisCommand,
  redisTarget,
  refuseIgnoredOptions,
  serviceOption,
  syncJobArgument,
  withProducer,
  withStore,
} from "./shared-options.ts";
import { showPlace } from "./table.ts";

interface DeleteOptions extends PolicyOptions, ReasonOption {
  readonly service?: string;
  readonly syncJob: number;
  readonly name: string;
  readonly repository?: string;
  readonly yes?: true;
  readonly timeout: number;
}

const startWithinMs = 3_600_000;

const help = `
Without --yes nothing is sent but a read: it says whether there is such a sync job, whether the name is right, and which policies name it.
With --yes the name is read again right before the DELETE, which goes out once; an answer that gets lost is judged by reading again.
Exit codes: 0 deleted (without --yes: could be), 1 not, 2 wrong use or configuration, 3 Redis or the service is out of reach.

Examples:
  $ syncline delete --config policies/ --sync-job 42 --name "Contracts" --repository HR
  $ syncline delete --config policies/ --sync-job 42 --name "Contracts" --repository HR --yes`;

/** The command `delete`. */
export function deleteCommand(io: CommandIo): Command {
  return redisCommand("delete", "config")
    .addOption(serviceOption())
    .requiredOption("--sync-job <id>", "the id of the sync job", syncJobArgument)
    .requiredOption(
      "--name <text>",
      "its exact name, a guard: nothing is deleted when it has another one; `syncline api GetSyncJobById --key ID` shows it",
    )
    .option("--repository <key>", "the repository (default: the service chooses)")
    .option("-y, --yes", "really delete it")
    .addOption(reasonOption())
    .addOption(durationOption("--timeout <duration>", "how long --yes waits for the outcome", "10m"))
    .option("--json", "print JSON")
    .addHelpText("after", help)
    .action(async (options: DeleteOptions, chosen: Command) => {
      if (options.yes !== true) refuseIgnoredOptions(chosen, ["timeout"], "without --yes");
      const set = await loadPoliciesOrThrow(options.config, io);
      const settings = findService(set, options.service);
      const { name: service } = settings;
      if (options.name === "") throw new UsageError("--name must not be empty");
      if (options.yes) return deleteNow(service, set, options, io);
      const client = createService(settings, { variables: io.settings.variables, log: silentLog });
      await withService(client, io, () => show(client, service, set, options, io));
    });
}

async function show(
  client: SyncService,
  service: string,
  set: PolicySet,
  options: DeleteOptions,
  io: CommandIo,
): Promise<void> {
  const { syncJob, name: guard, repository, json } = options;
  const names = set.policies
    .filter((policy) => policy.service === service && policy.repository === repository)
    .filter((policy) => namedSyncJobs(policy).includes(syncJob))
    .map((policy) => policy.name);
  const read = await client.getSyncJobById(syncJob, defined({ repository }));
  const { name } = read;
  const other = describeOther({ target: String(syncJob) }, read);
  const isMeant = other === undefined && name === guard;
  io.exitCode = isMeant ? 0 : 1;
  if (json) return io.out(JSON.stringify({ v: 1, syncJob, name: name ?? null, isMeant, policies: names }));
  io.out(
    isMeant
      ? `sync job ${syncJob} is ${showName(name)}: add --yes to delete it`
      : `${other ?? `sync job ${syncJob} has ${showName(name)}, not ${showName(guard)}`}: it would not be deleted`,
  );
  if (names.length > 0) io.out(`policies that name it: ${someNames(names, "--json")}`);
}

async function deleteNow(service: string, set: PolicySet, options: DeleteOptions, io: CommandIo): Promise<void> {
  const redis = redisTarget(options, io);
  await withStore(redis, async (store) => {
    const context = { set, redis, store, options, io };
    const task = toTask(service, options, await instantByHand({ service, repository: options.repository }, { store }));
    const change = {
      what: "delete",
      subject: `sync job ${options.syncJob} of ${showPlace(service, options.repository)}`,
      before: { name: options.name },
      after: { task: task.id },
    };
    const by = byHand(io, options);
    const queued = await withProducer(redis, (producer) => queueByHand([task], { store, producer, by }, change));
    await workAndWait(queued, context);
  });
}

function toTask(service: string, { syncJob, name, repository }: DeleteOptions, slotMs: number): Task {
  const identity = {
    policy: deletionByHand,
    kind: "delete",
    target: String(syncJob),
    slotMs,
    origin: "manual",
  } as const;
  return {
    v: 1,
    id: taskId(identity),
    ...identity,
    service,
    repository: repository ?? null,
    covers: [],
    startByMs: slotMs + startWithinMs,
    guard: name,
  };
}
