// One HTTP exchange from request to last byte: admission, fault, handler, ledger, answer. Called by
// sandbox.ts for every request. Also the sandbox's own paths under `/_sandbox` (ledger, counts,
// faults, approvals, conflicts): NOT part of the service's interface; they require the token, too.

import { hash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { UsageError } from "../core/errors.ts";
import { isJsonObject, parseJson } from "../core/json.ts";
import { type OperationName, parseTarget, type Target } from "./address.ts";
import { type Call, parseRepository, type World } from "./call.ts";
import { createChance } from "./chance.ts";
import { type Fault, FaultPlan, faultEffects, faultsMax, parseFault, type Strike } from "./faults.ts";
import type { Ledger, SetAnswered } from "./ledger.ts";
import { openLink } from "./odata-page.ts";
import {
  cutConnection,
  errorReply,
  jsonReply,
  Refusal,
  type Reply,
  sendDrip,
  sendHalf,
  sendWhole,
  unauthorizedReply,
} from "./reply.ts";
import { findRoute, guardedOperations, type Route } from "./routes.ts";
import { advanceRuns, clearApprovals, clearConflicts } from "./runs.ts";

const bodyBytesMax = 65_536;

// How much of a longer body is read and dropped, so that its sender gets the 413 and not a reset.
const dropBytesMax = 1_048_576;

const tooLongReply = errorReply(413, `A body has at most ${bodyBytesMax} bytes.`, { Connection: "close" });

/** Serves one request to its end. Rejects only on a bug of the sandbox. */
export async function serveExchange(
  context: SandboxContext,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const admitted = await admit(context, request);
  if ("status" in admitted) {
    await sendWhole(response, admitted);
    return;
  }
  const { operation } = admitted.route;
  const strike = context.faults.decide(operation, admitted.key);
  if (strike.delayMs > 0) await context.world.settings.clock.sleep(strike.delayMs, context.signal);
  // A sandbox that stopped meanwhile changes nothing.
  if (context.signal.aborted) return cutConnection(response);
  const effect = strike.fault === undefined ? {} : faultEffects[strike.fault.kind];
  const early = strike.fault && effect.instead?.(strike.fault);
  if (early === "cut") {
    context.ledger.count(operation, "cut");
    return cutConnection(response);
  }
  const reply = early ?? answer(context, request, admitted);
  const setAnswered = recordEffect(context, request, { operation, reply });
  await sendReply(context, response, { operation, reply, strike, setAnswered });
}

/** Runs the handler. */
function answer(context: SandboxContext, request: IncomingMessage, admitted: AdmittedRequest): Reply {
  const { world, ledger } = context;
  const { route, key, target, body } = admitted;
  const { parameters } = target;
  const nowMs = world.settings.clock.nowMs();
  advanceRuns(world.store, world.settings, nowMs);
  try {
    if (ledger.isFull && route.method !== "GET") throw new Refusal(500, "The ledger of the sandbox is full.");
    // The identity reads its own `repository` argument.
    const repository = route.form === "call" ? undefined : parseRepository(parameters, world);
    const call: Call = {
      key,
      parameters,
      repository,
      body: { text: body, contentType: request.headers["content-type"] },
      baseUrl: readOrigin(context, request) + world.settings.basePath,
      nowMs,
    };
    return route.handler(world, call);
  } catch (error) {
    if (error instanceof Refusal) return errorReply(error.status, error.message);
    throw error;
  }
}

function recordEffect(
  context: SandboxContext,
  request: IncomingMessage,
  { operation, reply }: { readonly operation: OperationName; readonly reply: Reply },
): SetAnswered {
  if (reply.effect === undefined) return () => {};
  const key = request.headers["idempotency-key"];
  const idempotencyKey = typeof key === "string" ? key.slice(0, 256) : null;
  const atMs = context.world.settings.clock.nowMs();
  return context.ledger.record({ operation, ...reply.effect, atMs, idempotencyKey });
}

async function sendReply(
  context: SandboxContext,
  response: ServerResponse,
  what: {
    readonly operation: OperationName;
    readonly reply: Reply;
    readonly strike: Strike;
    readonly setAnswered: SetAnswered;
  },
): Promise<void> {
  const { operation, reply, setAnswered } = what;
  const { ledger, signal, world } = context;
  const { fault } = what.strike;
  const answer = fault && faultEffects[fault.kind].answer;
  if (answer === "cut" || answer === "half") {
    ledger.count(operation, "cut");
    return answer === "cut" ? cutConnection(response) : sendHalf(response, reply);
  }
  if (answer === "drip") {
    ledger.count(operation, reply.status);
    const pace = { clock: world.settings.clock, delayMs: fault?.delayMs ?? 200, signal };
    if (await sendDrip(response, reply, pace)) setAnswered("yes");
    return;
  }
  const turned = answer === "500" && reply.status === 200;
  const sent = turned ? errorReply(500, "The server failed after it had done its work.") : reply;
  ledger.count(operation, sent.status);
  // Set before the bytes leave: a caller that has the answer must find the ledger up to date.
  if (!response.destroyed) setAnswered(turned ? "500" : "yes");
  if (!(await sendWhole(response, sent))) setAnswered("lost");
}

function readOrigin(context: SandboxContext, request: IncomingMessage): string {
  const seen = `http://${request.headers.host ?? ""}`;
  return /^http:\/\/[\w.:[\]-]+$/.test(seen) && URL.canParse(seen) ? seen : context.origin;
}

/** A request that passed token, route and rights. */
interface AdmittedRequest {
  readonly route: Route;
  readonly key: string;
  readonly target: Target;
  readonly body: string;
}

/** Checks token, path, method and rights, and reads the body; or returns the refusal. */
async function admit(context: SandboxContext, request: IncomingMessage): Promise<AdmittedRequest | Reply> {
  const { world, ledger } = context;
  const refuse = (reply: Reply, operation: OperationName | "unknown" = "unknown"): Reply => {
    ledger.count(operation, reply.status);
    return reply;
  };
  try {
    const asked = parseTarget(request.url ?? "", world.settings.basePath);
    const target = asked === undefined ? undefined : openLink(asked, world.store.links);
    const rights = readRights(world, request.headers.authorization);
    if (rights === "none") {
      const match = target === undefined ? undefined : findRoute(request.method ?? "", target.segments);
      return refuse(unauthorizedReply, match?.route?.operation);
    }
    if (target === undefined) return refuse(errorReply(404, "There is nothing under this path."));
    if (target.segments[0] === "_sandbox") {
      return answerControl(context, request, { target, body: await readBody(request) });
    }
    const match = findRoute(request.method ?? "", target.segments);
    if (match.route === undefined) return refuse(noRouteReply(match.methods));
    const { operation } = match.route;
    if (rights === "limited" && guardedOperations.has(operation)) return refuse(unauthorizedReply, operation);
    const body = await readBody(request);
    if (body === undefined) return refuse(tooLongReply, operation);
    return { ...match, target, body };
  } catch (error) {
    if (error instanceof Refusal) return refuse(errorReply(error.status, error.message));
    throw error;
  }
}

function noRouteReply(methods: readonly string[]): Reply {
  if (methods.length === 0) return errorReply(404, "There is nothing under this path.");
  return errorReply(405, "The path does not take this method.", { Allow: methods.join(", ") });
}

function readRights(world: World, header: string | undefined): "full" | "limited" | "none" {
  const { token, limitedToken } = world.settings;
  const given = /^bearer ([^\s]+)$/i.exec(header ?? "")?.[1];
  if (given === undefined) return "none";
  if (isSame(given, token)) return "full";
  return limitedToken !== undefined && isSame(given, limitedToken) ? "limited" : "none";
}

function isSame(left: string, right: string): boolean {
  const digest = (text: string) => hash("sha256", text, "buffer");
  return timingSafeEqual(digest(left), digest(right));
}

/** Reads the body as UTF-8; undefined when it is too long. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    const buffer: Buffer = chunk;
    bytes += buffer.length;
    if (bytes > dropBytesMax) return undefined;
    if (bytes <= bodyBytesMax) chunks.push(buffer);
  }
  return bytes > bodyBytesMax ? undefined : Buffer.concat(chunks).toString("utf8");
}

/** The state that all exchanges of one sandbox share. */
export interface SandboxContext {
  readonly world: World;
  readonly ledger: Ledger;
  /** Replaced when faults are set anew. */
  faults: FaultPlan;
  /** Aborts when the sandbox stops, and ends all waits. */
  readonly signal: AbortSignal;
  /** Origin of this sandbox, for a request without a usable Host header. */
  origin: string;
}

/** Answers a request to `/_sandbox/…`. @throws Refusal 400 on a body that cannot be read. */
function answerControl(
  context: SandboxContext,
  request: IncomingMessage,
  { target, body }: { readonly target: Target; readonly body: string | undefined },
): Reply {
  const { store, settings } = context.world;
  switch (`${request.method} ${target.segments.slice(1).join("/")}`) {
    case "GET ledger":
      return jsonReply({ value: context.ledger.entries() });
    case "GET requests":
      return jsonReply(context.ledger.requests());
    case "GET faults":
      return jsonReply({ value: context.faults.counts() });
    case "POST faults":
      replaceFaults(context, readFaults(body));
      return jsonReply({ value: context.faults.counts() });
    case "POST approvals/clear":
    case "POST conflicts/clear": {
      // End due runs first, so that the ends of blocked runs can be told from them.
      advanceRuns(store, settings, settings.clock.nowMs());
      const clear = target.segments[1] === "approvals" ? clearApprovals : clearConflicts;
      return jsonReply({ cleared: clear(store, target.parameters.get("repository") ?? undefined) });
    }
    default:
      return errorReply(
        404,
        "The sandbox has GET ledger, requests, faults and POST faults, approvals/clear, conflicts/clear.",
      );
  }
}

/** Replaces the faults; counting starts anew. */
export function replaceFaults(context: SandboxContext, faults: readonly Fault[]): void {
  context.faults = new FaultPlan(faults, createChance(context.world.settings.seed));
}

function readFaults(body: string | undefined): readonly Fault[] {
  const usage = 'The body must be {"faults": ["latency,ms=500", …]}';
  const value = parseJson(body);
  if (value === undefined) throw new Refusal(400, `${usage}: it is not JSON.`);
  const texts: unknown = isJsonObject(value) ? value["faults"] : undefined;
  if (!Array.isArray(texts) || texts.length > faultsMax) throw new Refusal(400, `${usage}, at most ${faultsMax}.`);
  return texts.map((text: unknown) => {
    if (typeof text !== "string") throw new Refusal(400, `${usage}: a fault is a text.`);
    try {
      return parseFault(text);
    } catch (error) {
      if (error instanceof UsageError) throw new Refusal(400, error.message);
      throw error;
    }
  });
}
