// Says who a request comes from: the owner of a bearer token, of a session cookie, or, without any
// tokens, a person at this machine. Called by web-app.ts for every request.
import { type Clock, createDeadline } from "../core/clock.ts";
import { errorText } from "../core/errors.ts";
import type { EventLog } from "../core/event-log.ts";
import { reaches, type Scope } from "../model/scope.ts";
import { WebError } from "./problem.ts";
import { hashOfToken, parseTokens, type TokenEntry } from "./tokens.ts";

/** Who asks. `services` undefined: all. */
export interface Caller {
  readonly name: string;
  readonly scope: Scope;
  readonly services: ReadonlySet<string> | undefined;
}

/** @throws WebError for a caller who may not. */
export function checkScope({ name, scope }: Caller, needed: Scope): void {
  if (reaches(scope, needed)) return;
  const detail = `${name} may ${scope}, and this needs ${needed}; the attempt is recorded`;
  throw new WebError({ status: 403, name: "scope-too-small", title: "You may not", detail });
}

/** Where sessions are kept (store/web-sessions.ts). */
export interface Sessions {
  begin(tokenHash: string, forMs: number): Promise<string>;
  tokenHash(id: string): Promise<string | undefined>;
  end(id: string): Promise<void>;
}

/** The file of tokens. `read` throws a UsageError when it cannot be read. */
export interface TokenFile {
  readonly path: string;
  read(): Promise<string>;
}

/** How long a session lasts, in milliseconds. */
export const sessionMs = 8 * 3_600_000;

/** A file is read again after this time, so that a changed one applies. */
const fileAgeMsMax = 30_000;

/** The person at this machine, while no tokens are configured. */
export const localCaller: Caller = { name: "local", scope: "read", services: undefined };

/** Knows the tokens of one file, and the sessions of their owners. */
export class Access {
  readonly #file: TokenFile;
  readonly #sessions: Sessions;
  readonly #clock: Clock;
  readonly #log: EventLog;
  #tokens: ReadonlyMap<string, TokenEntry>;
  #isOld: () => boolean;

  /** Reads the file. @throws UsageError when it cannot be used. */
  static async open(file: TokenFile, sessions: Sessions, { clock, log }: { clock: Clock; log: EventLog }) {
    return new Access({ file, sessions, clock, log, tokens: parseTokens(await file.read(), file.path) });
  }

  private constructor(parts: {
    readonly file: TokenFile;
    readonly sessions: Sessions;
    readonly clock: Clock;
    readonly log: EventLog;
    readonly tokens: ReadonlyMap<string, TokenEntry>;
  }) {
    this.#file = parts.file;
    this.#sessions = parts.sessions;
    this.#clock = parts.clock;
    this.#log = parts.log;
    this.#tokens = parts.tokens;
    this.#isOld = createDeadline(fileAgeMsMax, parts.clock);
  }

  /** The owner of a token; undefined when it is unknown or has expired. */
  async ofToken(token: string): Promise<Caller | undefined> {
    return this.#ofHash(hashOfToken(token));
  }

  /** The owner of a session; undefined when it, or the token behind it, is over. */
  async ofSession(id: string): Promise<Caller | undefined> {
    const hash = await this.#sessions.tokenHash(id);
    return hash === undefined ? undefined : this.#ofHash(hash);
  }

  /** Begins a session; undefined when the token is not good. */
  async signIn(token: string): Promise<string | undefined> {
    const hash = hashOfToken(token);
    return (await this.#ofHash(hash)) === undefined ? undefined : this.#sessions.begin(hash, sessionMs);
  }

  /** Ends a session. */
  signOut(id: string): Promise<void> {
    return this.#sessions.end(id);
  }

  async #ofHash(hash: string): Promise<Caller | undefined> {
    if (this.#isOld()) await this.#readAgain();
    const entry = this.#tokens.get(hash);
    if (entry === undefined) return undefined;
    if (entry.expiresMs !== undefined && this.#clock.nowMs() >= entry.expiresMs) return undefined;
    return { name: entry.name, scope: entry.scope, services: entry.services };
  }

  /** A file that cannot be used changes nothing: the last good tokens stay in force. */
  async #readAgain(): Promise<void> {
    this.#isOld = createDeadline(fileAgeMsMax, this.#clock);
    try {
      this.#tokens = parseTokens(await this.#file.read(), this.#file.path);
    } catch (error) {
      this.#log.warn("web.tokens-rejected", { message: errorText(error) });
    }
  }
}
