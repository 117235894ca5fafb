// The typed client of the service, and the library's entry `syncline/client`: one method per
// operation, plus pages and counts. It checks arguments and builds URLs; call.ts makes the call,
// transport.ts the exchange. Built by create-service.ts, one instance per service.
import type { z } from "zod";
import { type Clock, systemClock } from "../core/clock.ts";
import { createRateLimitedLog, type EventLog, silentLog } from "../core/event-log.ts";
import { resourceKey } from "../core/limiter.ts";
import {
  type DeleteResult,
  readCount,
  readDeletion,
  readEntity,
  readIdentities,
  readNothing,
  readPage,
  readUpdated,
} from "./answer.ts";
import { type Answer, CallExecutor } from "./call.ts";
import * as entities from "./entities.ts";
import { factsOf, type ListOperation, type Operation, type UpdateOperation } from "./operations.ts";
import { type Page, toPage, type Walk, type WalkOptions, walkPages } from "./pages.ts";
import {
  type Key,
  parseBaseUrl,
  type ReadQuery,
  type RepositoryQuery,
  type RequestTarget,
  type ServiceBase,
  toRequestUrl,
  type UrlForms,
} from "./request-url.ts";
import { ServiceError } from "./service-error.ts";
import {
  type CallOptions,
  type Changes,
  defaultBodyBytesMax,
  defaultMaxSockets,
  defaultRetries,
  defaultTimeouts,
  type ServiceOptions,
  type StartOptions,
  type UpdateOptions,
} from "./service-options.ts";
import { Transport } from "./transport.ts";

export type { Denial, DeniedBy, Limiter, Permit } from "../core/limiter.ts";
export type { DeleteResult } from "./answer.ts";
export type * from "./entities.ts";
export { type OAuth2TokenOptions, oauth2Token } from "./oauth2-token.ts";
export { type ListOperation, type Operation, operationNames, operations, type PathForm } from "./operations.ts";
export type { Page, WalkOptions } from "./pages.ts";
export type { Key, ReadQuery, RepositoryQuery } from "./request-url.ts";
export { type PagingReason, ServiceError } from "./service-error.ts";
export type {
  CallOptions,
  Changes,
  IdentityForm,
  QuoteStrings,
  RequestEvent,
  ServiceOptions,
  StartOptions,
  Timeouts,
  UpdateOptions,
} from "./service-options.ts";
export { TlsFiles, TlsFilesError, type TlsFilesOptions, type TlsMaterial, type TlsPaths } from "./tls-files.ts";
export { fileToken, staticToken, TokenError, type TokenSource } from "./token.ts";

type Extras = StartOptions & UpdateOptions & { readonly body?: Changes };

/** The client of one service. Its methods throw {@link ServiceError}; anything else is a bug. */
export class SyncService {
  /** The limit of one whole exchange in milliseconds, unless the call sets its own. */
  readonly requestTimeoutMs: number;
  readonly #base: ServiceBase;
  readonly #forms: UrlForms;
  readonly #caller: CallExecutor;
  readonly #transport: Transport;
  readonly #token: ServiceOptions["token"];
  readonly #closed = new AbortController();
  readonly #linkLog: EventLog;
  readonly #clock: Clock;

