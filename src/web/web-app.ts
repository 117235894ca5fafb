// The web application: headers, admission (admission.ts), signing in and out, the routes, and how
// errors are answered. Built by web-server.ts; tests ask it without a port.
import { randomUUID } from "node:crypto";
import { type Context, Hono } from "hono";
import { HTTPException } from "hono/http-exception";
import { secureHeaders } from "hono/secure-headers";
import type { LoadOptions } from "../config/load-policies.ts";
import { stackOf, UsageError } from "../core/errors.ts";
import type { EventLog } from "../core/event-log.ts";
import { isRedisOutage } from "../core/redis-outage.ts";
import { narrowTo, type QueryContext } from "../queries/query-context.ts";
import type { Acting } from "./acts.ts";
import {
  type AdmissionParts,
  addressOf,
  admitCallers,
  callerOf,
  hasSession,
  isCaller,
  isSafe,
  nameOf,
  recordRefusals,
} from "./admission.ts";
import { AnswerCache } from "./answer-cache.ts";
import { addApi } from "./api/routes.ts";
import { assets } from "./assets.ts";
import type { Caller } from "./identity.ts";
import { type LiveHub, streamChanges } from "./live.ts";
import { problemPage } from "./pages/problem-page.ts";
import { addPages } from "./pages/routes.ts";
import { comeAgainPage } from "./pages/sign-in.ts";
import { answerProblem, type ProblemDetails, unauthenticated, useProblem, WebError } from "./problem.ts";
import { send } from "./representation.ts";
import { addSigning, pathFrom } from "./sign-in.ts";
import type { WebEnv } from "./web-env.ts";
import { meterAnswers, type WebMeter } from "./web-meter.ts";

/** What the application needs. */
export interface WebParts extends AdmissionParts {
  /** What to read from now, with the policies in force. */
  readonly context: () => QueryContext;
  readonly live: LiveHub;
  /** Nothing is counted without it. */
  readonly meter?: WebMeter | undefined;
  /** How policy files are checked. */
  readonly load: LoadOptions;
}

/** Makes the cache of answers, one for each server. */
export function createAnswerCache({ clock, meter }: Pick<WebParts, "clock" | "meter">): AnswerCache {
  return new AnswerCache(clock, () => meter?.read());
}

/** Builds the application. */
export function createWebApp(parts: WebParts, cache = createAnswerCache(parts)): Hono<WebEnv> {
  const app = new Hono<WebEnv>();
  // Open pages fetch themselves again then, so the cache is emptied before.
  parts.live.beforeChange((isUrgent) => cache.mayTell(isUrgent));
  if (parts.meter !== undefined) app.use(meterAnswers(parts.meter, parts.clock));
  app.onError((error, c) => answerError(c, error, parts.log));
  app.notFound((c) => answerAs(c, unknownPath));
  app.use(async (c, next) => {
    c.set("requestId", randomUUID());
    c.header("x-request-id", c.get("requestId"));
    c.header("cache-control", "no-cache");
    await next();
  });
  app.use(secureHeaders(securityHeaders));
  if (parts.access === undefined) app.use(checkHost);
  addAssets(app);
  app.use(recordRefusals(parts), admitCallers(parts));
  if (parts.access !== undefined) addSigning(app, parts.access, parts.clock);
  app.use(async (c, next) => {
    const caller = c.get("caller");
    if (caller === undefined) return askToSignIn(c);
    const context = narrowTo(parts.context(), caller);
    c.set("query", context);
    const refuse = (problem: ProblemDetails) => c.set("problem", problem);
    c.set("acting", { context, caller, by: byOf(c, caller, parts.log), refuse, load: parts.load });
    await next();
    // Those who changed something see it on their next page.
    if (!isSafe(c)) cache.forget();
    return undefined;
  });
  app.get("/events", (c) => {
    const mayStay = async () => parts.access === undefined || isCaller(await callerOf(c, parts.access));
    return streamChanges(c, parts.live, { caller: nameOf(c), mayStay });
  });
  addApi(app, cache);
  addPages(app, cache);
  return app;
}

/** Who acts by a request, for the record of changes. */
function byOf(c: Context<WebEnv>, { name: actor }: Caller, log: EventLog): Acting["by"] {
  const from = { address: addressOf(c), requestId: c.get("requestId") };
  const warn = (message: string) => log.error("web.unrecorded", { ...from, actor, message });
  return (reason) => ({ actor, reason, from, warn });
}

