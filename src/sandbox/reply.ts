// What a handler answers, and the refusal that any depth may throw. Knows nothing of sockets and
// faults.

/** A change that an operation made, for the ledger. */
export interface Effect {
  /** The key in the path, as a text. */
  readonly key: string;
  /** The destination repository of the changed entity. */
  readonly repository: string;
  /** The number of this sync job's run, from 1; null unless a run was started. */
  readonly runNumber: number | null;
}

/** An answer: status, headers, body, and what it changed. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly effect?: Effect;
}

const jsonHeaders = {
  "Content-Type": "application/json; odata.metadata=minimal; charset=utf-8",
  "OData-Version": "4.0",
};
const codes: Readonly<Record<number, string>> = {
  400: "BadRequest",
  404: "NotFound",
  405: "MethodNotAllowed",
  413: "PayloadTooLarge",
  429: "TooManyRequests",
  500: "InternalServerError",
  503: "ServiceUnavailable",
};

/** A 200 with a JSON body. */
export function jsonReply(value: unknown, effect?: Effect): Reply {
  const body = JSON.stringify(value);
  return { status: 200, headers: jsonHeaders, body, ...(effect === undefined ? {} : { effect }) };
}

/** A 200 with plain text, as `/$count` gives it. */
export function textReply(text: string): Reply {
  return { status: 200, headers: { "Content-Type": "text/plain; charset=utf-8", "OData-Version": "4.0" }, body: text };
}

/**
 * A 200 without a body.
 * Source: service-interface §4.4
 */
export function bareReply(effect: Effect): Reply {
  return { status: 200, headers: {}, body: "", effect };
}

/** A 200 without a body from a service that did nothing. */
export const hollowReply: Reply = { status: 200, headers: {}, body: "" };

/** A 401: empty, whatever the reason. Assumption S2. */
export const unauthorizedReply: Reply = { status: 401, headers: { "WWW-Authenticate": "Bearer" }, body: "" };

/**
 * An error with the usual OData body `{"error":{"code","message"}}`.
 * The interface does not describe the shape (service-interface §7). Assumption S1.
 */
export function errorReply(status: number, message: string, headers: Readonly<Record<string, string>> = {}): Reply {
  const body = JSON.stringify({ error: { code: codes[status] ?? String(status), message } });
  return { status, headers: { ...jsonHeaders, ...headers }, body };
}

/** Thrown at any depth to answer with an error status; nothing has been changed. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly status: number;

  /** `status` is 400 to 599; the message goes into the error body. */
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}
