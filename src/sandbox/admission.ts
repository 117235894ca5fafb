// The first half of an exchange: token, path, method, rights, body. Ends it early with 401, 404, 405 or 413, and lets
// `/_sandbox` answer. Called by exchange.ts; changes nothing.
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { World } from "./call.ts";
import { answerControl } from "./control.ts";
import type { Desk } from "./desk.ts";
import type { OperationName } from "./operation-names.ts";
import { parseTarget, type Target } from "./path.ts";
import { errorReply, Refusal, type Reply, unauthorizedReply } from "./reply.ts";
import { findRoute, guardedOperations, type Route } from "./routes.ts";

/** The longest request body, in bytes. Source: service-interface §8 names none. */
const bodyBytesMax = 65_536;

// What is read and dropped of a longer body, so that its sender reads the 413 rather than a reset.
const dropBytesMax = 1_048_576;

/** A request that passed token, route and rights. */
export interface Admitted {
  readonly route: Route;
  readonly key: string;
  readonly target: Target;
  readonly body: string;
}

/** Checks token, path, method and rights and reads the body; gives a reply when that ends the exchange. */
export async function admit(desk: Desk, request: IncomingMessage): Promise<Admitted | Reply> {
  const { world, ledger } = desk;
  const refuse = (reply: Reply, operation: OperationName | "unknown" = "unknown"): Reply => {
    ledger.count(operation, reply.status);
    return reply;
  };
  try {
    const target = parseTarget(request.url ?? "", world.settings.basePath);
    const rights = readRights(world, request.headers.authorization);
    if (rights === "none") {
      const match = target === undefined ? undefined : findRoute(request.method ?? "", target.segments);
      return refuse(unauthorizedReply, match?.route?.operation);
    }
    if (target === undefined) return refuse(errorReply(404, "There is nothing under this path."));
    if (target.segments[0] === "_sandbox") {
      return answerControl(desk, request, { target, body: await readBody(request) });
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

const tooLongReply = errorReply(413, `A body has at most ${bodyBytesMax} bytes.`, { Connection: "close" });

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
  const digest = (text: string) => createHash("sha256").update(text).digest();
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
