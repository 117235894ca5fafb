// Asks a URL that is no service: the heartbeat of a policy (notify/heartbeats.ts). Sends nothing
// but its own name, follows no redirect, and never shows the URL, which may be a secret.
import { noteSecret } from "../core/secrets.ts";
import { tlsHint } from "./tls-hint.ts";
import { Transport } from "./transport.ts";

const timeouts = {
  lookupMs: 5_000,
  connectMs: 5_000,
  secureConnectMs: 5_000,
  socketMs: 10_000,
  sendMs: 5_000,
  responseMs: 10_000,
  readMs: 10_000,
  requestMs: 15_000,
} as const;
const answerBytesMax = 64 * 1024;

/** Asks URLs. */
export interface Pinger {
  /**
   * Asks once (GET). Returns undefined after a 2xx, otherwise what went wrong in one line. Never
   * throws.
   */
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
        isFresh: true,
        timeouts,
        bodyBytesMax: answerBytesMax,
        signal,
      });
      if (result.type === "failure") {
        const why = result.why ?? tlsHint(result.code);
        return why === undefined ? `no answer (${result.code})` : `no answer (${result.code}): ${why}`;
      }
      return result.status >= 200 && result.status < 300 ? undefined : `answered with status ${result.status}`;
    },
    close: () => transport.close(),
  };
}
