// `syncline api OPERATION`: calls any of the service's fifteen operations by hand. It asks before
// it changes something, and records it.

import { Argument, Command, Option } from "commander";
import { beginChange } from "../actions/record-change.ts";
import { errorText, OutOfReachError, UsageError } from "../core/errors.ts";
import type { EventLog } from "../core/event-log.ts";
import { defined } from "../core/json.ts";
import { nearestWord } from "../core/nearest-word.ts";
import { cutText, showName } from "../core/plain-text.ts";
import { isRedisOutage } from "../core/redis-outage.ts";
import {
  type Operation,
  operationNames,
  type PathForm,
  ServiceError,
  SyncService,
  staticToken,
} from "../service/client.ts";
import { factsOf } from "../service/operations.ts";
import { openStore, type Store } from "../store/redis.ts";
import { type ApiOptions, type ApiRequest, callOperation, readApiRequest } from "./api-request.ts";
import { byHand } from "./changes.ts";
import { type CommandIo, type ExitCode, isConfirmed, readerGone } from "./command-io.ts";
import { connectTo, explainServiceError, withService } from "./service-call.ts";
import {
  optionalConfigOption,
  prefixOption,
  type ReasonOption,
  reasonOption,
  redisOption,
  redisTarget,
  refuseIgnoredOptions,
  serviceOption,
} from "./shared-options.ts";
import { showPlace } from "./table.ts";

/** How much of each value of a body the record keeps. */
const recordedCharactersMax = 500;

interface ApiCommandOptions extends ApiOptions, ReasonOption {
  readonly config?: string;
  readonly service?: string;
  readonly baseUrl?: string;
  readonly pathForm?: PathForm;
  readonly name?: string;
  readonly yes?: true;
  /** False with --no-record. */
  readonly record: boolean;
  readonly redisUrl: string;
  readonly prefix: string;
}

const help = `
What changes something is asked about first, or takes --yes; it stands in \`syncline changes\` afterwards. A deletion takes the exact name of the sync job as guard. Nothing is followed or judged here: \`syncline run\` and \`syncline delete\` do that, too.

Examples:
  $ syncline api GetActivities --config policies/ --all
  $ syncline api RunSyncJob --config policies/ --key 42 --repository HR --reason "after the repair" --yes
  $ syncline api DeleteSyncJobById --config policies/ --key 42 --name "Contracts (old)" --yes

Operations:
`;

/** The command `api`. */
export function apiCommand(io: CommandIo): Command {
  return new Command("api")
    .summary("call one operation of the service by hand")
    .addArgument(new Argument("<operation>", "name of the operation, in any case"))
    .addOption(optionalConfigOption("policy file or folder that names the service"))
    .addOption(serviceOption())
    .option("--base-url <url>", "address of the service instead; the token comes from SYNCLINE_TOKEN")
    .addOption(
      new Option("--path-form <form>", "with --base-url: how keys are written").choices(["parentheses", "segment"]),
    )
    .option("--key <key>", "id of the sync job, mask, target or identity")
    .option("--repository <key>", "destination repository")
    .option("--select <names>", "properties to return, separated by commas")
    .option("--expand <names>", "properties to extend, separated by commas")
    .option("--body <file>", "JSON object with the properties to change; - reads standard input")
    .option("--all", "print every item of a list, one JSON line each")
    .option("--count", "print the number of items of a list")
    .option("--name <text>", "of a deletion: the exact name; nothing is deleted when it has another one")
    .option("-y, --yes", "send what changes something without a question")
    .addOption(reasonOption())
    .option("--no-record", "send it although no Redis is there to record it")
    .option("--json", "print compact JSON for machines")
    .addOption(redisOption())
    .addOption(prefixOption())
    .addHelpText("after", () => `${help}${operationLines().join("\n")}\n`)
    .action(async (name: string, options: ApiCommandOptions, command: Command) => {
      const operation = parseOperation(name);
      const isRead = factsOf(operation).method === "GET";
      if (isRead) refuseIgnoredOptions(command, ["yes", "reason", "record"], `with ${operation}, which only reads`);
      if (operation !== deletion) refuseIgnoredOptions(command, ["name"], `with ${operation}: it guards a deletion`);
      else if (!options.name) throw new UsageError(`${deletion} needs --name: the sync job's exact name, as a guard`);
      const request = await readApiRequest(operation, options, io);
      const target = await open(io, options, command);
      if (!isRead) return write(request, target, options, io);
      return withService(target.client, io, async (client) => {
        io.exitCode = await callOperation(client, request, io).catch((error: unknown) => {
          // What its reader wants no more may stay unread.
          if (error instanceof ServiceError && error.kind === "cancelled" && io.signal.reason === readerGone) return 0;
          throw error;
        });
      });
    });
}

const deletion = "DeleteSyncJobById" satisfies Operation;

interface Target {
  readonly client: SyncService;
  readonly name: string;
}

/** Asks, sends, and records what was sent with the exit code. */
async function write(request: ApiRequest, target: Target, options: ApiCommandOptions, io: CommandIo): Promise<void> {
  const subject = `${request.operation} ${request.key} of ${showPlace(target.name, request.repository)}`;
  await withService(target.client, io, async (client) => {
    const isGuarded = await isGuardRight(client, request, options.name, io);
    if (isGuarded && (await isConfirmed(`${subject}: send it?`, options, io))) {
      const send = () => callOperation(client, request, io);
      io.exitCode = options.record ? await sendRecorded(send, { subject, request, options, io }) : await send();
      return;
    }
    if (isGuarded) io.err("nothing was sent");
    io.exitCode = 1;
  });
}

