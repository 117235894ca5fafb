// A connection for one exchange alone, which stands before its request is made. Called by transport.ts.
//
// So whatever fails here surely was not sent. And requests whose connections come up together leave one by one, since making a request is most of
// its work: made before, they all left at once, met at the service, came back at once, and each waited for all the others.
import { once } from "node:events";
import type { Agent as HttpAgent } from "node:http";
import type { Agent as HttpsAgent } from "node:https";
import { connect, isIP, Socket } from "node:net";
import { systemClock, withDeadline } from "../core/clock.ts";
import type { Timeouts } from "./service-options.ts";

/** Who opens and keeps connections, by the URL's scheme. */
export interface KeptAgents {
  readonly http: HttpAgent;
  readonly https: HttpsAgent;
}

/**
 * How a request gets to its connection: options for got. `isOpen`: it may have got there; `leftMs`: of the time for the whole exchange;
 * `socket`: its own, for whoever made the way to destroy.
 */
export interface Way {
  readonly options: { readonly agent: KeptAgents } | { readonly createConnection: () => Socket };
  readonly socket?: Socket;
  readonly isOpen: boolean;
  readonly leftMs: number;
}

/** The connection does not stand. `code`: that of Node or OpenSSL, or which part of it took too long. */
export class NoConnection extends Error {
  override readonly name = "NoConnection";
  readonly code: string;

  constructor(code: string) {
    super(`no connection: ${code}`);
    this.code = code;
  }
}

/** What a connection is opened for. `maySend` is asked when the request takes it, right before the first byte. */
interface Wanted {
  readonly url: URL;
  readonly timeouts: Timeouts;
  readonly maySend?: (() => boolean) | undefined;
}

/** The way over connections that are kept, and shared by whoever asks. */
export function keptWay(agent: KeptAgents, { requestMs }: Timeouts): Way {
  return { options: { agent }, isOpen: true, leftMs: requestMs };
}

/**
 * Opens a connection to a URL's host, with TLS by `agent` where its scheme says so. `stop` ends it, and is aborted where the request may not be sent.
 * @throws NoConnection
 */
export async function freshWay(agent: HttpsAgent, wanted: Wanted, stop: AbortController): Promise<Way> {
  const untilMs = systemClock.monotonicMs() + wanted.timeouts.requestMs;
  const socket = await openConnection(agent, wanted, { untilMs, signal: stop.signal });
  const leftMs = Math.max(untilMs - systemClock.monotonicMs(), 1);
  const way = { options: { createConnection: take }, socket, isOpen: false, leftMs };
  // The last look at the clock comes after everything that may take long.
  function take(): Socket {
    if (socket.destroyed) throw new NoConnection("ECONNRESET");
    if (wanted.maySend?.() === false) {
      stop.abort();
      throw new NoConnection("ABORTED");
    }
    way.isOpen = true;
    return socket;
  }
  return way;
}

/** When the whole exchange must be over, on the monotonic clock, and what ends it earlier. */
interface Patience {
  readonly untilMs: number;
  readonly signal: AbortSignal;
}

async function openConnection(agent: HttpsAgent, { url, timeouts }: Wanted, patience: Patience): Promise<Socket> {
  const isTls = url.protocol === "https:";
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const isName = isIP(host) === 0;
  const socket = isTls ? openTls(agent, url, host) : connect({ host, port: Number(url.port || 80), noDelay: true });
  // Until the request listens, and after it has ended, nobody does: an error that no one hears would end the process.
  socket.on("error", () => {});
  try {
    if (isName) await come(socket, { event: "lookup", limitMs: timeouts.lookupMs, patience });
    await come(socket, { event: "connect", limitMs: timeouts.connectMs, patience });
    if (isTls) await come(socket, { event: "secureConnect", limitMs: timeouts.secureConnectMs, patience });
    return socket;
  } catch (error) {
    socket.destroy();
    throw error instanceof NoConnection ? error : new NoConnection(codeOf(error));
  }
}

function openTls(agent: HttpsAgent, url: URL, host: string): Socket {
  const name = isIP(host) === 0 ? { servername: host } : {};
  const options = { ...name, ...agent.options, host, port: url.port || 443 };
  // The agent keeps the TLS sessions of each such key, and resumes them.
  const socket = agent.createConnection({ ...options, ...{ _agentKey: agent.getName(options) } });
  if (socket instanceof Socket) return socket;
  throw new TypeError("an agent opened no socket");
}

interface Part {
  readonly event: "lookup" | "connect" | "secureConnect";
  readonly limitMs: number;
  readonly patience: Patience;
}

/** Waits for the next part of a connection that comes up. */
async function come(socket: Socket, { event, limitMs, patience }: Part): Promise<void> {
  // What failed right after the part before was told when nobody listened.
  if (socket.errored !== null) throw socket.errored;
  const { untilMs, signal } = patience;
  const withinMs = Math.min(limitMs, untilMs - systemClock.monotonicMs());
  await withDeadline(once(socket, event, { signal }), withinMs, () => new NoConnection(`ETIMEDOUT (${event})`));
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "ECONNECTION";
}
