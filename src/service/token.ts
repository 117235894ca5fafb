// Where the bearer token comes from. Called once per HTTP exchange by call.ts; a token is never logged, cached elsewhere or
// put into an error. Source: service-interface §5; how tokens are obtained is not shown there.
import { open } from "node:fs/promises";
import { type Clock, systemClock } from "../core/clock.ts";

/** Gives the bearer token. */
export interface TokenSource {
  /** The token to send now. @throws TokenError */
  get(signal?: AbortSignal): Promise<string>;
  /** A token after the service refused the last one with 401; may be the same. @throws TokenError */
  renew(signal?: AbortSignal): Promise<string>;
}

/** There is no usable token. The message never holds the token. `temporary`: worth another try without a change. */
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

/**
 * Checks that a text can be a bearer token and takes the white space off its ends.
 * @throws TokenError when it is empty, over 64 KiB, or holds white space, control or non-ASCII characters.
 */
function parseToken(text: string, whence: string): string {
  const token = text.replace(/^\uFEFF/, "").trim();
  if (token === "") throw new TokenError(`${whence} is empty: put the access token there`);
  if (token.length > tokenBytesMax) throw new TokenError(`${whence} is over 64 KiB: that is no access token`);
  if (/^bearer\s/i.test(token)) throw new TokenError(`${whence} starts with "Bearer": leave that word out`);
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new TokenError(`${whence} holds white space, control or non-ASCII characters: give the bare access token`);
  }
  return token;
}

/** A token that never changes. @throws TokenError when the text cannot be a token. */
export function staticToken(text: string): TokenSource {
  const token = parseToken(text, "the token");
  return { get: async () => token, renew: async () => token };
}

/** A token in a file, read again when older than 30 s and when refused, so that a rotated secret is picked up. */
export function fileToken(path: string, clock: Clock = systemClock): TokenSource {
  let last: { token: string; readAtMs: number } | undefined;
  const read = async () => {
    const token = parseToken(await readBounded(path), `token file ${path}`);
    last = { token, readAtMs: clock.monotonicMs() };
    return token;
  };
  return {
    get: async () =>
      last !== undefined && clock.monotonicMs() - last.readAtMs < tokenAgeMsMax ? last.token : await read(),
    renew: read,
  };
}

async function readBounded(path: string): Promise<string> {
  try {
    await using file = await open(path, "r");
    const buffer = Buffer.alloc(tokenBytesMax + 1);
    let length = 0;
    while (length < buffer.length) {
      const { bytesRead } = await file.read(buffer, length, buffer.length - length, null);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return buffer.toString("utf8", 0, length);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unreadable";
    throw new TokenError(`token file ${path} cannot be read (${code}): check the path and its rights`, true);
  }
}