interface Sending {
  readonly subject: string;
  readonly request: ApiRequest;
  readonly options: ApiCommandOptions;
  readonly io: CommandIo;
}

/** Sends with a record of it, which says how it ended, also when the service fails. */
async function sendRecorded(send: () => Promise<ExitCode>, sending: Sending): Promise<ExitCode> {
  const { subject, request, options, io } = sending;
  const store = await openRecord(options, io);
  let exitCode: ExitCode = 1;
  try {
    const body = recordedBody(request);
    const facts = { what: "api", subject, after: body } as const;
    const change = await beginChange(store, byHand(io, options), facts).catch(explainUnsent);
    try {
      exitCode = await send();
      return exitCode;
    } catch (error) {
      if (error instanceof ServiceError) ({ exitCode } = explainServiceError(error));
      throw error;
    } finally {
      await change.end({ after: { ...body, exitCode } });
    }
  } finally {
    await store.close();
  }
}

/** Without its record a change is not sent. @throws OutOfReachError, or another error. */
function explainUnsent(error: unknown): never {
  if (!isRedisOutage(error)) throw error;
  throw new OutOfReachError(`Redis stopped answering (${errorText(error)}). ${nothingSent}`);
}

const nothingSent = "Nothing was sent: --no-record sends it without a record";

/** Where the change is recorded; opened first, so that nothing is sent without it. */
async function openRecord({ redisUrl, prefix }: ApiCommandOptions, io: CommandIo): Promise<Store> {
  try {
    return await openStore(redisTarget({ redisUrl, prefix }, io));
  } catch (error) {
    if (!(error instanceof OutOfReachError)) throw error;
    throw new OutOfReachError(`${error.message} ${nothingSent}`);
  }
}

/** Whether the sync job has the name that guards it. No other operation has a guard. */
async function isGuardRight(
  client: SyncService,
  { operation, key, repository }: ApiRequest,
  guard: string | undefined,
  io: CommandIo,
): Promise<boolean> {
  if (operation !== deletion) return true;
  const { name } = await client.getSyncJobById(key, defined({ repository }));
  if (name === guard) return true;
  io.err(`sync job ${key} has ${showName(name)}, not ${showName(guard)}: nothing was sent`);
  return false;
}

/** Finds an operation by its name in any case. @throws UsageError with the nearest names. */
function parseOperation(name: string): Operation {
  const wanted = name.toLowerCase();
  const found = operationNames.find((known) => known.toLowerCase() === wanted);
  if (found !== undefined) return found;
  const near = nearestWord(name, operationNames);
  const hint = near === undefined ? "" : `Did you mean ${near}? `;
  throw new UsageError(
    `there is no operation ${JSON.stringify(name)}. ${hint}"syncline api --help" lists all fifteen.`,
  );
}

async function open(
  io: CommandIo,
  { config, service, baseUrl, pathForm }: ApiCommandOptions,
  command: Command,
): Promise<Target> {
  if (baseUrl === undefined) {
    if (config === undefined)
      throw new UsageError("say which service: --config PATH, or --base-url URL with SYNCLINE_TOKEN set");
    refuseIgnoredOptions(command, ["pathForm"], "without --base-url: the policy file says it for its services");
    return connectTo(config, service, io);
  }
  refuseIgnoredOptions(command, ["config", "service"], "beside --base-url: take one or the other");
  const { token } = io.settings;
  if (token === undefined) {
    throw new UsageError("--base-url needs an access token: set the environment variable SYNCLINE_TOKEN");
  }
  try {
    const client = new SyncService({ baseUrl, token: staticToken(token), pathForm, log: retryNotes(io) });
    return { client, name: "the service at --base-url" };
  } catch (error) {
    throw new UsageError(`--base-url or SYNCLINE_TOKEN: ${error instanceof Error ? error.message : "cannot be used"}`);
  }
}

function retryNotes(io: CommandIo): EventLog {
  const note: EventLog["warn"] = (event, fields) => {
    if (event === "request.retried") io.err(`note: ${fields?.["kind"]}, trying again in ${fields?.["waitMs"]} ms`);
    if (event === "link.rebased")
      io.err("note: the service's next link has another origin or base path; its query is used at the configured ones");
  };
  return { info: () => {}, warn: note, error: () => {} };
}

function operationLines(): string[] {
  const width = Math.max(...operationNames.map((name) => name.length));
  return operationNames.map((name) => {
    const { method, path, target } = factsOf(name);
    const key = { key: "({key})", none: "", identity: "/ecmsync.userorgroup(id={key},repository={repository})" }[
      target
    ];
    return `  ${name.padEnd(width)}  ${method.padEnd(6)}  ${path}${key}`;
  });
}

function recordedBody({ body }: ApiRequest): object {
  const fields = Object.entries(body).map(([name, value]) => {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    return [name, cutText(text, recordedCharactersMax)];
  });
  return fields.length === 0 ? {} : { body: Object.fromEntries(fields) };
}
