// A connection for one exchange alone, which stands before its request is made. Called by transport.ts.
//
// So whatever fails here surely was not sent. And requests whose connections come up together leave one by one, since making a request is most of
// its work: made before, they all left at once, met at the service, came back at once, and each waited for all the others.
import { once } from "node:events";
import type { Agent as HttpAgent } from "node:http";
import type { Agent as HttpsAgent } from "node:https";
import { connect, isIP, Socket } from "node:net";
import { withDeadline } from "../core/clock.ts";
import type { Timeouts } from "./service-options.ts";

/** Who opens and keeps connections, by the URL's scheme. */
export interface KeptAgents {
  readonly http: HttpAgent;
  readonly https: HttpsAgent;
}

/** How a request gets to its connection: options for got. `isOpen`: it may have got there; `socket`: its own, for whoever made the way to destroy. */
export interface Way {
  readonly options: { readonly agent: KeptAgents } | { readonly createConnection: () => Socket };
  readonly socket?: Socket;
  readonly isOpen: boolean;
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

/** What a connection is opened for. `leftMs`: how long it all may take yet. `maySend` is asked when the request takes it, right before the first byte. */
interface Wanted {
  readonly url: URL;
  readonly timeouts: Timeouts;
  readonly leftMs: () => number;
  readonly maySend?: (() => boolean) | undefined;
}

/** The way over connections that are kept, and shared by whoever asks. */
export function keptWay(agent: KeptAgents): Way {
  return { options: { agent }, isOpen: true };
}

/**
 * Opens a connection to a URL's host, with TLS by `agent` where its scheme says so. `stop` ends it, and is aborted where the request may not be sent.
 * @throws NoConnection
 */
export async function freshWay(agent: HttpsAgent, wanted: Wanted, stop: AbortController): Promise<Way> {
  const socket = open(agent, wanted.url);
  // Until the request listens, and after it has ended, nobody else does: an error that no one hears would end the process.
  // Kept here, since Node notes no error of TLS after the handshake in `errored`.
  let broken: Error | undefined;
  socket.on("error", (error) => {
    broken ??= error;
  });
  try {
    await comeUp(socket, wanted, stop.signal);
  } catch (error) {
    socket.destroy();
    throw error instanceof NoConnection ? error : new NoConnection(codeOf(error));
  }
  const way = { options: { createConnection: take }, socket, isOpen: false };
  // The last look at the clock comes after everything that may take long.
  function take(): Socket {
    if (broken !== undefined || socket.destroyed) throw new NoConnection(codeOf(broken));
    if (wanted.maySend?.() === false) stop.abort();
    if (stop.signal.aborted) throw new NoConnection("ABORTED");
    way.isOpen = true;
    return socket;
  }
  return way;
}

function open(agent: HttpsAgent, url: URL): Socket {
  const host = hostOf(url);
  if (url.protocol !== "https:") return connect({ host, port: Number(url.port || 80), noDelay: true });
  const name = isIP(host) === 0 ? { servername: host } : {};
  // Said, since Node lets its environment switch the check off where nothing is said.
  const options = { ...name, ...agent.options, host, port: url.port || 443, rejectUnauthorized: true };
  // The agent keeps the TLS sessions of each such key, and resumes them.
  const socket = agent.createConnection({ ...options, ...{ _agentKey: agent.getName(options) } });
  if (socket instanceof Socket) return socket;
  throw new TypeError("an agent opened no socket");
}

function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, "");
}

/** Waits for each part of a connection, no longer than that part and the whole may take. */
async function comeUp(socket: Socket, { url, timeouts, leftMs }: Wanted, signal: AbortSignal): Promise<void> {
  const parts = [
    ...(isIP(hostOf(url)) === 0 ? ([["lookup", timeouts.lookupMs]] as const) : []),
    ["connect", timeouts.connectMs],
    ...(url.protocol === "https:" ? ([["secureConnect", timeouts.secureConnectMs]] as const) : []),
  ] as const;
  for (const [event, withinMs] of parts) {
    // What failed right after the part before was told when nobody waited.
    if (socket.errored !== null) throw socket.errored;
    const tooLate = () => new NoConnection(`ETIMEDOUT (${event})`);
    await withDeadline(once(socket, event, { signal }), Math.min(withinMs, leftMs()), tooLate);
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "ECONNRESET";
}
