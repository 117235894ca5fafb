// Connects commands to a service, closes the connection, and explains a call that failed.

import { createService } from "../app/create-service.ts";
import type { ServiceSettings } from "../config/policy-set.ts";
import type { ErrorKind } from "../core/errors.ts";
import { silentLog } from "../core/event-log.ts";
import { ServiceError, type SyncService } from "../service/client.ts";
import type { CommandIo, ExitCode } from "./command-io.ts";
import { findService, loadPoliciesOrThrow } from "./shared-options.ts";

/** The client of a service in a policy file, and its settings. @throws UsageError without one. */
export async function connectTo(
  config: string,
  service: string | undefined,
  io: CommandIo,
): Promise<{ readonly client: SyncService; readonly name: string; readonly settings: ServiceSettings }> {
  const settings = findService(await loadPoliciesOrThrow(config, io), service);
  const client = createService(settings, { variables: io.settings.variables, log: silentLog });
  return { client, name: settings.name, settings };
}

/** Runs `use` with a client; a failure of its service is printed and sets the exit code. */
export async function withService(
  service: SyncService,
  io: CommandIo,
  use: (service: SyncService) => Promise<void>,
): Promise<void> {
  try {
    await use(service);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    reportFailure(error, io);
  } finally {
    service.close();
  }
}

/** Prints why a call failed, and sets the exit code. */
export function reportFailure(error: ServiceError, io: CommandIo): void {
  const { lines, exitCode } = explainServiceError(error);
  for (const line of lines) io.err(line);
  io.exitCode = exitCode;
}

const advice: Readonly<Record<ErrorKind, string>> = {
  "bad-request": "check the key, the repository, the properties and the path form",
  "not-found": "check the key, the base URL and the path form",
  unauthorized: "check the access token: it may have run out",
  forbidden: "the token is good but has no right to do this: ask for the permission",
  undocumented: "the interface does not name this status: ask those who run the service",
  throttled: "the service wants fewer requests: wait and try again",
  server: "look into the service's own log",
  unreachable: "check the base URL, the network and whether the service runs; nothing was done",
  "answer-lost": "the service may be slow or a proxy in between: try again",
  contract: "the answer is not what the interface says: check that the base URL leads to the service",
  paging: "what was printed so far is good; the rest of the list was not read",
  cancelled: "stopped on request",
};

/** Kinds after which a change may have been carried out. */
const uncertain: readonly ErrorKind[] = ["not-found", "undocumented", "answer-lost", "cancelled", "server", "contract"];

/** Lines for standard error, and the exit code: 3 if unreachable or the answer was lost, else 1. */
export function explainServiceError(error: ServiceError): {
  readonly lines: readonly string[];
  readonly exitCode: ExitCode;
} {
  const isWrite = error.method !== "GET";
  // A 404 is documented for updates and the deletion only.
  const isTold = error.kind === "not-found" && error.documented !== undefined;
  const isUncertain = isWrite && error.sent === "maybe" && uncertain.includes(error.kind) && !isTold;
  const facts = [`kind: ${error.kind}`];
  if (error.reason !== undefined) facts.push(`reason: ${error.reason}`);
  if (error.status !== undefined) facts.push(`status: ${error.status}`);
  if (error.retryAfterMs !== undefined) facts.push(`retry after: ${Math.ceil(error.retryAfterMs / 1_000)} s`);
  if (error.correlationId !== undefined) facts.push(`correlation id: ${error.correlationId}`);
  const whatToDo = isUncertain
    ? `${error.operation} may or may not have happened: look at the service before you repeat it`
    : advice[error.kind];
  const lines = [`error: ${error.message}`, `error: ${facts.join(", ")}`, `error: ${whatToDo}`];
  const isOut =
    error.kind === "unreachable" || error.kind === "answer-lost" || (error.kind === "cancelled" && isUncertain);
  return { lines, exitCode: isOut ? 3 : 1 };
}
