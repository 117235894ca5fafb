// Says who a request comes from: the owner of a bearer token or of a session, or the person of a
// JWT that an identity provider signed. Follows the files of --web-tokens and --web-auth. Called by
// admission.ts for every request, and by sign-in.ts.
import { z } from "zod";
import { type AuthSettings, parseAuthFile } from "../config/auth-file.ts";
import type { Variables } from "../config/settings.ts";
import { type Clock, createDeadline } from "../core/clock.ts";
import { errorText } from "../core/errors.ts";
import type { EventLog } from "../core/event-log.ts";
import { AccessDenied, type Caller, callerFrom, notProven } from "./identity.ts";
import { Issuer, type ProviderFetch } from "./issuer.ts";
import { OidcSignIn, signInFailed } from "./oidc.ts";
import { notFound } from "./problem.ts";
import { hashOfToken, parseTokens, type TokenEntry } from "./tokens.ts";

/** Where sessions are kept (store/web-sessions.ts). */
export interface Sessions {
  begin(owner: string, forMs: number): Promise<string>;
  owner(id: string): Promise<string | undefined>;
  end(id: string): Promise<void>;
}

/** A file that is followed. `read` throws a UsageError when it cannot be read. */
export interface WatchedFile {
  readonly path: string;
  read(): Promise<string>;
}

/** The file of an identity provider, and what asking that provider needs. */
export interface AuthFile extends WatchedFile {
  /** For `${NAME}` in it. */
  readonly variables: Variables;
  /** Reads the client's secret. @throws UsageError */
  readSecret(path: string): Promise<string>;
  /** The way to providers. `caFile`: authorities to trust beside the public ones. */
  createFetch(caFile: string | undefined): ProviderFetch;
}

/** What a request shows of its caller. */
export interface Credentials {
  readonly bearer: string | undefined;
  readonly session: string | undefined;
  header(name: string): string | undefined;
}

/** How long a session lasts, in milliseconds. */
export const sessionMs = 8 * 3_600_000;

/** A file is read again after this time, so that a changed one applies. */
const fileAgeMsMax = 30_000;

interface Surroundings {
  readonly clock: Clock;
  readonly log: EventLog;
}

/** What one content of the --web-auth file gives. */
interface Provider {
  readonly settings: AuthSettings;
  readonly issuers: readonly Issuer[];
  /** Checks the JWTs of requests. */
  readonly verify: ((jwt: string) => ReturnType<Issuer["verify"]>) | undefined;
  readonly oidc: OidcSignIn | undefined;
}

const ownerSchema = z.object({ by: z.string(), claims: z.record(z.string(), z.unknown()) });

/** Knows the tokens of one file, the provider of another, and the sessions of people. */
export class Access {
  readonly #tokens: (() => Promise<ReadonlyMap<string, TokenEntry>>) | undefined;
  readonly #provider: (() => Promise<Provider>) | undefined;
  readonly #sessions: Sessions;
  readonly #clock: Clock;

  /** Reads the files, at least one of them. @throws UsageError when one cannot be used. */
  static async open(
    { tokens, auth }: { readonly tokens?: WatchedFile | undefined; readonly auth?: AuthFile | undefined },
    sessions: Sessions,
    parts: Surroundings,
  ): Promise<Access> {
    const { log } = parts;
    const ofTokens = {
      parse: (text: string) => parseTokens(text, tokens?.path ?? ""),
      tellRejected: (message: string) => log.warn("web.tokens-rejected", { message }),
    };
    const ofAuth = (file: AuthFile) => ({
      parse: (text: string) => createProvider(text, file, parts),
      tellRejected: (message: string) => log.warn("web.auth-rejected", { message }),
    });
    return new Access(
      tokens && (await watch(tokens, ofTokens, parts)),
      auth && (await watch(auth, ofAuth(auth), parts)),
      { sessions, clock: parts.clock },
    );
  }

  private constructor(
    tokens: (() => Promise<ReadonlyMap<string, TokenEntry>>) | undefined,
    provider: (() => Promise<Provider>) | undefined,
    { sessions, clock }: { readonly sessions: Sessions; readonly clock: Clock },
  ) {
    this.#tokens = tokens;
    this.#provider = provider;
    this.#sessions = sessions;
    this.#clock = clock;
  }

