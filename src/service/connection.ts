// Connections for exchanges: pooled ones for reads, dedicated ones for starts. A dedicated one is
// open before its request is made, so a failure to connect surely sent nothing. Called by
// transport.ts.
import { once } from "node:events";
import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { connect, isIP, Socket } from "node:net";
import { withTimeLimit } from "../core/clock.ts";
import { errorCode } from "../core/errors.ts";
import type { Timeouts } from "./service-options.ts";

/** The agents that pool connections, by URL scheme. */
export interface PooledAgents {
  readonly http: HttpAgent;
  readonly https: HttpsAgent;
}

/**
 * Listens to the errors of its connections all their life. Node listens only while a request or the
 * pool has a connection, and ends the process over an unheard error.
 */
export class PooledHttpAgent extends HttpAgent {
  override createConnection(...given: Parameters<HttpAgent["createConnection"]>) {
    return super.createConnection(...given)?.on("error", () => {});
  }
}

/** The same for TLS. */
export class PooledHttpsAgent extends HttpsAgent {
  override createConnection(...given: Parameters<HttpsAgent["createConnection"]>) {
    return super.createConnection(...given)?.on("error", () => {});
  }
}

/**
 * How got gets its connection. `isTaken`: got has it, so bytes may leave; a pooled one counts as
 * taken from the first. `socket`: its owner destroys it.
 */
export interface Connection {
  readonly options: { readonly agent: PooledAgents } | { readonly createConnection: () => Socket };
  readonly socket?: Socket;
  readonly isTaken: boolean;
}

/** No connection. `code`: of Node or OpenSSL, or the step that took too long. */
export class NoConnection extends Error {
  override readonly name = "NoConnection";
  readonly code: string;

  constructor(code: string) {
    super(`no connection: ${code}`);
    this.code = code;
  }
}

/** `leftMs`: the time left for all of it. `beforeSend` is asked right before the first byte. */
interface ConnectionRequest {
  readonly url: URL;
  readonly timeouts: Timeouts;
  readonly leftMs: () => number;
  readonly beforeSend?: (() => boolean) | undefined;
}

/**
 * Opens a dedicated connection to a URL's host, with the agent's TLS for https. `stop` ends it, and
 * is aborted when the request must not be sent.
 * @throws NoConnection
 */
export async function dedicatedConnection(
  agent: HttpsAgent,
  wanted: ConnectionRequest,
  stop: AbortController,
): Promise<Connection> {
  const socket = open(agent, wanted.url);
  // An unheard error ends the process. Node notes no TLS error after the handshake in `errored`.
  let broken: Error | undefined;
  socket.on("error", (error) => {
    broken ??= error;
  });
  try {
    await comeUp(socket, wanted, stop.signal);
  } catch (error) {
    socket.destroy();
    throw error instanceof NoConnection ? error : new NoConnection(errorCode(error, "ECONNRESET"));
  }
  const connection = { options: { createConnection: take }, socket, isTaken: false };
  // Checks the clock last, after everything that may take long.
  function take(): Socket {
    if (broken !== undefined || socket.destroyed) throw new NoConnection(errorCode(broken, "ECONNRESET"));
    if (wanted.beforeSend?.() === false) stop.abort();
    if (stop.signal.aborted) throw new NoConnection("ABORTED");
    connection.isTaken = true;
    return socket;
  }
  return connection;
}

function open(agent: HttpsAgent, url: URL): Socket {
  const host = hostOf(url);
  if (url.protocol !== "https:") return connect({ host, port: Number(url.port || 80), noDelay: true });
  const name = isIP(host) === 0 ? { servername: host } : {};
  // Set explicitly: otherwise an environment variable of Node could switch the check off.
  const options = { ...name, ...agent.options, host, port: url.port || 443, rejectUnauthorized: true };
  // The agent caches TLS sessions by this key, and resumes them.
  const socket = agent.createConnection({ ...options, ...{ _agentKey: agent.getName(options) } });
  if (socket instanceof Socket) return socket;
  throw new TypeError("an agent opened no socket");
}

function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, "");
}

/** Waits for each step of connecting, within the limits of the step and of the whole. */
async function comeUp(
  socket: Socket,
  { url, timeouts, leftMs }: ConnectionRequest,
  signal: AbortSignal,
): Promise<void> {
  const parts = [
    ...(isIP(hostOf(url)) === 0 ? ([["lookup", timeouts.lookupMs]] as const) : []),
    ["connect", timeouts.connectMs],
    ...(url.protocol === "https:" ? ([["secureConnect", timeouts.secureConnectMs]] as const) : []),
  ] as const;
  for (const [event, withinMs] of parts) {
    // An error right after the step before may have come while no step was awaited.
    if (socket.errored !== null) throw socket.errored;
    const tooLate = () => new NoConnection(`ETIMEDOUT (${event})`);
    await withTimeLimit(once(socket, event, { signal }), Math.min(withinMs, leftMs()), tooLate);
  }
}
