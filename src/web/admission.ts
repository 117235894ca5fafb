// What every request passes before its route: who asks, how fast, and, where it may change
// something, whether this server, the place it comes from and the caller's scope allow it. Records
// refused changes: 20 of a caller, then one an hour; the log has each. Of who is not let in, less.
import type { Context, MiddlewareHandler } from "hono";
import { getCookie } from "hono/cookie";
import type { Clock } from "../core/clock.ts";
import type { EventLog } from "../core/event-log.ts";
import { cutText } from "../core/plain-text.ts";
import type { Access } from "./access.ts";
import { AccessDenied, type Caller, checkScope, localCaller } from "./identity.ts";
import { WebError } from "./problem.ts";
import { RateLimit } from "./rate-limit.ts";
import type { WebEnv } from "./web-env.ts";

/** An attempt to change something, which was not done. */
export interface Refusal {
  readonly actor: string;
  readonly what: string;
  readonly why: string;
  readonly address: string;
  readonly requestId: string;
}

/** What the admission of requests needs. */
export interface AdmissionParts {
  /** undefined: there are no tokens, and only this machine may ask. */
  readonly access: Access | undefined;
  /** Writes an attempted change into the record of changes. */
  readonly recordRefusal: (refusal: Refusal) => Promise<void>;
  /** Whether nothing can be changed here, whatever a caller may do. */
  readonly isReadOnly: boolean;
  /** How often one caller may ask. */
  readonly pace?: typeof requests | undefined;
  readonly clock: Clock;
  readonly log: EventLog;
}

/** The cookie of a session, without its prefix. */
export const cookieName = "syncline";

const requests = { burst: 100, perSecond: 20 };
const changes = { burst: 10, perSecond: 1 };
/** Refusals kept of a caller: a flood of them must not push real changes out of the record. */
const refusals = { burst: 20, perSecond: 1 / 3_600 };
/** The same of one that is not let in: it may come again with each request. */
const denials = { burst: 1, perSecond: 1 / 3_600 };
/** How often the log tells of it. Of refused changes it tells each. */
const deniedLines = { burst: 1, perSecond: 1 / 60 };

/**
 * Records requests that could have changed something, and did not, and callers who showed what is
 * not valid, as often as `refusals` and `denials` allow.
 */
export function recordRefusals({ clock, log, recordRefusal }: AdmissionParts): MiddlewareHandler<WebEnv> {
  const [recorded, denied] = [new RateLimit(refusals, clock), new RateLimit(denials, clock)];
  const told = new RateLimit(deniedLines, clock);
  return async (c, next) => {
    await next();
    // Also set where a part was refused and the rest was done: then the answer is a 2xx.
    const { status = c.res.status } = c.get("problem") ?? {};
    const denial = c.error instanceof AccessDenied ? c.error : undefined;
    const isStranger = c.get("caller") === undefined && !isSigning(c);
    // 400: it was written wrong, and asked for nothing yet. From 500 on the log has the cause.
    const isChange = !isSafe(c) && c.req.method !== "OPTIONS" && (isStranger || (status > 400 && status < 500));
    const caller = c.get("caller")?.name ?? denial?.actor;
    const actor = caller ?? nameOf(c);
    if (!isChange && (denial === undefined || told.take(actor) > 0)) return;
    const { method, path } = c.req;
    const of = c.req.query("of") ?? "";
    const why = c.get("problem")?.detail ?? "it needs a token or a session";
    const what = `${method} ${path}${of === "" ? "" : ` of ${cutText(of, 100)}`}`;
    const refusal = { what, why, address: addressOf(c), requestId: c.get("requestId") };
    const isKept = isChange || denied.take(actor) === 0;
    // All strangers together: none of them has a name that could be believed.
    if (isKept && recorded.take(caller ?? "") === 0) await recordRefusal({ actor, ...refusal });
    log.warn("web.refused", { actor, ...refusal });
  };
}

