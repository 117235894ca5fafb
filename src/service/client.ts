// The typed client of the service: one method per operation, plus pages and counts. The library's entry `syncline/client`.
// Built by app.ts and `syncline api`, one instance per service. Holds the token source in private; prints nothing, keeps no state.
import { type DeleteResult, readCount, readDeletion, readEntity, readIdentities, readNothing } from "./answer.ts";
import * as entities from "./entities.ts";
import type { ListOperation } from "./operations.ts";
import { type Page, type WalkOptions, walkPages } from "./pages.ts";
import type { Key, ReadQuery, RepositoryQuery } from "./request-url.ts";
import { ServiceCalls } from "./service-calls.ts";
import type { CallOptions, Changes, ServiceOptions, StartOptions, UpdateOptions } from "./service-options.ts";

export type { Gate, HeldBy, Hold, Pass } from "../core/gate.ts";
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

/** A service. Every method throws {@link ServiceError} and nothing else but bugs. */
export class SyncService {
  readonly #calls: ServiceCalls;

  /** @throws TypeError when the base URL is not one. */
  constructor(options: ServiceOptions) {
    this.#calls = new ServiceCalls(options);
  }

  /** How long one exchange may take in all, in milliseconds, unless its call says otherwise. */
  get requestTimeoutMs(): number {
    return this.#calls.requestTimeoutMs;
  }

  /** Reads a sync job. Source: service-interface §4.1. */
  getSyncJobById(key: Key, query: ReadQuery = {}, options: CallOptions = {}): Promise<entities.SyncJob> {
    const target = { operation: "GetSyncJobById", key, query } as const;
    return this.#calls.call(target, options, (answer) => readEntity(answer, entities.syncJobSchema));
  }

  /** Changes a sync job: `name` is the property known to be updatable. Source: service-interface §4.3. */
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

  /** Starts a run; success tells no more than that. Source: service-interface §4.4. */
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

  /** Loads an identity of a repository; the service answers a list. Source: service-interface §4.4. */
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

  /** Walks a list page by page, lazily; see {@link WalkOptions} for its limits. Source: service-interface §8. */
  async *pages<List extends ListOperation>(
    operation: List,
    query: ReadQuery = {},
    options: WalkOptions = {},
  ): AsyncGenerator<Page<entities.ItemOf<List>>, void, void> {
    yield* walkPages(this.#calls.walk(operation, query, options), options);
  }

  /** The number of items in a list; may differ from what a walk finds. Source: service-interface §4.2. */
  count(operation: ListOperation, query: RepositoryQuery = {}, options: CallOptions = {}): Promise<number> {
    return this.#calls.call({ operation, query, count: true }, options, readCount);
  }

  /** When the token runs out, in ms since 1970 UTC; undefined where that is not known, as for a file or a variable. */
  get tokenExpiresAtMs(): number | undefined {
    return this.#calls.tokenExpiresAtMs;
  }

  /** Whether the token's endpoint failed the last time a new one was asked for; false for a file or a variable. */
  get tokenRenewalFails(): boolean {
    return this.#calls.tokenRenewalFails;
  }

  /** Ends every open call with the kind `cancelled` and closes the connections. The instance is of no use afterwards. */
  close(): void {
    this.#calls.close();
  }
}
