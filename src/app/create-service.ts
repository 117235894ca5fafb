// Makes the client of a service from its settings.
import type { ServiceSettings, TlsSettings } from "../config/policy-set.ts";
import type { Variables } from "../config/settings.ts";
import { UsageError } from "../core/errors.ts";
import type { EventLog } from "../core/event-log.ts";
import type { Limiter } from "../core/limiter.ts";
import { SyncService } from "../service/client.ts";
import { oauth2Token } from "../service/oauth2-token.ts";
import { defaultMaxSockets, type ServiceOptions, timeoutsWithin } from "../service/service-options.ts";
import { TlsFiles } from "../service/tls-files.ts";
import { fileToken, staticToken, TokenError, type TokenSource } from "../service/token.ts";

interface ServiceContext {
  readonly variables: Variables;
  readonly log: EventLog;
  readonly limiter?: Limiter;
  /** Called after each finished call. */
  readonly onRequest?: ServiceOptions["onRequest"];
}

/**
 * Makes the client of a service. Calls by hand have no limiter: nothing limits them.
 * @throws UsageError when its token variable is not set or holds no token.
 */
export function createService(
  settings: ServiceSettings,
  { variables, log, limiter, onRequest }: ServiceContext,
): SyncService {
  const { name, baseUrl, tls, pathForm, requestTimeoutMs, concurrency } = settings;
  const ownLog = withService(log, name);
  return new SyncService({
    baseUrl,
    pathForm,
    timeouts: timeoutsWithin(requestTimeoutMs),
    // One for each action, beside eight polls and walks: what waits for one loses the time of its
    // request.
    maxSockets: concurrency + defaultMaxSockets,
    token: createToken(settings, { variables, log: ownLog }),
    tls: tls === undefined ? undefined : openTls(tls, { log: ownLog }),
    log: ownLog,
    limiter,
    onRequest,
  });
}

function createToken(
  { name, token, tls }: ServiceSettings,
  { variables, log }: { readonly variables: Variables; readonly log: EventLog },
): TokenSource {
  switch (token.kind) {
    case "file":
      return fileToken(token.path, undefined, log);
    case "env":
      return variableToken(name, token.variable, variables);
    case "oauth2":
      return oauth2Token({ ...token, tls: tokenTls(tls), log });
  }
}

/** The TLS settings of the token endpoint. It never gets the client certificate of the service. */
function tokenTls(tls: TlsSettings | undefined): TlsFiles | undefined {
  return tls?.caFile === undefined ? undefined : new TlsFiles({ caFile: tls.caFile }, { trustPublic: true });
}

function openTls(tls: TlsSettings, options: { readonly log: EventLog }): TlsFiles {
  const files = new TlsFiles(tls, options);
  // Read at once, so that a fault is in the log at the start; each exchange reports it again.
  files.current().catch(() => {});
  return files;
}

function variableToken(service: string, variable: string, variables: Variables): TokenSource {
  const where = `service ${service}: the environment variable ${variable}`;
  const token = variables[variable];
  if (token === undefined || token === "")
    throw new UsageError(`${where} holds no token: export ${variable}=…, as services.${service}.token.env names it`);
  try {
    return staticToken(token);
  } catch (error) {
    if (error instanceof TokenError) throw new UsageError(`${where} cannot be used: ${error.message}`);
    throw error;
  }
}

function withService(log: EventLog, service: string): EventLog {
  return {
    info: (event, fields) => log.info(event, { service, ...fields }),
    warn: (event, fields) => log.warn(event, { service, ...fields }),
    error: (event, fields) => log.error(event, { service, ...fields }),
  };
}
