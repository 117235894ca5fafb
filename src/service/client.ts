// The typed client of the service: one method per operation, plus pages and counts. It is the
// library's entry `syncline/client`. Built by app.ts and `syncline api`, one instance per service.
// Prints nothing and keeps no state but its token source.

import type { z } from "zod";
import { systemClock } from "../core/clock.ts";
import { silentLog } from "../core/event-log.ts";
import { resourceKey } from "../core/limiter.ts";
import { createRateLimitedLog } from "../core/rate-limited-log.ts";
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
import { type Answer, type Call, Caller } from "./call.ts";
import * as entities from "./entities.ts";
import { type ItemOf, itemSchemas } from "./entities.ts";
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
import type { CallOptions, Changes, ServiceOptions, StartOptions, UpdateOptions } from "./service-options.ts";
import * as options from "./service-options.ts";
import { Transport } from "./transport.ts";

const samePageMaxDefault = 2;

export type { Denied, DeniedBy, Limiter, Permit } from "../core/limiter.ts";
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

/**
 * The client of one service. Every method throws {@link ServiceError} and nothing else, except for
 * bugs.
 */
export class SyncService {
  readonly #calls: ServiceCalls;

  /** @throws TypeError when the base URL is not one. */
  constructor(options: ServiceOptions) {
    this.#calls = new ServiceCalls(options);
  }

  /** The limit of one whole exchange in milliseconds, unless the call sets its own. */
  get requestTimeoutMs(): number {
    return this.#calls.requestTimeoutMs;
  }

  /** Reads a sync job. Source: service-interface §4.1. */
  getSyncJobById(key: Key, query: ReadQuery = {}, options: CallOptions = {}): Promise<entities.SyncJob> {
    const target = { operation: "GetSyncJobById", key, query } as const;
    return this.#calls.call(target, options, (answer) => readEntity(answer, entities.syncJobSchema));
  }

  /**
   * Changes a sync job: `name` is the property known to be updatable. Source: service-interface
   * §4.3.
   */
  updateSyncJobById(
    key: Key,
    body: Changes,
    query: RepositoryQuery = {},
    options: UpdateOptions = {},
  ): Promise<entities.SyncJob> {
    return this.#calls.update("UpdateSyncJobById", { key, query, body, ...options }, entities.syncJobSchema);
  }

  /** Deletes a sync job. Source: service-interface §4.4. */
  deleteSyncJobById(key: Key, query: RepositoryQuery = {}, options: StartOptions = {}): Promise<DeleteResult> {
    return this.#calls.call({ operation: "DeleteSyncJobById", key, query }, options, readDeletion);
  }

  /**
   * Starts a run. Success means only that the service took the request. Source: service-interface
   * §4.4.
   */
  runSyncJob(syncJobId: Key, query: RepositoryQuery = {}, options: StartOptions = {}): Promise<void> {
    return this.#calls.call({ operation: "RunSyncJob", key: syncJobId, query }, options, readNothing);
  }

  /** Activates a sync job. Source: service-interface §4.4. */
  enableSyncJobById(syncJobId: Key, query: RepositoryQuery = {}, options: StartOptions = {}): Promise<void> {
    return this.#calls.call({ operation: "EnableSyncJobById", key: syncJobId, query }, options, readNothing);
  }

  /** Changes a document mask. Source: service-interface §4.1. */
  updateEcmDocumentMaskById(
    key: Key,
    body: Changes,
    query: RepositoryQuery = {},
    options: UpdateOptions = {},
  ): Promise<entities.Mask> {
    return this.#calls.update("UpdateEcmDocumentMaskById", { key, query, body, ...options }, entities.maskSchema);
  }

  /** Changes a drive-type sync target. Source: service-interface §4.3. */
  updateDriveSyncTargetById(
    key: Key,
    body: Changes,
    query: RepositoryQuery = {},
    options: UpdateOptions = {},
  ): Promise<entities.SyncTarget> {
    return this.#calls.update("UpdateDriveSyncTargetById", { key, query, body, ...options }, entities.syncTargetSchema);
  }

  /** Changes a site-type sync target. Source: service-interface §4.3. */
  updateSiteSyncTargetById(
    key: Key,
    body: Changes,
    query: RepositoryQuery = {},
    options: UpdateOptions = {},
  ): Promise<entities.SyncTarget> {
    return this.#calls.update("UpdateSiteSyncTargetById", { key, query, body, ...options }, entities.syncTargetSchema);
  }

