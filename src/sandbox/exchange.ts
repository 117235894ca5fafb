// One HTTP exchange from the request to the last byte: admission, fault, handler, ledger, answer.
// Called by sandbox.ts for every request.
import type { IncomingMessage, ServerResponse } from "node:http";
import { type Admitted, admit } from "./admission.ts";
import { type Call, parseRepository } from "./call.ts";
import type { Desk } from "./desk.ts";
import type { Strike } from "./fault-plan.ts";
import type { SetAnswered } from "./ledger.ts";
import type { OperationName } from "./operation-names.ts";
import { errorReply, hollowReply, Refusal, type Reply, unauthorizedReply } from "./reply.ts";
import { settleRuns } from "./runs.ts";
import { cutConnection, sendDrip, sendHalf, sendWhole } from "./send.ts";

/** Serves one request to its end. Never rejects for what a caller did; rejects on a bug of the sandbox. */
export async function serveExchange(desk: Desk, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const admitted = await admit(desk, request);
  if ("status" in admitted) {
    await sendWhole(response, admitted);
    return;
  }
  const { operation } = admitted.route;
  const strike = desk.faults.decide(operation, admitted.key);
  if (strike.delayMs > 0) await desk.world.settings.clock.sleep(strike.delayMs, desk.signal);
  // A sandbox that stopped meanwhile does nothing any more.
  if (desk.signal.aborted) return cutConnection(response);
  const early = replyBefore(strike);
  if (early === "reset") {
    desk.ledger.count(operation, "cut");
    return cutConnection(response);
  }
  const reply = early ?? answer(desk, request, admitted);
  const setAnswered = recordEffect(desk, request, { operation, reply });
  await deliver(desk, response, { operation, reply, strike, setAnswered });
}

/** Lets the handler answer. */
function answer(desk: Desk, request: IncomingMessage, admitted: Admitted): Reply {
  const { world, ledger } = desk;
  const { route, key, target, body } = admitted;
  const { parameters } = target;
  const nowMs = world.settings.clock.nowMs();
  settleRuns(world.store, world.settings, nowMs);
  try {
    if (ledger.isFull && route.method !== "GET") throw new Refusal(500, "The ledger of the sandbox is full.");
    // The identity takes `repository` as an argument and reads it itself.
    const repository = route.form === "call" ? undefined : parseRepository(parameters, world);
    const call: Call = {
      key,
      parameters,
      repository,
      body: { text: body, contentType: request.headers["content-type"] },
      baseUrl: readOrigin(desk, request) + world.settings.basePath,
      nowMs,
    };
    return route.handler(world, call);
  } catch (error) {
    if (error instanceof Refusal) return errorReply(error.status, error.message);
    throw error;
  }
}

function replyBefore({ fault }: Strike): Reply | "reset" | undefined {
  const seconds = fault?.retryAfterSeconds;
  switch (fault?.kind) {
    case "reset":
      return "reset";
    case "401":
      return unauthorizedReply;
    case "429":
      return errorReply(429, "Too many requests.", { "Retry-After": String(seconds ?? 1) });
    case "503":
      return errorReply(503, "Not available.", seconds === undefined ? {} : { "Retry-After": String(seconds) });
    case "200-before":
      return hollowReply;
    case "500-before":
      return errorReply(500, "The server failed before it did anything.");
    default:
      return undefined;
  }
}

function recordEffect(
  desk: Desk,
  request: IncomingMessage,
  { operation, reply }: { readonly operation: OperationName; readonly reply: Reply },
): SetAnswered {
  if (reply.effect === undefined) return () => {};
  const key = request.headers["idempotency-key"];
  const idempotencyKey = typeof key === "string" ? key.slice(0, 256) : null;
  const atMs = desk.world.settings.clock.nowMs();
  return desk.ledger.record({ operation, effect: reply.effect, atMs, idempotencyKey });
}

async function deliver(
  desk: Desk,
  response: ServerResponse,
  what: {
    readonly operation: OperationName;
    readonly reply: Reply;
    readonly strike: Strike;
    readonly setAnswered: SetAnswered;
  },
): Promise<void> {
  const { operation, reply, setAnswered } = what;
  const { ledger, signal, world } = desk;
  const fault = what.strike.fault;
  if (fault?.kind === "lost-answer") {
    ledger.count(operation, "cut");
    return cutConnection(response);
  }
  if (fault?.kind === "truncate") {
    ledger.count(operation, "cut");
    return sendHalf(response, reply);
  }
  if (fault?.kind === "drip") {
    ledger.count(operation, reply.status);
    const pace = { clock: world.settings.clock, delayMs: fault.delayMs ?? 200, signal };
    if (await sendDrip(response, reply, pace)) setAnswered("yes");
    return;
  }
  const turned = fault?.kind === "500-after" && reply.status === 200;
  const sent = turned ? errorReply(500, "The server failed after it had done its work.") : reply;
  ledger.count(operation, sent.status);
  // Set before the bytes leave: whoever has the answer must find the ledger up to date.
  if (!response.destroyed) setAnswered(turned ? "500" : "yes");
  if (!(await sendWhole(response, sent))) setAnswered("lost");
}

function readOrigin(desk: Desk, request: IncomingMessage): string {
  const seen = `http://${request.headers.host ?? ""}`;
  return /^http:\/\/[\w.:[\]-]+$/.test(seen) && URL.canParse(seen) ? seen : desk.origin;
}