/** Finds the caller, and lets pass what may go on to its route. */
export function admitCallers(parts: AdmissionParts): MiddlewareHandler<WebEnv> {
  const { access, clock, pace = requests } = parts;
  const isReadOnly = access === undefined || parts.isReadOnly;
  const [asked, changed] = [new RateLimit(pace, clock), new RateLimit(changes, clock)];
  return async (c, next) => {
    const found = access === undefined ? localCaller : await callerOf(c, access);
    const known = isCaller(found) ? found : undefined;
    // So that no page shows what would be refused.
    const held = { scope: "read", isHeldByServer: true } as const;
    const caller = known && isReadOnly ? { ...known, ...held } : known;
    c.set("caller", caller);
    checkPace(c, asked, nameOf(c), `more than ${pace.perSecond} requests a second`);
    if (found instanceof AccessDenied) throw found;
    if (isSafe(c)) return next();
    if (isSigning(c)) await checkOrigin(c, access);
    else if (isReadOnly) {
      c.header("allow", "GET, HEAD");
      throw readOnly;
    }
    // A stranger is asked to sign in, whatever the request.
    if (isSigning(c) || caller === undefined) return next();
    await checkOrigin(c, access);
    checkScope(caller, "operate");
    checkPace(c, changed, nameOf(c), `more than ${changes.perSecond} change a second`);
    return next();
  };
}

/** Whether a request changes nothing. */
export function isSafe(c: Context<WebEnv>): boolean {
  return c.req.method === "GET" || c.req.method === "HEAD";
}

/** Takes one of a caller's requests. @throws WebError that says when to ask again. */
export function checkPace(c: Context<WebEnv>, limit: RateLimit, caller: string, what: string): void {
  const seconds = limit.take(caller);
  if (seconds === 0) return;
  c.header("retry-after", `${seconds}`);
  const detail = `${what}; ask again in ${seconds} s`;
  throw new WebError({ status: 429, name: "too-many-requests", title: "Too many requests", detail });
}

/**
 * What changes something comes from a page of this server, or from a program with a token. Browsers
 * say where a request comes from, and no page can forge it: old ones by `Origin` only.
 */
async function checkOrigin(c: Context<WebEnv>, access: Access | undefined): Promise<void> {
  const [site, origin] = [c.req.header("sec-fetch-site"), c.req.header("origin")];
  if (site === "same-origin" || site === "none") return;
  if (site === undefined && origin !== undefined && origin === (await access?.publicOrigin())) return;
  // A browser's token may come from a proxy, whatever page the request is from.
  const isProgram = site === undefined && origin === undefined;
  if (isProgram && tokenOf(c) !== undefined && c.req.header("cookie") === undefined) return;
  const detail = "this request came from another site, or its way is not secure";
  const hint = "use the page itself, by HTTPS; programs send a token and no cookie";
  throw new WebError({ status: 403, name: "refused", title: "Not from here", detail, hint });
}

const readOnly = new WebError({
  status: 405,
  name: "refused",
  title: "Read-only",
  detail: "this server is read-only: it answers GET and HEAD",
  hint: "give people tokens (--web-tokens, --web-auth) and leave --web-read-only out, or use the command line",
});

function isSigning({ req: { path } }: Context<WebEnv>): boolean {
  return /^\/sign-(in(\/oidc|\/callback)?|out)$/.test(path);
}

/**
 * Who asks; undefined: a stranger. Signing in and out asks for no caller: it must work also with a
 * session that is denied.
 */
export async function callerOf(c: Context<WebEnv>, access: Access): Promise<Caller | AccessDenied | undefined> {
  if (isSigning(c)) return undefined;
  const shown = {
    bearer: tokenOf(c),
    session: getCookie(c, cookieName, "host"),
    header: (name: string) => c.req.header(name),
  };
  try {
    return await access.identify(shown);
  } catch (error) {
    if (error instanceof AccessDenied) return error;
    throw error;
  }
}

/** Whether this is a caller who is let in. */
export function isCaller(found: Caller | AccessDenied | undefined): found is Caller {
  return found !== undefined && !(found instanceof AccessDenied);
}

function tokenOf(c: Context<WebEnv>): string | undefined {
  return /^Bearer ([\x21-\x7e]{1,8192})$/i.exec(c.req.header("authorization") ?? "")?.[1];
}

/** Whether there is a session to sign out of: none of whom a proxy or this machine vouches for. */
export function hasSession(c: Context<WebEnv>): boolean {
  return getCookie(c, cookieName, "host") !== undefined;
}

/** The caller as records and limits name them. */
export function nameOf(c: Context<WebEnv>): string {
  return c.get("caller")?.name ?? `unknown@${addressOf(c)}`;
}

/** Where a request comes from: the nearest proxy, if there is one. */
export function addressOf(c: Context<WebEnv>): string {
  // Where IPv6 is listened on, too, an IPv4 address comes in its clothes.
  return c.env?.incoming?.socket.remoteAddress?.replace(/^::ffff:(?=\d)/, "") ?? "unknown";
}
