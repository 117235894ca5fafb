// Writes an answer to a connection whole, cut in half or byte by byte, or cuts the connection.
// Called by exchange.ts.
import { once } from "node:events";
import { type ServerResponse, STATUS_CODES } from "node:http";
import type { Clock } from "../core/clock.ts";
import type { Reply } from "./reply.ts";

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

/**
 * Sends half of the body, or half a status line when the body is empty, and resets the connection.
 */
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

/**
 * Sends the body byte by byte. Resolves to false when the connection closed, or the sandbox stops,
 * before the end.
 */
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