  /** @throws TypeError when the base URL is not one. */
  constructor(options: ServiceOptions) {
    const { pathForm = "parentheses", identityForm = "qualified", quoteStrings = "none" } = options;
    const { token, log = silentLog, clock = systemClock, onRequest, limiter } = options;
    this.#base = parseBaseUrl(options.baseUrl);
    this.#forms = { pathForm, identityForm, quoteStrings };
    this.#token = token;
    this.#transport = new Transport(options.maxSockets ?? defaultMaxSockets, options.tls);
    this.#clock = clock;
    this.#linkLog = createRateLimitedLog(log, clock, "operation");
    const timeouts = { ...defaultTimeouts, ...options.timeouts };
    this.requestTimeoutMs = timeouts.requestMs;
    this.#caller = new CallExecutor({
      ...{ base: this.#base, token, transport: this.#transport, timeouts, log, clock, onRequest, limiter },
      bodyBytesMax: options.bodyBytesMax ?? defaultBodyBytesMax,
      retries: options.retries ?? defaultRetries,
      closed: this.#closed.signal,
    });
  }

  /** Reads a sync job. Source: service-interface §4.1. */
  getSyncJobById(key: Key, query: ReadQuery = {}, options: CallOptions = {}): Promise<entities.SyncJob> {
    const target = { operation: "GetSyncJobById", key, query } as const;
    return this.#call(target, options, (answer) => readEntity(answer, entities.syncJobSchema));
  }

  /** Changes a sync job: `name` is known to be updatable. Source: service-interface §4.3. */
  updateSyncJobById(
    key: Key,
    body: Changes,
    query: RepositoryQuery = {},
    options: UpdateOptions = {},
  ): Promise<entities.SyncJob> {
    return this.#update("UpdateSyncJobById", { key, query, body, ...options }, entities.syncJobSchema);
  }

  /** Deletes a sync job. Source: service-interface §4.4. */
  deleteSyncJobById(key: Key, query: RepositoryQuery = {}, options: StartOptions = {}): Promise<DeleteResult> {
    return this.#call({ operation: "DeleteSyncJobById", key, query }, options, readDeletion);
  }

  /** Starts a run: success says only that the service took it. Source: service-interface §4.4. */
  runSyncJob(syncJobId: Key, query: RepositoryQuery = {}, options: StartOptions = {}): Promise<void> {
    return this.#call({ operation: "RunSyncJob", key: syncJobId, query }, options, readNothing);
  }

  /** Activates a sync job. Source: service-interface §4.4. */
  enableSyncJobById(syncJobId: Key, query: RepositoryQuery = {}, options: StartOptions = {}): Promise<void> {
    return this.#call({ operation: "EnableSyncJobById", key: syncJobId, query }, options, readNothing);
  }

  /** Changes a document mask. Source: service-interface §4.1. */
  updateEcmDocumentMaskById(
    key: Key,
    body: Changes,
    query: RepositoryQuery = {},
    options: UpdateOptions = {},
  ): Promise<entities.Mask> {
    return this.#update("UpdateEcmDocumentMaskById", { key, query, body, ...options }, entities.maskSchema);
  }

  /** Changes a drive-type sync target. Source: service-interface §4.3. */
  updateDriveSyncTargetById(
    key: Key,
    body: Changes,
    query: RepositoryQuery = {},
    options: UpdateOptions = {},
  ): Promise<entities.SyncTarget> {
    return this.#update("UpdateDriveSyncTargetById", { key, query, body, ...options }, entities.syncTargetSchema);
  }

  /** Changes a site-type sync target. Source: service-interface §4.3. */
  updateSiteSyncTargetById(
    key: Key,
    body: Changes,
    query: RepositoryQuery = {},
    options: UpdateOptions = {},
  ): Promise<entities.SyncTarget> {
    return this.#update("UpdateSiteSyncTargetById", { key, query, body, ...options }, entities.syncTargetSchema);
  }

  /** Loads an identity; the service answers a list. Source: service-interface §4.4. */
  getIdentityById(
    id: string,
    query: ReadQuery & { readonly repository: string },
    options: CallOptions = {},
  ): Promise<readonly entities.Identity[]> {
    return this.#call({ operation: "GetIdentityById", key: id, query }, options, readIdentities);
  }

  /** Reads the first page of masks. */
  getJobMasks(query: ReadQuery = {}, options: CallOptions = {}): Promise<Page<entities.Mask>> {
    return this.#firstPage("GetJobMasks", query, options);
  }

  /** Reads the first page of approvals. */
  getApprovals(query: ReadQuery = {}, options: CallOptions = {}): Promise<Page<entities.Approval>> {
    return this.#firstPage("GetApprovals", query, options);
  }

  /** Reads the first page of triggers. */
  getTriggers(query: ReadQuery = {}, options: CallOptions = {}): Promise<Page<entities.Trigger>> {
    return this.#firstPage("GetTriggers", query, options);
  }

  /** Reads the first page of authentication activities. */
  getAuthActivities(query: ReadQuery = {}, options: CallOptions = {}): Promise<Page<entities.AuthActivity>> {
    return this.#firstPage("GetAuthActivities", query, options);
  }

  /** Reads the first page of activities. */
  getActivities(query: ReadQuery = {}, options: CallOptions = {}): Promise<Page<entities.UnknownEntity>> {
    return this.#firstPage("GetActivities", query, options);
  }

  /** Reads the first page of conflict details. */
  getConflictDetails(query: ReadQuery = {}, options: CallOptions = {}): Promise<Page<entities.UnknownEntity>> {
    return this.#firstPage("GetConflictDetails", query, options);
  }

  /** Walks a list page by page, lazily, within limits. Source: service-interface §8. */
  async *pages<List extends ListOperation>(
    operation: List,
    query: ReadQuery = {},
    options: WalkOptions = {},
  ): AsyncGenerator<Page<entities.ItemOf<List>>, void, void> {
    yield* walkPages(this.#walk(operation, query, options), options);
  }

  /** Counts a list; a walk may find another number. Source: service-interface §4.2. */
  count(operation: ListOperation, query: RepositoryQuery = {}, options: CallOptions = {}): Promise<number> {
    return this.#call({ operation, query, count: true }, options, readCount);
  }

  /** When the token expires, in ms since 1970 UTC; undefined for a file or a variable. */
  get tokenExpiresAtMs(): number | undefined {
    return this.#token.expiresAtMs;
  }

  /** Whether the token endpoint failed at the last renewal; false for a file or a variable. */
  get tokenRenewalFails(): boolean {
    return this.#token.renewalFails === true;
  }

  /** Ends every open call with the kind `cancelled` and closes the connections, for ever. */
  close(): void {
    this.#closed.abort();
    this.#token.close?.();
    this.#transport.close();
  }

  /** Makes one call. Invalid arguments are a `bad-request` that is not sent. */
  async #call<T>(target: RequestTarget, extras: Extras, read: (answer: Answer) => T): Promise<T> {
    const { operation, key, count: isCount } = target;
    const { idempotencyKey, ifMatch } = extras;
    const url = this.#url(target);
    if (idempotencyKey !== undefined && !/^[\x21-\x7e]{1,255}$/.test(idempotencyKey)) {
      throw misuse(operation, "the idempotency key must be 1 to 255 printable ASCII characters");
    }
    if (ifMatch !== undefined && !/^[\x20-\x7e]{1,1000}$/.test(ifMatch)) {
      throw misuse(operation, "the ETag must be 1 to 1,000 printable ASCII characters");
    }
    const resource = () => resourceKey({ ...target.query, operation, key });
    const isFollowUp = extras.isFollowUp === true || factsOf(operation).method === "PUT";
    return await this.#caller.call({ ...extras, operation, url, resource, isCount, isFollowUp }, read);
  }

  #update<Schema extends z.ZodType>(
    operation: UpdateOperation,
    { key, query, ...extras }: UpdateOptions & { key: Key; query: RepositoryQuery; body: Changes },
    schema: Schema,
  ): Promise<z.infer<Schema>> {
    return this.#call({ operation, key, query }, extras, (answer) => readUpdated(answer, schema));
  }

  async #firstPage<List extends ListOperation>(
    operation: List,
    query: ReadQuery,
    options: CallOptions,
  ): Promise<Page<entities.ItemOf<List>>> {
    const walk = this.#walk(operation, query, options);
    const raw = await walk.fetch(walk.firstUrl, options.signal);
    return toPage(walk, raw, { url: walk.firstUrl, pageNumber: 1 });
  }

  /** Prepares a walk over a list; sends nothing yet. */
  #walk<List extends ListOperation>(operation: List, query: ReadQuery, limits: WalkOptions) {
    const { timeoutMs } = limits;
    const firstUrl = this.#url({ operation, query });
    const resource = resourceKey({ ...query, operation });
    const walk: Walk<entities.ItemOf<List>> = {
      operation,
      firstUrl,
      basePath: this.#base.basePath,
      isShortened: (query.select ?? []).length > 0,
      clock: this.#clock,
      onRebased: () => this.#linkLog.warn("link.rebased", { operation }),
      onRefused: (reason) => this.#linkLog.warn("link.refused", { operation, reason }),
      fetch: (url, signal) => {
        const isFollowUp = limits.isFollowUp === true || url !== firstUrl;
        const call = { operation, url, resource: () => resource, isFollowUp, timeoutMs, signal };
        return this.#caller.call(call, (answer) => readPage(answer, entities.itemSchemas[operation]));
      },
    };
    return walk;
  }

  #url(target: RequestTarget): URL {
    try {
      return toRequestUrl(this.#base, target, this.#forms);
    } catch (error) {
      // A URIError comes from half a surrogate pair, which has no place in a URL.
      if (error instanceof RangeError || error instanceof URIError) throw misuse(target.operation, error.message);
      throw error;
    }
  }
}

function misuse(operation: Operation, problem: string): ServiceError {
  const { method, path } = factsOf(operation);
  return new ServiceError({ kind: "bad-request", operation, method, path, sent: "no", problem });
}