const securityHeaders = {
  contentSecurityPolicy: {
    defaultSrc: ["'none'"],
    scriptSrc: ["'self'"],
    styleSrc: ["'self'"],
    imgSrc: ["'self'"],
    connectSrc: ["'self'"],
    formAction: ["'self'"],
    frameAncestors: ["'none'"],
    baseUri: ["'none'"],
  },
  xFrameOptions: "DENY",
  // TLS ends before this server: what stands there decides.
  strictTransportSecurity: false,
};

const unknownPath: ProblemDetails = {
  status: 404,
  name: "not-found",
  title: "Not found",
  detail: "there is nothing at this address",
  hint: "/ is the dashboard, /api/v1/openapi.json lists the API",
};

const outOfReach = { detail: "Redis is out of reach: nothing can be shown until it answers" };
const outOfReachInChange = {
  detail: "Redis is out of reach: it is not known whether this was done",
  hint: "when it answers, look before you send this again; under the same key a start stays one",
};

/** A form has its key in it. */
const outOfReachInForm = {
  ...outOfReachInChange,
  hint: "when it answers, look before you send this again; go back in the browser and send the same form: a start stays one",
};

function isApi(c: Context<WebEnv>): boolean {
  return c.req.path.startsWith("/api/");
}

function answerAs(c: Context<WebEnv>, problem: ProblemDetails): Response | Promise<Response> {
  c.set("problem", problem);
  if (problem.status === 401) c.header("www-authenticate", 'Bearer realm="syncline"');
  const requestId = c.get("requestId") ?? "";
  if (isApi(c)) return answerProblem(c, problem, requestId);
  const who = { caller: c.get("caller"), canSignOut: hasSession(c) };
  return c.html(problemPage(problem, requestId, who), problem.status);
}

function answerError(c: Context<WebEnv>, error: Error, log: EventLog): Response | Promise<Response> {
  if (error instanceof WebError) return answerAs(c, error.problem);
  if (error instanceof HTTPException && error.status < 500)
    return answerAs(c, { status: 400, name: "bad-request", title: "This request is wrong", detail: error.message });
  if (error instanceof UsageError) return answerAs(c, useProblem(error));
  const requestId = c.get("requestId") ?? "";
  if (isRedisOutage(error)) {
    // Without a caller only a sign-out was let in that could be done.
    const mayChange = c.get("caller") !== undefined || c.req.path === "/sign-out";
    const isChange = !isSafe(c) && mayChange;
    const inChange = isApi(c) ? outOfReachInChange : outOfReachInForm;
    const told = isChange ? inChange : outOfReach;
    return answerAs(c, { status: 503, name: "redis-out-of-reach", title: "Redis is out of reach", ...told });
  }
  log.error("web.failed", { requestId, stack: stackOf(error) });
  const detail = `this is a mistake in Syncline; its log has the cause under the request id ${requestId}`;
  return answerAs(c, { status: 500, name: "bug", title: "This failed", detail });
}

/** Without tokens a foreign name that leads to 127.0.0.1 (DNS rebinding) gets nothing. */
async function checkHost(c: Context<WebEnv>, next: () => Promise<void>): Promise<Response | undefined> {
  if (/^(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?$/i.test(c.req.header("host") ?? new URL(c.req.url).host)) {
    await next();
    return undefined;
  }
  const detail = "without --web-tokens this server answers to localhost and 127.0.0.1 only";
  return answerAs(c, { status: 421, name: "wrong-host", title: "Not this name", detail });
}

function addAssets(app: Hono<WebEnv>): void {
  app.get("/assets/:hash/:name", (c) => {
    const asset = assets.get(c.req.param("name"));
    if (asset === undefined) return answerAs(c, unknownPath);
    // The page names an asset with its hash: another content has another address. In a rollout a
    // page of the other version gets ours, and asks again the next time.
    if (asset.path === c.req.path) c.header("cache-control", "public, max-age=31536000, immutable");
    return send(c, asset.body);
  });
}

function askToSignIn(c: Context<WebEnv>): Response | Promise<Response> {
  if (isApi(c) || c.req.path === "/events") throw unauthenticated;
  const { pathname, search } = new URL(c.req.url);
  if (c.req.header("sec-fetch-site") === "cross-site") return comeAgain(c, pathFrom(pathname + search));
  return c.redirect(`/sign-in?next=${encodeURIComponent(pathname + search)}`, 303);
}

/**
 * A browser that a link on another site led here, or a provider, keeps its session's cookie back
 * (SameSite=Strict): the page leads to itself once, and that request has it.
 */
function comeAgain(c: Context<WebEnv>, path: string): Response | Promise<Response> {
  c.header("refresh", `0;url=${path}`);
  return c.html(comeAgainPage(path));
}
