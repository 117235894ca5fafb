// The request of `syncline api`: its options are checked before anything is sent, and its answer is
// printed. Called by api.ts.
import { UsageError } from "../core/errors.ts";
import { isJsonObject, type JsonObject, parseJson } from "../core/json.ts";
import type { Page, SyncService } from "../service/client.ts";
import { factsOf, type ListOperation, type Operation, type OperationFacts } from "../service/operations.ts";
import { type CommandIo, type ExitCode, readInputFile } from "./command-io.ts";
import { reportFailure } from "./service-call.ts";
import { safeJson } from "./table.ts";

/** The options as commander parses them. */
export interface ApiOptions {
  readonly key?: string;
  readonly repository?: string;
  readonly select?: string;
  readonly expand?: string;
  readonly body?: string;
  readonly all?: boolean;
  readonly count?: boolean;
  readonly json?: boolean;
}

/** A valid request. `key` is empty, and `body` is `{}`, where the operation has none. */
export interface ApiRequest extends Pick<ApiOptions, "all" | "count" | "json"> {
  readonly operation: Operation;
  readonly key: string;
  readonly repository: string | undefined;
  readonly select: readonly string[];
  readonly expand: readonly string[];
  readonly body: JsonObject;
}

/** Reads the options. @throws UsageError for the first one that does not fit the operation. */
export async function readApiRequest(operation: Operation, options: ApiOptions, io: CommandIo): Promise<ApiRequest> {
  const facts = factsOf(operation);
  const key = readKey(operation, facts, options);
  refuseMisfits(operation, facts, options);
  if (options.repository === "") throw new UsageError("--repository is empty: leave it out, or name a repository");
  if (facts.target === "identity" && (options.repository ?? "") === "") {
    throw new UsageError(`${operation} needs --repository: an identity belongs to one repository`);
  }
  if (facts.method === "PUT" && options.body === undefined) {
    throw new UsageError(
      `${operation} needs --body FILE: a JSON object with the properties to change (- reads standard input)`,
    );
  }
  return {
    ...options,
    operation,
    key,
    repository: options.repository,
    select: readNames("--select", options.select),
    expand: readNames("--expand", options.expand),
    body: options.body === undefined ? {} : await readBody(options.body, io),
  };
}

/** Whether an operation gives a list, which may be walked and counted. */
function isList(operation: Operation): operation is ListOperation {
  return factsOf(operation).answer === "list";
}

function readKey(operation: Operation, facts: OperationFacts, options: ApiOptions): string {
  const { key } = options;
  if (facts.target === "none") {
    if (key !== undefined) throw new UsageError(`${operation} is a list and takes no --key: leave it out`);
    return "";
  }
  if (key === undefined || key === "") {
    const example = facts.target === "identity" ? "--key 4be6c9a0-… (the identity's id)" : "--key 42";
    throw new UsageError(`${operation} needs a key: add ${example}`);
  }
  if (facts.target === "key" && !/^\d{1,19}$/.test(key)) {
    throw new UsageError(`--key ${JSON.stringify(key)} is not a whole number: write it like --key 42`);
  }
  return key;
}

function refuseMisfits(operation: Operation, facts: OperationFacts, options: ApiOptions): void {
  if (options.all === true && options.count === true) {
    throw new UsageError("--all and --count exclude each other: take one");
  }
  for (const name of ["all", "count"] as const) {
    if (options[name] === true && facts.answer !== "list") {
      throw new UsageError(`--${name} is for lists, and ${operation} is none: leave it out`);
    }
  }
  if (options.body !== undefined && facts.method !== "PUT") {
    throw new UsageError(`${operation} (${facts.method}) takes no --body: leave it out`);
  }
  for (const name of ["select", "expand"] as const) {
    if (options[name] === undefined) continue;
    if (facts.method !== "GET") throw new UsageError(`--${name} is for reading, and ${operation} is a ${facts.method}`);
    if (options.count === true) throw new UsageError(`--${name} changes nothing about --count: leave it out`);
  }
}

function readNames(option: string, text: string | undefined): string[] {
  if (text === undefined) return [];
  const names = text.split(",").map((name) => name.trim());
  if (names.includes("")) throw new UsageError(`${option} has an empty name: write it like ${option} name,syncJobId`);
  return names;
}

