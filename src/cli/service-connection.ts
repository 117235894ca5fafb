// Connects commands to a service, and closes the connection.
import { createService } from "../app/create-service.ts";
import { silentLog } from "../core/event-log.ts";
import { ServiceError, type SyncService } from "../service/client.ts";
import { explainServiceError } from "./api-error.ts";
import type { CommandIo } from "./command-io.ts";
import { findService, loadPoliciesOrThrow } from "./shared-options.ts";

/** The client of a service in a policy file, and its name. @throws UsageError without one. */
export async function connectTo(
  config: string,
  service: string | undefined,
  io: CommandIo,
): Promise<{ readonly client: SyncService; readonly name: string }> {
  const settings = findService(await loadPoliciesOrThrow(config, io), service);
  const client = createService(settings, { variables: io.settings.variables, log: silentLog });
  return { client, name: settings.name };
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
    const { lines, exitCode } = explainServiceError(error);
    for (const line of lines) io.err(line);
    io.exitCode = exitCode;
  } finally {
    service.close();
  }
}
