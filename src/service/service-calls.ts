// What the methods of SyncService have in common: URL, call, walk. Called by client.ts only.
import type { z } from "zod";
import { systemClock } from "../core/clock.ts";
import { silentLog } from "../core/event-log.ts";
import { requestSubject } from "../core/gate.ts";
import { createSparingLog } from "../core/sparing-log.ts";
import { readPage, readUpdated } from "./answer.ts";
import { type Answer, type Call, Caller } from "./call.ts";
import { type ItemOf, itemSchemas } from "./entities.ts";
import { factsOf, type ListOperation, type Operation, type UpdateOperation } from "./operations.ts";
import { type Page, toPage, type Walk, type WalkOptions } from "./pages.ts";
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
import * as options from "./service-options.ts";
import { Transport } from "./transport.ts";

type Extras = options.StartOptions & options.UpdateOptions & { readonly body?: options.Changes };

const samePageMaxDefault = 2;

/** Makes the calls of one service. `requestTimeoutMs`: how long one exchange may take in all. */
export class ServiceCalls {
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
    this.#linkLog = createSparingLog(this.#log, this.#clock, "operation");
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
      gate: given.gate,
      closed: this.#closed.signal,
    });
  }

  /** Makes one call. @throws ServiceError; wrong arguments are `bad-request` and not sent. */
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
    const subject = requestSubject({ ...target.query, operation, key });
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

  /** Prepares a walk over a list; sends nothing. */
  walk<List extends ListOperation>(operation: List, query: ReadQuery, limits: WalkOptions): Walk<ItemOf<List>> {
    const { timeoutMs, pageSizeWish } = limits;
    const firstUrl = this.#url({ operation, query });
    const schema = itemSchemas[operation];
    const subject = requestSubject({ ...query, operation });
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

  /** When the token runs out, as far as that is known. */
  get tokenExpiresAtMs(): number | undefined {
    return this.#token.expiresAtMs;
  }

  /** Whether the endpoint of the token has just failed to give a new one. */
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

function misuse(operation: Operation, problem: string): ServiceError {
  const { method, path } = factsOf(operation);
  return new ServiceError({ kind: "bad-request", operation, method, path, sent: "no", problem });
}
