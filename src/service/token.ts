// Where the bearer token comes from: a text or a file; by OAuth 2 in oauth2-token.ts. call.ts asks
// once per exchange. A token is never logged or put into an error. Files that hold secrets are read
// here, bounded and never cached. Source: service-interface §5.
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { shared } from "../core/batcher.ts";
import { type Clock, systemClock, untilAborted } from "../core/clock.ts";
import { errorCode } from "../core/errors.ts";
import { createRateLimitedLog, type EventLog, silentLog } from "../core/event-log.ts";
import { noteSecret } from "../core/secrets.ts";

/** Gives the bearer token. */
export interface TokenSource {
  /** The token to send now. @throws TokenError */
  get(signal?: AbortSignal): Promise<string>;
  /** A token after the service refused this one with 401; may be the same. @throws TokenError */
  renew(refused: string, signal?: AbortSignal): Promise<string>;
  /** When the token expires, in ms since 1970 UTC; undefined while not known. */
  readonly expiresAtMs?: number | undefined;
  /** Whether the last try to get a new one failed. */
  readonly renewalFails?: boolean;
  /** How long it still waits after a failure, in ms; meanwhile `get` throws the same failure. */
  readonly restsForMs?: number;
  /** Ends pending requests. Called when the client is closed. */
  close?(): void;
}

/** There is no usable token. `temporary`: may work later without a change. */
export class TokenError extends Error {
  override readonly name = "TokenError";
  readonly temporary: boolean;

  constructor(message: string, temporary = false) {
    super(message);
    this.temporary = temporary;
  }
}

const tokenBytesMax = 64 * 1024;
const tokenAgeMsMax = 30_000;

/** Checks that a text can be a bearer token, and trims it. @throws TokenError */
export function parseToken(text: string, whence: string): string {
  const token = text.replace(/^\uFEFF/, "").trim();
  if (token === "") throw new TokenError(`${whence} is empty: put the access token there`);
  if (token.length > tokenBytesMax) throw new TokenError(`${whence} is over 64 KiB: that is no access token`);
  if (/^bearer\s/i.test(token)) throw new TokenError(`${whence} starts with "Bearer": leave that word out`);
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new TokenError(`${whence} holds white space, control or non-ASCII characters: give the bare access token`);
  }
  noteSecret(token);
  return token;
}

/** A token that never changes. @throws TokenError when the text cannot be a token. */
export function staticToken(text: string): TokenSource {
  const token = parseToken(text, "the token");
  noteSecret(token, "lasting");
  return { get: async () => token, renew: async () => token };
}

/**
 * A token in a file, read again after 30 s and when refused, so that a rotated secret applies.
 * While the file is unusable, the last token stays in use until it is refused.
 */
export function fileToken(path: string, clock: Clock = systemClock, log: EventLog = silentLog): TokenSource {
  const rateLimitedLog = createRateLimitedLog(log, clock, "");
  let last: { readonly token: string; readonly readAtMs: number } | undefined;
  const read = shared(async () => {
    const text = await readSecret(path, "token file");
    // A writer that changes the file in place empties it first.
    if (text.trim() === "") throw new TokenError(`token file ${path} is empty: put the access token there`, true);
    const token = parseToken(text, `token file ${path}`);
    last = { token, readAtMs: clock.monotonicMs() };
    return token;
  });
  return {
    get: async (signal) => {
      const kept = last;
      if (kept !== undefined && clock.monotonicMs() - kept.readAtMs < tokenAgeMsMax) return kept.token;
      try {
        return await untilAborted(read(), signal);
      } catch (error) {
        if (kept === undefined || !(error instanceof TokenError)) throw error;
        rateLimitedLog.warn("token.renewal-failed", { message: error.message });
        last = { ...kept, readAtMs: clock.monotonicMs() };
        return kept.token;
      }
    },
    renew: (_, signal) => untilAborted(read(), signal),
  };
}

/** Reads a file that holds a secret. @throws TokenError, temporary: a rotation may be under way. */
async function readSecret(path: string, what: string): Promise<string> {
  const read = await readBounded(path, tokenBytesMax + 1);
  if ("text" in read) return read.text;
  throw new TokenError(`${what} ${path} cannot be read (${read.code}): check the path and its rights`, true);
}

/** Reads the secret of an OAuth 2 client from its file. @throws TokenError */
export async function readClientSecret(path: string): Promise<string> {
  const secret = (await readSecret(path, "client secret file")).replace(/\r?\n$/, "");
  if (secret === "") throw new TokenError(`client secret file ${path} is empty: put the secret there`);
  noteSecret(secret);
  return secret;
}

/** Without O_NONBLOCK a pipe without a writer would block a thread that reads files and names. */
const flags = constants.O_RDONLY | constants.O_NONBLOCK;

/** The beginning of a file as text, or the system's error code. Secrets are mounted as links. */
export async function readBounded(
  path: string,
  bytesMax: number,
): Promise<{ readonly text: string } | { readonly code: string }> {
  try {
    await using file = await open(path, flags);
    const buffer = Buffer.alloc(bytesMax);
    let length = 0;
    while (length < buffer.length) {
      const { bytesRead } = await file.read(buffer, length, buffer.length - length, null);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return { text: buffer.toString("utf8", 0, length) };
  } catch (error) {
    return { code: errorCode(error, "unreadable") };
  }
}