  /**
   * Loads an identity of a repository; the service answers a list. Source: service-interface §4.4.
   */
  getIdentityById(
    id: string,
    query: ReadQuery & { readonly repository: string },
    options: CallOptions = {},
  ): Promise<readonly entities.Identity[]> {
    return this.#calls.call({ operation: "GetIdentityById", key: id, query }, options, readIdentities);
  }

  /** Reads the first page of masks. */
  getJobMasks(query: ReadQuery = {}, options: CallOptions = {}): Promise<Page<entities.Mask>> {
    return this.#calls.firstPage("GetJobMasks", query, options);
  }

  /** Reads the first page of approvals. */
  getApprovals(query: ReadQuery = {}, options: CallOptions = {}): Promise<Page<entities.Approval>> {
    return this.#calls.firstPage("GetApprovals", query, options);
  }

  /** Reads the first page of triggers. */
  getTriggers(query: ReadQuery = {}, options: CallOptions = {}): Promise<Page<entities.Trigger>> {
    return this.#calls.firstPage("GetTriggers", query, options);
  }

  /** Reads the first page of authentication activities. */
  getAuthActivities(query: ReadQuery = {}, options: CallOptions = {}): Promise<Page<entities.AuthActivity>> {
    return this.#calls.firstPage("GetAuthActivities", query, options);
  }

  /** Reads the first page of activities. */
  getActivities(query: ReadQuery = {}, options: CallOptions = {}): Promise<Page<entities.UnknownEntity>> {
    return this.#calls.firstPage("GetActivities", query, options);
  }

  /** Reads the first page of conflict details. */
  getConflictDetails(query: ReadQuery = {}, options: CallOptions = {}): Promise<Page<entities.UnknownEntity>> {
    return this.#calls.firstPage("GetConflictDetails", query, options);
  }

  /**
   * Walks a list page by page, lazily; see {@link WalkOptions} for its limits. Source:
   * service-interface §8.
   */
  async *pages<List extends ListOperation>(
    operation: List,
    query: ReadQuery = {},
    options: WalkOptions = {},
  ): AsyncGenerator<Page<entities.ItemOf<List>>, void, void> {
    yield* walkPages(this.#calls.walk(operation, query, options), options);
  }

  /**
   * The number of items in a list; may differ from what a walk finds. Source: service-interface
   * §4.2.
   */
  count(operation: ListOperation, query: RepositoryQuery = {}, options: CallOptions = {}): Promise<number> {
    return this.#calls.call({ operation, query, count: true }, options, readCount);
  }

  /**
   * When the token expires, in ms since 1970 UTC; undefined where not known, as for a file or a
   * variable.
   */
  get tokenExpiresAtMs(): number | undefined {
    return this.#calls.tokenExpiresAtMs;
  }

  /** Whether the token endpoint failed at the last renewal; false for a file or a variable. */
  get tokenRenewalFails(): boolean {
    return this.#calls.tokenRenewalFails;
  }

  /**
   * Ends every open call with the kind `cancelled` and closes the connections. The instance cannot
   * be used afterwards.
   */
  close(): void {
    this.#calls.close();
  }
}

type Extras = options.StartOptions & options.UpdateOptions & { readonly body?: options.Changes };

function misuse(operation: Operation, problem: string): ServiceError {
  const { method, path } = factsOf(operation);
  return new ServiceError({ kind: "bad-request", operation, method, path, sent: "no", problem });
}

/** Makes the calls of one service. `requestTimeoutMs`: the limit of one whole exchange. */
class ServiceCalls {
  readonly requestTimeoutMs: number;
  readonly #base: ServiceBase;
  readonly #forms: UrlForms;
  readonly #caller: Caller;
  readonly #transport: Transport;
  readonly #token: options.ServiceOptions["token"];
  readonly #closed = new AbortController();
  readonly #log;
  readonly #linkLog;
  readonly #clock;

