// Signing in and out on the page: by a token that is shown once, or by an identity provider. Both
// end in a session, which a cookie names. Used by web-app.ts.
import type { Context, Hono } from "hono";
import { deleteCookie, getCookie, setCookie } from "hono/cookie";
import { HTTPException } from "hono/http-exception";
import type { Clock } from "../core/clock.ts";
import { errorText } from "../core/errors.ts";
import { type Access, sessionMs } from "./access.ts";
import { addressOf, checkPace, cookieName } from "./admission.ts";
import { AccessDenied } from "./identity.ts";
import { callbackPath, signInFailed } from "./oidc.ts";
import { signInPage } from "./pages/sign-in.ts";
import { limitBody } from "./problem.ts";
import { RateLimit } from "./rate-limit.ts";
import type { WebEnv } from "./web-env.ts";

const formBytesMax = 4_096;
/** Behind an ingress all people have one address: 30 of them may sign in at once. */
const attempts = { burst: 60, perSecond: 1 };
const flowCookie = "syncline-sign-in";
const flowSeconds = 600;
/** Cookies that no script reads, that only HTTPS carries, and that only this host may set. */
const closed = { prefix: "host", httpOnly: true, secure: true, path: "/" } as const;

/** Adds the routes. None of them asks who the caller is. */
export function addSigning(app: Hono<WebEnv>, access: Access, clock: Clock): void {
  const tried = new RateLimit(attempts, clock);
  const checkAttempts = (c: Context<WebEnv>) => checkPace(c, tried, addressOf(c), "too many sign-ins from one address");
  app.get("/sign-in", async (c) =>
    c.html(signInPage({ next: pathFrom(c.req.query("next")), ...(await access.ways()) })),
  );
  app.post("/sign-in", limitBody(formBytesMax), async (c) => {
    checkAttempts(c);
    const { token, next } = await c.req.parseBody().catch(refuseForm);
    const to = pathFrom(next);
    try {
      begin(c, await access.signIn(typeof token === "string" ? token.trim() : ""));
    } catch (error) {
      if (!(error instanceof AccessDenied)) throw error;
      c.set("problem", error.problem);
      return c.html(signInPage({ next: to, isWrong: true, ...(await access.ways()) }), 403);
    }
    return c.redirect(to, 303);
  });
  app.get("/sign-in/oidc", async (c) => {
    checkAttempts(c);
    const { location, flow } = await access.beginOidc(pathFrom(c.req.query("next")));
    // Lax: the provider leads back from another site.
    setCookie(c, flowCookie, flow, { ...closed, sameSite: "Lax", maxAge: flowSeconds });
    return c.redirect(location, 303);
  });
  app.get(callbackPath, async (c) => {
    checkAttempts(c);
    const flow = getCookie(c, flowCookie, "host");
    deleteCookie(c, flowCookie, closed);
    if (flow === undefined) throw signInFailed("it was begun in another browser, too long ago, or it is over already");
    const { session, next } = await access.endOidc(new URL(c.req.url).searchParams, flow);
    begin(c, session);
    return c.redirect(pathFrom(next), 303);
  });
  app.post("/sign-out", async (c) => {
    const session = getCookie(c, cookieName, "host");
    if (session !== undefined) await access.signOut(session);
    deleteCookie(c, cookieName, closed);
    return c.redirect("/sign-in", 303);
  });
}

function begin(c: Context<WebEnv>, session: string): void {
  setCookie(c, cookieName, session, { ...closed, sameSite: "Strict", maxAge: sessionMs / 1_000 });
}

function refuseForm(error: unknown): never {
  if (error instanceof HTTPException) throw error;
  throw new HTTPException(400, { message: `this is no form: ${errorText(error)}` });
}

/** A path of this server; any other text leads to the first page. */
export function pathFrom(text: unknown): string {
  return typeof text === "string" && /^\/(?![/\\])[\x21-\x7e]{0,500}$/.test(text) ? text : "/";
}
