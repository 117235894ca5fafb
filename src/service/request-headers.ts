// The headers of a request to the service. Pure; called by call.ts, once the final URL has been checked: the token stands in them.

/** What the headers depend on. */
export interface HeaderWishes {
  readonly isCount?: boolean | undefined;
  readonly body?: Readonly<Record<string, unknown>> | undefined;
  readonly idempotencyKey?: string | undefined;
  readonly ifMatch?: string | undefined;
  readonly pageSizeWish?: number | undefined;
}

/** Writes the headers of one request. Source: service-interface §4, §5; the rest is HTTP and OData. */
export function toHeaders(wishes: HeaderWishes, token: string): Record<string, string> {
  const { isCount, body, idempotencyKey, ifMatch, pageSizeWish } = wishes;
  return {
    authorization: `Bearer ${token}`,
    accept: isCount === true ? "application/json, text/plain;q=0.9, */*;q=0.1" : "application/json",
    "user-agent": "syncline",
    ...(body === undefined ? {} : { "content-type": "application/json" }),
    ...(pageSizeWish === undefined ? {} : { prefer: `odata.maxpagesize=${pageSizeWish}` }),
    ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey }),
    ...(ifMatch === undefined ? {} : { "if-match": ifMatch }),
  };
}
