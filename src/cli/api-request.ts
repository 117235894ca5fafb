// Checks the options of `syncline api` against the operations table before anything is sent. Every
// refusal names the option, the reason and what to do. Called by api.ts.
import { createReadStream } from "node:fs";
import { UsageError } from "../core/errors.ts";
import { isJsonObject, type JsonObject } from "../core/json.ts";
import { factsOf, type ListOperation, type Operation, type OperationFacts } from "../service/operations.ts";
import type { CommandIo } from "./command-io.ts";

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
export interface ApiRequest {
  readonly operation: Operation;
  readonly key: string;
  readonly repository: string | undefined;
  readonly select: readonly string[];
  readonly expand: readonly string[];
  readonly body: JsonObject;
  readonly isAll: boolean;
  readonly isCount: boolean;
  readonly isJson: boolean;
}

const bodyBytesMax = 1024 * 1024;

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
    operation,
    key,
    repository: options.repository,
    select: readNames("--select", options.select),
    expand: readNames("--expand", options.expand),
    body: options.body === undefined ? {} : await readBody(options.body, io),
    isAll: options.all === true,
    isCount: options.count === true,
    isJson: options.json === true,
  };
}

/** Whether a request is for a list, so that it may be walked and counted. */
export function isListRequest(request: ApiRequest): request is ApiRequest & { readonly operation: ListOperation } {
  return factsOf(request.operation).answer === "list";
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
  const text = path === "-" ? await io.readInput() : await readFileBounded(path);
  let body: unknown;
  try {
    body = JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch {
    throw new UsageError(`--body: ${whence} is not JSON: give an object like {"name":"Contracts"}`);
  }
  if (!isJsonObject(body))
    throw new UsageError(`--body: ${whence} is not a JSON object: write it like {"name":"Contracts"}`);
  return body;
}

async function readFileBounded(path: string): Promise<string> {
  try {
    let bytes = Buffer.alloc(0);
    // `end` limits what is read, also from a pipe of unknown size.
    for await (const chunk of createReadStream(path, { end: bodyBytesMax })) bytes = Buffer.concat([bytes, chunk]);
    if (bytes.length > bodyBytesMax) throw new UsageError(`--body: ${path} is over 1 MiB: no update is that large`);
    return bytes.toString("utf8");
  } catch (error) {
    if (error instanceof UsageError) throw error;
    const code = error instanceof Error && "code" in error ? String(error.code) : "unreadable";
    throw new UsageError(`--body: ${path} cannot be read (${code}): check the path`);
  }
}
