// Checks whether a host can be reached: connects, with TLS for https, and sends no request.
// `syncline doctor` uses it for receivers of notices and heartbeats, which must not get a request.
import { defaultTimeouts } from "./service-options.ts";
import { tlsHint } from "./tls-hint.ts";
import { Transport } from "./transport.ts";

/** Why a host cannot be reached: the code of Node or OpenSSL, and its meaning where known. */
export interface OutOfReach {
  readonly code: string;
  readonly hint: string | undefined;
}

/**
 * Connects to the host of a URL and hangs up. Returns undefined on success. Never throws for
 * network failures.
 */
export async function reachHost(url: string, signal: AbortSignal): Promise<OutOfReach | undefined> {
  const transport = new Transport(1);
  let stood = false;
  try {
    const result = await transport.send({
      method: "POST",
      url: new URL(url),
      headers: {},
      isFresh: true,
      timeouts: defaultTimeouts,
      bodyBytesMax: 1,
      maySend: () => {
        stood = true;
        return false;
      },
      signal,
    });
    if (stood || result.type === "answer") return undefined;
    return { code: result.code, hint: tlsHint(result.code) };
  } finally {
    transport.close();
  }
}
