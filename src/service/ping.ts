// Asks URLs that are no service: the heartbeat of a policy (notify/heartbeats.ts), and whether a
// receiver of notices can be reached (`syncline doctor`). Never shows the URL: it may be a secret.
import { noteSecret } from "../core/secrets.ts";
import { defaultTimeouts } from "./service-options.ts";
import { tlsHint } from "./tls-files.ts";
import { Transport } from "./transport.ts";

const timeouts = { ...defaultTimeouts, socketMs: 10_000, responseMs: 10_000, readMs: 10_000, requestMs: 15_000 };
const answerBytesMax = 64 * 1024;

/** Asks URLs. */
export interface Pinger {
  /** Asks once (GET). Returns what went wrong in one line; undefined after a 2xx. */
  ping(url: string, signal: AbortSignal): Promise<string | undefined>;
  close(): void;
}

/** Makes a pinger with its own connections, 8 at most. */
export function createPinger(): Pinger {
  const transport = new Transport(8);
  return {
    ping: async (text, signal) => {
      const url = new URL(text);
      for (const part of [url.pathname, url.search]) noteSecret(part);
      const result = await transport.send({
        method: "GET",
        url,
        headers: { "user-agent": "syncline" },
        isDedicated: true,
        timeouts,
        bodyBytesMax: answerBytesMax,
        signal,
      });
      const { status } = result;
      if (result.type === "failure" && status === undefined) {
        const why = result.why ?? tlsHint(result.code);
        return why === undefined ? `no answer (${result.code})` : `no answer (${result.code}): ${why}`;
      }
      // With its status the receiver has the request, whatever becomes of the body.
      const isGood = status !== undefined && status >= 200 && status < 300;
      return isGood ? undefined : `answered with status ${status}`;
    },
    close: () => transport.close(),
  };
}

/** Why a host cannot be reached: the code of Node or OpenSSL, and its meaning where known. */
export interface OutOfReach {
  readonly code: string;
  readonly hint: string | undefined;
}

/** Connects to a URL's host, with TLS for https, and sends no request. undefined: it worked. */
export async function reachHost(url: string, signal: AbortSignal): Promise<OutOfReach | undefined> {
  const transport = new Transport(1);
  let isConnected = false;
  try {
    const result = await transport.send({
      method: "POST",
      url: new URL(url),
      headers: {},
      isDedicated: true,
      timeouts: defaultTimeouts,
      bodyBytesMax: 1,
      beforeSend: () => {
        isConnected = true;
        return false;
      },
      signal,
    });
    return isConnected || result.type === "answer" ? undefined : { code: result.code, hint: tlsHint(result.code) };
  } finally {
    transport.close();
  }
}