  /** @throws TypeError when the base URL is not one. */
  constructor(given: options.ServiceOptions) {
    this.#base = parseBaseUrl(given.baseUrl);
    const { pathForm = "parentheses", identityForm = "qualified", quoteStrings = "none" } = given;
    this.#forms = { pathForm, identityForm, quoteStrings };
    this.#token = given.token;
    this.#transport = new Transport(given.maxSockets ?? options.defaultMaxSockets, given.tls);
    this.#log = given.log ?? silentLog;
    this.#clock = given.clock ?? systemClock;
    this.#linkLog = createRateLimitedLog(this.#log, this.#clock, "operation");
    const timeouts = { ...options.defaultTimeouts, ...given.timeouts };
    this.requestTimeoutMs = timeouts.requestMs;
    this.#caller = new Caller({
      base: this.#base,
      token: given.token,
      transport: this.#transport,
      timeouts,
      bodyBytesMax: given.bodyBytesMax ?? options.defaultBodyBytesMax,
      retries: given.retries ?? options.defaultRetries,
      log: this.#log,
      clock: this.#clock,
      onRequest: given.onRequest,
      limiter: given.limiter,
      closed: this.#closed.signal,
    });
  }

  /**
   * Makes one call.
   * @throws ServiceError; invalid arguments are `bad-request` and not sent.
   */
  async call<T>(target: RequestTarget, extras: Extras, read: (answer: Answer) => T): Promise<T> {
    const { signal, timeoutMs, idempotencyKey, ifMatch, maySend, untilSent, pass, body } = extras;
    const url = this.#url(target);
    if (idempotencyKey !== undefined && !/^[\x21-\x7e]{1,255}$/.test(idempotencyKey)) {
      throw misuse(target.operation, "the idempotency key must be 1 to 255 printable ASCII characters");
    }
    if (ifMatch !== undefined && !/^[\x20-\x7e]{1,1000}$/.test(ifMatch)) {
      throw misuse(target.operation, "the ETag must be 1 to 1,000 printable ASCII characters");
    }
    const isCount = target.count;
    const { operation, key } = target;
    const subject = resourceKey({ ...target.query, operation, key });
    const sent = { operation, url, subject, isCount, body, idempotencyKey, ifMatch };
    const goesOn = extras.goesOn === true || factsOf(operation).method === "PUT";
    const call: Call = { ...sent, goesOn, maySend, untilSent, pass, timeoutMs, signal };
    return await this.#caller.call(call, read);
  }

  /** Makes one update call and reads the entity that it answers. @throws ServiceError */
  update<Schema extends z.ZodType>(
    operation: UpdateOperation,
    input: options.UpdateOptions & { key: Key; query: RepositoryQuery; body: options.Changes },
    schema: Schema,
  ): Promise<z.infer<Schema>> {
    const { key, query, ...extras } = input;
    return this.call({ operation, key, query }, extras, (answer) => readUpdated(answer, schema));
  }

  /** Reads the first page of a list. @throws ServiceError */
  async firstPage<List extends ListOperation>(
    operation: List,
    query: ReadQuery,
    extras: options.CallOptions,
  ): Promise<Page<ItemOf<List>>> {
    const walk = this.walk(operation, query, extras);
    const raw = await walk.fetch(walk.firstUrl, extras.signal);
    return toPage(walk, raw, { url: walk.firstUrl, pageNumber: 1 });
  }

  /** Prepares a walk over a list; sends nothing yet. */
  walk<List extends ListOperation>(operation: List, query: ReadQuery, limits: WalkOptions): Walk<ItemOf<List>> {
    const { timeoutMs, pageSizeWish } = limits;
    const firstUrl = this.#url({ operation, query });
    const schema = itemSchemas[operation];
    const subject = resourceKey({ ...query, operation });
    const isShortened = (query.select ?? []).length > 0;
    return {
      operation,
      firstUrl,
      basePath: this.#base.basePath,
      samePageMax: limits.samePageMax ?? (isShortened ? Number.POSITIVE_INFINITY : samePageMaxDefault),
      clock: this.#clock,
      onRebased: () => this.#linkLog.warn("link.rebased", { operation }),
      onRefused: (reason) => this.#linkLog.warn("link.refused", { operation, reason }),
      fetch: (url, signal) => {
        const goesOn = limits.goesOn === true || url !== firstUrl;
        const call = { operation, url, subject, goesOn, timeoutMs, pageSizeWish, signal };
        return this.#caller.call(call, (answer) => readPage(answer, schema));
      },
    };
  }

  /** When the token expires, where known. */
  get tokenExpiresAtMs(): number | undefined {
    return this.#token.expiresAtMs;
  }

  /** Whether the token endpoint failed at the last try. */
  get tokenRenewalFails(): boolean {
    return this.#token.renewalFails === true;
  }

  /** Ends every open call and closes the connections. */
  close(): void {
    this.#closed.abort();
    this.#token.close?.();
    this.#transport.close();
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