async function readBody(path: string, io: CommandIo): Promise<JsonObject> {
  const whence = path === "-" ? "standard input" : path;
  const text = await readInputFile("--body", path, io);
  const body = parseJson(text.replace(/^\uFEFF/, ""));
  if (body === undefined)
    throw new UsageError(`--body: ${whence} is not JSON: give an object like {"name":"Contracts"}`);
  if (!isJsonObject(body))
    throw new UsageError(`--body: ${whence} is not a JSON object: write it like {"name":"Contracts"}`);
  return body;
}

type Result =
  | { readonly type: "json"; readonly value: unknown }
  | { readonly type: "done"; readonly what: string }
  | { readonly type: "deletion"; readonly isDeleted: boolean };

type Invoke = (service: SyncService, request: ApiRequest, signal: AbortSignal) => Promise<Result>;

const json = (value: unknown): Result => ({ type: "json", value });

/** What gives no list. A total table: an operation without an entry does not compile. */
const invocations: Readonly<Record<Exclude<Operation, ListOperation>, Invoke>> = {
  GetSyncJobById: async (service, r, signal) => json(await service.getSyncJobById(r.key, r, { signal })),
  UpdateSyncJobById: async (service, r, signal) => json(await service.updateSyncJobById(r.key, r.body, r, { signal })),
  DeleteSyncJobById: async (service, r, signal) => {
    const result = await service.deleteSyncJobById(r.key, r, { signal });
    return { type: "deletion", isDeleted: result !== "not-deleted" };
  },
  RunSyncJob: async (service, r, signal) => {
    await service.runSyncJob(r.key, r, { signal });
    return { type: "done", what: `sync job ${r.key}: the service accepted the start of a run` };
  },
  EnableSyncJobById: async (service, r, signal) => {
    await service.enableSyncJobById(r.key, r, { signal });
    return { type: "done", what: `sync job ${r.key}: activated` };
  },
  UpdateEcmDocumentMaskById: async (service, r, signal) =>
    json(await service.updateEcmDocumentMaskById(r.key, r.body, r, { signal })),
  UpdateDriveSyncTargetById: async (service, r, signal) =>
    json(await service.updateDriveSyncTargetById(r.key, r.body, r, { signal })),
  UpdateSiteSyncTargetById: async (service, r, signal) =>
    json(await service.updateSiteSyncTargetById(r.key, r.body, r, { signal })),
  GetIdentityById: async (service, r, signal) => {
    const query = { repository: r.repository ?? "", select: r.select, expand: r.expand };
    return json({ value: await service.getIdentityById(r.key, query, { signal }) });
  },
};

/** Makes the request and prints its answer. @throws ServiceError */
export async function callOperation(service: SyncService, request: ApiRequest, io: CommandIo): Promise<ExitCode> {
  const { operation } = request;
  const { signal } = io;
  const write = (value: unknown) => io.out(safeJson(value, request.json ? 0 : 2));
  if (!isList(operation)) return print(await invocations[operation](service, request, signal), request, write, io);
  if (request.count) {
    io.out(String(await service.count(operation, request, { signal })));
    return 0;
  }
  for await (const page of service.pages(operation, request, { signal })) {
    if (!request.all) return printPage(page, write, io);
    for (const item of page.items) io.out(safeJson(item));
  }
  return 0;
}

function print(result: Result, request: ApiRequest, write: (value: unknown) => void, io: CommandIo): ExitCode {
  switch (result.type) {
    case "json":
      write(result.value);
      return 0;
    case "done":
      if (request.json) write({ operation: request.operation, key: toKey(request.key), status: "accepted" });
      else io.out(result.what);
      return 0;
    case "deletion":
      io.out(String(result.isDeleted));
      if (result.isDeleted) return 0;
      io.err(`error: the service did not delete sync job ${request.key}: check that the key exists and may be deleted`);
      return 1;
  }
}

function printPage(page: Page<JsonObject>, write: (value: unknown) => void, io: CommandIo): ExitCode {
  // Shows only that there is more: a link's query may open it without a token. --all reads on.
  const link = page.nextLink === undefined ? {} : { "@odata.nextLink": page.nextLink.replace(/\?.*$/s, "?[…]") };
  write({ value: page.items, ...link });
  if (page.linkProblem === undefined) return 0;
  reportFailure(page.linkProblem, io);
  return io.exitCode;
}

function toKey(key: string): number | string {
  return Number.isSafeInteger(Number(key)) ? Number(key) : key;
}
