// `syncline delete SERVICE`: deletes one sync job by hand, guarded by its exact name. Without --yes
// it only shows what it would delete. With --yes its task goes the way of a policy's: queue, guard,
// journal, one DELETE, one outcome.
import { Command, InvalidArgumentError } from "commander";
import type { PolicySet } from "../config/policy-set.ts";
import { UsageError } from "../core/errors.ts";
import { silentLog } from "../core/event-log.ts";
import { someNames } from "../core/plain-text.ts";
import { showName } from "../core/show-name.ts";
import { deletionByHand, type Task, taskVersion } from "../model/task.ts";
import { taskId } from "../model/task-id.ts";
import { Producer } from "../queue/producer.ts";
import { ServiceError, type SyncService } from "../service/client.ts";
import { openStore, type RedisTarget, redisTimeMs } from "../store/redis.ts";
import { explainServiceError } from "./api-error.ts";
import type { CommandIo } from "./command-io.ts";
import { syncJobsOf } from "./deleted-targets.ts";
import type { CreateService } from "./doctor/doctor-command.ts";
import { recordChange } from "./record-change.ts";
import { waitAndReport, workHere } from "./run-policy.ts";
import type { StartApp } from "./serve.ts";
import {
  configOption,
  durationOption,
  findService,
  loadPoliciesOrThrow,
  prefixOption,
  type RedisOptions,
  redisOption,
  redisTarget,
  refuseIdle,
} from "./shared-options.ts";

interface DeleteOptions extends RedisOptions {
  readonly config: string;
  readonly syncJob: number;
  readonly name: string;
  readonly repository?: string;
  readonly yes?: true;
  readonly timeout: number;
  readonly json?: true;
}

const startWithinMs = 3_600_000;

const help = `
Without --yes nothing is sent but a read: it says whether there is such a sync job, whether the name is right, and which policies name it.
With --yes the name is read again right before the DELETE, which goes out once; an answer that gets lost is judged by reading again.
Exit codes: 0 deleted (without --yes: could be), 1 not, 2 wrong use or configuration, 3 Redis or the service is out of reach.

Examples:
  $ syncline delete main --config policies/ --sync-job 42 --name "Contracts" --repository HR
  $ syncline delete main --config policies/ --sync-job 42 --name "Contracts" --repository HR --yes`;

/** How the command reaches the service and the worker. */
interface DeleteParts {
  readonly createService: CreateService;
  readonly startApp: StartApp;
}

/** The command `delete`. */
export function deleteCommand(io: CommandIo, parts: DeleteParts): Command {
  return new Command("delete")
    .description("delete a sync job by hand, with its exact name as guard")
    .argument("<service>", "the service, by its name in the policies")
    .addOption(configOption())
    .requiredOption("--sync-job <id>", "the id of the sync job", syncJobArgument)
    .requiredOption("--name <text>", "its exact name: nothing is deleted when it has another one")
    .option("--repository <key>", "the repository (default: the service chooses)")
    .option("-y, --yes", "really delete it")
    .addOption(durationOption("--timeout <duration>", "how long --yes waits for the outcome", "10m"))
    .addOption(redisOption())
    .addOption(prefixOption())
    .option("--json", "print JSON")
    .addHelpText("after", help)
    .action(async (service: string, options: DeleteOptions, chosen: Command) => {
      if (options.yes !== true) refuseIdle(chosen, ["timeout"], "without --yes");
      const set = await loadPoliciesOrThrow(options.config, io);
      const settings = findService(set, service);
      if (options.name === "") throw new UsageError("--name must not be empty");
      if (options.yes) return deleteNow({ service, set, options, io, startApp: parts.startApp });
      const client = parts.createService(settings, { variables: io.settings.variables, log: silentLog });
      try {
        await look(client, { service, set, options, io });
      } finally {
        client.close();
      }
    });
}

interface Wish {
  readonly service: string;
  readonly set: PolicySet;
  readonly options: DeleteOptions;
  readonly io: CommandIo;
}

async function look(client: SyncService, { service, set, options, io }: Wish): Promise<void> {
  const { syncJob, name: guard, repository, json } = options;
  const names = set.policies
    .filter((policy) => policy.service === service && policy.repository === repository)
    .filter((policy) => syncJobsOf(policy).includes(syncJob))
    .map((policy) => policy.name);
  try {
    const { name } = await client.getSyncJobById(syncJob, repository === undefined ? {} : { repository });
    const isMeant = name === guard;
    io.exitCode = isMeant ? 0 : 1;
    if (json) return io.out(JSON.stringify({ syncJob, name: name ?? null, isMeant, policies: names }));
    io.out(
      isMeant
        ? `sync job ${syncJob} is ${showName(name)}: add --yes to delete it`
        : `sync job ${syncJob} has ${showName(name)}, not ${showName(guard)}: it would not be deleted`,
    );
    if (names.length > 0) io.out(`policies that name it: ${someNames(names, "--json")}`);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { lines, exitCode } = explainServiceError(error);
    for (const line of lines) io.err(line);
    io.exitCode = exitCode;
  }
}

async function deleteNow({
  service,
  set,
  options,
  io,
  startApp,
}: Wish & { readonly startApp: StartApp }): Promise<void> {
  const redis: RedisTarget = redisTarget(options, io);
  const store = await openStore(redis);
  try {
    const slotMs = await redisTimeMs(store);
    const identity = {
      policy: deletionByHand,
      kind: "delete",
      target: String(options.syncJob),
      slotMs,
      origin: "manual",
    } as const;
    const task: Task = {
      v: taskVersion("delete"),
      id: taskId(identity),
      ...identity,
      service,
      repository: options.repository ?? null,
      covers: [],
      startByMs: slotMs + startWithinMs,
      guard: options.name,
    };
    const producer = new Producer(redis, silentLog);
    let workers: number;
    try {
      workers = await producer.workers(service, "actions");
      await producer.enqueue([task]);
    } finally {
      await producer.close();
    }
    const where = options.repository === undefined ? service : `${service}, ${options.repository}`;
    const subject = `sync job ${options.syncJob} of ${where}`;
    const before = { name: options.name };
    await recordChange(store, io, { what: "delete", subject, reason: null, before, after: { task: task.id } });
    const worker = workers === 0 ? await workHere({ set, redis, io, startApp }) : undefined;
    try {
      await waitAndReport({ store, options, io }, [task]);
    } finally {
      await worker?.stop();
    }
  } finally {
    await store.close();
  }
}

function syncJobArgument(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError("write an id: digits only");
  return Number(text);
}
