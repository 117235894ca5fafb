// The kinds of failure: all that decisions look at, never a message.

/** Every kind of failure that an exchange with the service can have. */
export const errorKinds = [
  "bad-request",
  "not-found",
  "unauthorized",
  "forbidden",
  "throttled",
  "undocumented",
  "server",
  "unreachable",
  "unknown",
  "contract",
  "paging",
  "cancelled",
] as const;

/**
 * The cause of a failure: `bad-request` 400; `not-found` 404; `unauthorized` 401; `forbidden` 403;
 * `throttled` 429, or 503 with Retry-After; `undocumented` another 4xx, which does not say whether
 * the request was carried out; `server` another 5xx; `unreachable` surely not sent; `unknown` sent,
 * answer lost (also 502, 504); `contract` an answer of the wrong shape or size, a redirect, a 1xx
 * that ends nothing; `paging` a link that loops, leaves the origin or never ends; `cancelled`
 * stopped by our side.
 */
export type ErrorKind = (typeof errorKinds)[number];
