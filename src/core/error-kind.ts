// The kinds of failure, and the only thing that decisions look at: never a message (design §7).

/** Every kind of failure that an exchange with the service can have. */
export const errorKinds = [
  "bad-request",
  "not-found",
  "unauthorized",
  "forbidden",
  "throttled",
  "server",
  "unreachable",
  "unknown",
  "contract",
  "paging",
  "cancelled",
] as const;

/**
 * What went wrong, by cause:
 * `bad-request` 400 and other 4xx; `not-found` 404; `unauthorized` 401; `forbidden` 403; `throttled` 429, or 503 with Retry-After;
 * `server` other 5xx; `unreachable` surely not sent; `unknown` sent, answer lost (also 502, 504);
 * `contract` an answer of the wrong shape or size; `paging` a link that loops, leaves the origin or never ends;
 * `cancelled` stopped by our own side.
 */
export type ErrorKind = (typeof errorKinds)[number];
