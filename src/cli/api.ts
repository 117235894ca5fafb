// `syncline api OPERATION`: calls any of the service's fifteen operations by hand, and records what
// it changed.
import { Argument, Command, Option } from "commander";
import { type By, recordChange } from "../actions/record-change.ts";
import { errorText, UsageError } from "../core/errors.ts";
import type { EventLog } from "../core/event-log.ts";
import { nearestWord } from "../core/nearest-word.ts";
import { cutText } from "../core/plain-text.ts";
import { type Operation, operationNames, type PathForm, SyncService, staticToken } from "../service/client.ts";
import { factsOf } from "../service/operations.ts";
import type { RedisTarget } from "../store/redis.ts";
import { type ApiOptions, type ApiRequest, callOperation, readApiRequest } from "./api-request.ts";
import { byHand } from "./changes.ts";
import type { CommandIo } from "./command-io.ts";
import { withService, withStore } from "./connections.ts";
import { prefixOption, type ReasonOption, reasonOption, redisTarget } from "./shared-options.ts";
import { showPlace } from "./table.ts";

/** How much of each value of a body the record keeps. */
const recordedCharactersMax = 500;

/** Opens the client of a service in a policy file. @throws UsageError when there is none. */
export type ConnectService = (target: {
  readonly config: string;
  /** Not needed where there is only one. */
  readonly service: string | undefined;
  /** Logs retries; default: no log. */
  readonly log?: EventLog;
}) => Promise<SyncService>;

interface Target extends ReasonOption {
  readonly config?: string;
  readonly service?: string;
  readonly baseUrl?: string;
  readonly pathForm?: PathForm;
  readonly redisUrl?: string;
  readonly prefix: string;
}

/** The command `api`. */
export function apiCommand(io: CommandIo, connect: ConnectService): Command {
  return new Command("api")
    .summary("call one operation of the service by hand")
    .addArgument(new Argument("<operation>", "name of the operation, in any case"))
    .option("--config <path>", "policy file or folder that names the service")
    .option("--service <name>", "name of the service in it")
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
    .option("--json", "print compact JSON for machines")
    .addOption(
      new Option("--redis-url <url>", "where a change is recorded (`syncline changes`); nowhere unless given").env(
        "REDIS_URL",
      ),
    )
    .addOption(prefixOption())
    .addOption(reasonOption())
    .addHelpText("after", () => `\nOperations:\n${operationLines().join("\n")}\n`)
    .action(async (name: string, options: ApiOptions & Target) => {
      const request = await readApiRequest(parseOperation(name), options, io);
      const { redisUrl, prefix, service = "the service at --base-url" } = options;
      const redis = redisUrl === undefined ? undefined : redisTarget({ redisUrl, prefix }, io);
      await withService(await open(io, connect, options), io, async (client) => {
        io.exitCode = await callOperation(client, request, io);
      });
      if (redis !== undefined) await recordApiCall(request, { service, io, redis, by: byHand(io, options) });
    });
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

async function open(io: CommandIo, connect: ConnectService, target: Target): Promise<SyncService> {
  const { config, service, baseUrl, pathForm } = target;
  if (baseUrl === undefined) {
    if (config === undefined || service === undefined) {
      throw new UsageError(
        "say which service: --config PATH with --service NAME, or --base-url URL with SYNCLINE_TOKEN set",
      );
    }
    if (pathForm !== undefined)
      throw new UsageError("--path-form goes with --base-url only: the policy file says it for its services");
    return connect({ config, service });
  }
  if (config !== undefined || service !== undefined) {
    throw new UsageError("--base-url excludes --config and --service: take one or the other");
  }
  const { token } = io.settings;
  if (token === undefined) {
    throw new UsageError("--base-url needs an access token: set the environment variable SYNCLINE_TOKEN");
  }
  try {
    return new SyncService({ baseUrl, token: staticToken(token), pathForm, log: retryNotes(io) });
  } catch (error) {
    throw new UsageError(`--base-url or SYNCLINE_TOKEN: ${error instanceof Error ? error.message : "cannot be used"}`);
  }
}

function retryNotes(io: CommandIo): EventLog {
  const note: EventLog["warn"] = (event, fields) => {
    if (event === "request.retried") io.err(`note: ${fields?.["kind"]}, trying again in ${fields?.["waitMs"]} ms`);
    if (event === "link.rebased")
      io.err("note: the service's next link names another origin; its query is used at the configured one");
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

/** Records what was sent and the exit code, unless the operation only reads. */
async function recordApiCall(
  request: ApiRequest,
  {
    service,
    io,
    redis,
    by,
  }: { readonly service: string; readonly io: CommandIo; readonly redis: RedisTarget; readonly by: By },
): Promise<void> {
  const { operation, key, repository } = request;
  if (factsOf(operation).method === "GET") return;
  const fields = Object.entries(request.body).map(([name, value]) => {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    return [name, cutText(text, recordedCharactersMax)];
  });
  const subject = `${operation} ${key} of ${showPlace(service, repository)}`;
  const body = fields.length === 0 ? {} : { body: Object.fromEntries(fields) };
  const change = { what: "api", subject, after: { ...body, exitCode: io.exitCode } };
  await withStore(redis, (store) => recordChange(store, by, change)).catch((error: unknown) => {
    io.err(`done, but not in the record of changes: ${errorText(error)}`);
  });
}