  /** Asks the providers once, so that the log says at the start when they cannot be reached. */
  async askProviders(): Promise<void> {
    const { issuers = [] } = (await this.#provider?.()) ?? {};
    await Promise.allSettled(issuers.map((issuer) => issuer.readKeys()));
  }

  /**
   * Who a request comes from; undefined when it shows nothing, or a session that is over.
   * @throws AccessDenied for what is not valid; WebError while the provider cannot be asked.
   */
  async identify({ bearer, session, header }: Credentials): Promise<Caller | undefined> {
    const provider = await this.#provider?.();
    const { header: name } = provider?.settings.jwt ?? {};
    const jwt = bearer ?? (name === undefined ? undefined : header(name)?.replace(/^Bearer +/i, ""));
    if (jwt !== undefined && provider?.verify !== undefined && (jwt !== bearer || isJwt(jwt)))
      return callerFrom(await provider.verify(jwt), provider.settings);
    if (bearer !== undefined) return this.#ofToken(hashOfToken(bearer));
    return session === undefined ? undefined : this.#ofSession(session);
  }

  /** The ways to sign in on the page. */
  async ways(): Promise<{ readonly byToken: boolean; readonly byOidc: boolean }> {
    const provider = await this.#provider?.();
    return { byToken: this.#tokens !== undefined, byOidc: provider?.oidc !== undefined };
  }

  /** Where people's browsers see this server, if that is configured: `https://…` without a path. */
  async publicOrigin(): Promise<string | undefined> {
    const { settings } = (await this.#provider?.()) ?? {};
    return settings?.oidc && new URL(settings.oidc.publicUrl).origin;
  }

  /** Begins a session by a token; answers its id. @throws AccessDenied for a bad token. */
  async signIn(token: string): Promise<string> {
    const hash = hashOfToken(token);
    await this.#ofToken(hash);
    return this.#sessions.begin(hash, sessionMs);
  }

  /** Begins to sign in by the provider. @throws WebError without one. */
  async beginOidc(next: string): ReturnType<OidcSignIn["begin"]> {
    return (await this.#oidc()).oidc.begin(next);
  }

  /** Ends it, and begins the session. @throws AccessDenied, also without a grant that fits. */
  async endOidc(query: URLSearchParams, flow: string): Promise<{ readonly session: string; readonly next: string }> {
    const { oidc, settings } = await this.#oidc();
    try {
      const { claims, next } = await oidc.end(query, flow);
      callerFrom(claims, settings);
      const owner: z.input<typeof ownerSchema> = { by: oidc.id, claims };
      return { session: await this.#sessions.begin(JSON.stringify(owner), sessionMs), next };
    } catch (error) {
      // The browser shows no token here: what proves nothing is a sign-in that failed.
      if (error instanceof AccessDenied && error.problem.status === 401) throw signInFailed(error.problem.detail);
      throw error;
    }
  }

  /** Ends a session. */
  signOut(id: string): Promise<void> {
    return this.#sessions.end(id);
  }

  async #oidc() {
    const { oidc, settings } = (await this.#provider?.()) ?? {};
    if (oidc === undefined || settings === undefined) throw notFound("there is no identity provider to sign in by");
    return { oidc, settings };
  }

  /** A person's claims are those of the sign-in; what they give is looked up each time. */
  async #ofSession(id: string): Promise<Caller | undefined> {
    const owner = await this.#sessions.owner(id);
    if (owner === undefined || !owner.startsWith("{")) return owner === undefined ? undefined : this.#find(owner);
    const { oidc, settings } = (await this.#provider?.()) ?? {};
    const { by, claims } = ownerSchema.parse(JSON.parse(owner));
    return settings !== undefined && by === oidc?.id ? callerFrom(claims, settings) : undefined;
  }

  async #ofToken(hash: string): Promise<Caller> {
    const caller = await this.#find(hash);
    if (caller === undefined) throw notProven("this token is not known, or it has expired");
    return caller;
  }

  async #find(hash: string): Promise<Caller | undefined> {
    const entry = (await this.#tokens?.())?.get(hash);
    if (entry === undefined) return undefined;
    if (entry.expiresMs !== undefined && this.#clock.nowMs() >= entry.expiresMs) return undefined;
    return { name: entry.name, scope: entry.scope, services: entry.services, labels: entry.labels };
  }
}

/** Whether a text has the form of a signed JWT; no token of ours has. */
function isJwt(text: string): boolean {
  return /^eyJ[\w-]*\.[\w-]*\.[\w-]*$/.test(text);
}

/** Reads a file now and every 30 s. One that cannot be used changes nothing, but is told. */
async function watch<Content>(
  file: WatchedFile,
  {
    parse,
    tellRejected,
  }: { readonly parse: (text: string) => Content; readonly tellRejected: (message: string) => void },
  { clock }: Surroundings,
): Promise<() => Promise<Content>> {
  let text = await file.read();
  let content = parse(text);
  let isOld = createDeadline(fileAgeMsMax, clock);
  return async () => {
    if (!isOld()) return content;
    isOld = createDeadline(fileAgeMsMax, clock);
    try {
      const now = await file.read();
      // The same text keeps what was made of it: a provider's keys, too.
      if (now !== text) content = parse(now);
      text = now;
    } catch (error) {
      tellRejected(errorText(error));
    }
    return content;
  };
}

function createProvider(text: string, file: AuthFile, surroundings: Surroundings): Provider {
  const settings = parseAuthFile(file.path, text, file.variables);
  const { jwt, oidc, caFile } = settings;
  const parts = { ...surroundings, fetch: file.createFetch(caFile) };
  const tokens = jwt && new Issuer(jwt.issuer, jwt.keysUrl, parts);
  const isSame = jwt !== undefined && jwt.issuer === oidc?.issuer && jwt.keysUrl === undefined;
  const people = isSame ? tokens : oidc && new Issuer(oidc.issuer, undefined, parts);
  return {
    settings,
    issuers: [...new Set([tokens, people])].filter((issuer) => issuer !== undefined),
    verify: tokens && ((token) => tokens.verify(token, jwt?.audience ?? "")),
    oidc: people && oidc && new OidcSignIn(oidc, people, (path) => file.readSecret(path)),
  };
}
