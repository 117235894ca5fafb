// Makes the client of a service from its settings. Called by the running services and by `syncline api`.
import type { ServiceSettings } from "../config/policy-set.ts";
import { UsageError } from "../core/errors.ts";
import type { EventLog } from "../core/event-log.ts";
import type { Gate } from "../core/gate.ts";
import { SyncService } from "../service/client.ts";
import { fileToken, staticToken } from "../service/token.ts";

type Variables = Readonly<Record<string, string | undefined>>;

/**
 * Makes the client of a service. Without a gate nothing holds its requests back: for calls by hand.
 * @throws UsageError when its token variable is not set.
 */
export function createService(
  settings: ServiceSettings,
  { variables, log, gate }: { readonly variables: Variables; readonly log: EventLog; readonly gate?: Gate },
): SyncService {
  const { name, baseUrl, token, pathForm, requestTimeoutMs } = settings;
  return new SyncService({
    baseUrl,
    pathForm,
    timeouts: { requestMs: requestTimeoutMs },
    token: token.kind === "file" ? fileToken(token.path) : staticToken(tokenOf(name, token.variable, variables)),
    log,
    gate,
  });
}

function tokenOf(service: string, variable: string, variables: Variables): string {
  const token = variables[variable];
  if (token === undefined || token === "")
    throw new UsageError(`service ${service}: the environment variable ${variable} holds no token`);
  return token;
}
