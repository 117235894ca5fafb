// What a handler answers, the refusal that any depth may throw, and how an answer is sent: whole,
// cut in half, byte by byte, or not at all.
import { once } from "node:events";
import { type ServerResponse, STATUS_CODES } from "node:http";
import type { Clock } from "../core/clock.ts";

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

/** A 200 without a body. Source: service-interface §4.4 */
export function bareReply(effect: Effect): Reply {
  return { status: 200, headers: {}, body: "", effect };
}

/** A 200 without a body from a service that did nothing. */
export const hollowReply: Reply = { status: 200, headers: {}, body: "" };

/** A 401: empty, whatever the reason. Its own choice. */
export const unauthorizedReply: Reply = { status: 401, headers: { "WWW-Authenticate": "Bearer" }, body: "" };

/** An error with the usual OData body; the interface shows none (§7). Its own choice. */
export function errorReply(status: number, message: string, headers: Readonly<Record<string, string>> = {}): Reply {
  const body = JSON.stringify({ error: { code: codes[status] ?? String(status), message } });
  return { status, headers: { ...jsonHeaders, ...headers }, body };
}

/** Thrown at any depth to answer with an error status; nothing has been changed. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly status: number;

  /** The message goes into the error body. */
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Sends the whole answer. Resolves to false when the connection closed before its end. */
export async function sendWhole(response: ServerResponse, reply: Reply): Promise<boolean> {
  if (response.destroyed) return false;
  writeHead(response, reply);
  response.end(reply.body);
  // A client that disconnects closes the response unfinished; "close" comes in any case.
  if (!response.closed) await once(response, "close");
  return response.writableFinished;
}

/** Resets the connection (TCP RST), so that the client gets no answer. */
export function cutConnection(response: ServerResponse): void {
  response.socket?.resetAndDestroy();
}

/** Sends half of the body, or of the status line without one, and resets the connection. */
export async function sendHalf(response: ServerResponse, reply: Reply): Promise<void> {
  const { socket } = response;
  if (response.destroyed || socket === null) return;
  const half = Math.floor(Buffer.byteLength(reply.body) / 2);
  await new Promise<unknown>((resolve) => {
    response.once("close", resolve);
    if (half === 0) {
      socket.write(`HTTP/1.1 ${reply.status}`, resolve);
    } else {
      writeHead(response, reply);
      response.write(Buffer.from(reply.body).subarray(0, half), resolve);
    }
  });
  cutConnection(response);
}

/** Sends the body byte by byte. Resolves to false when it did not come to the end. */
export async function sendDrip(
  response: ServerResponse,
  reply: Reply,
  pace: { readonly clock: Clock; readonly delayMs: number; readonly signal: AbortSignal },
): Promise<boolean> {
  if (response.destroyed) return false;
  writeHead(response, reply);
  response.flushHeaders();
  for (const byte of Buffer.from(reply.body)) {
    await pace.clock.sleep(pace.delayMs, pace.signal);
    if (response.destroyed || pace.signal.aborted) return false;
    response.write(Uint8Array.of(byte));
  }
  response.end();
  return true;
}

function writeHead(response: ServerResponse, reply: Reply): void {
  const length = Buffer.byteLength(reply.body);
  response.writeHead(reply.status, STATUS_CODES[reply.status] ?? "", { ...reply.headers, "Content-Length": length });
}
