// The health server for a kubelet: GET and HEAD only, no bodies, small limits, no secrets in
// answers. cli/serve.ts starts it first and stops it last. `/livez` says only that the event loop
// turns: a process that waits for Redis must not be killed for it. `/readyz` says whether the
// process does its work.
import type { IncomingMessage, ServerResponse } from "node:http";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { type HttpServer, startHttpServer, takesGzip } from "../core/http-server.ts";

/** Whether a process does its work, and if not, why. */
export interface Readiness {
  readonly ready: boolean;
  /** Empty when ready. `part`: redis, policies, role or process. */
  readonly reasons: readonly { readonly part: string; readonly reason: string }[];
  /** Further facts, such as roles and number of policies. */
  readonly facts: Readonly<Record<string, string | number | readonly string[]>>;
}

/** What a route returns. */
interface HealthAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** What the server needs. */
export interface HealthOptions {
  /** 0: any free port. */
  readonly port: number;
  /** The address to listen on; default all, since a kubelet comes from outside. */
  readonly host?: string | undefined;
  readonly readiness: () => Readiness;
  /** Further routes by path, such as `/metrics`. */
  readonly routes?: Readonly<Record<string, () => Promise<HealthAnswer> | HealthAnswer>>;
}

const limits = { requestMsMax: 5_000, headerBytesMax: 8_192, connectionsMax: 64 };
/** Longer answers are compressed for clients that accept it; in practice only /metrics. */
const compressedFrom = 1_024;

const compress = promisify(gzip);

/** Starts the server. @throws UsageError when the port is taken or not allowed. */
export async function startHealthServer(options: HealthOptions): Promise<HttpServer> {
  const routes: NonNullable<HealthOptions["routes"]> = {
    "/livez": () => ({ status: 200, contentType: "text/plain", body: "ok\n" }),
    "/readyz": () => toAnswer(options.readiness()),
    ...options.routes,
  };
  const { port, host } = options;
  return startHttpServer({ name: "the health server", port, host, ...limits }, (request, response) => {
    // Discards the request's body.
    request.resume();
    answer(request, routes)
      .catch(() => ({ status: 500, contentType: "text/plain", body: "this failed\n" }))
      .then((given) => send(request, response, given))
      .catch(() => response.destroy());
  });
}

async function answer(request: IncomingMessage, routes: NonNullable<HealthOptions["routes"]>): Promise<HealthAnswer> {
  const path = (request.url ?? "").split("?", 1)[0] ?? "";
  const route = Object.hasOwn(routes, path) ? routes[path] : undefined;
  if (route === undefined)
    return { status: 404, contentType: "text/plain", body: `there is ${Object.keys(routes).join(", ")}\n` };
  if (request.method !== "GET" && request.method !== "HEAD")
    return { status: 405, contentType: "text/plain", body: "GET and HEAD only\n" };
  return route();
}

async function send(
  request: IncomingMessage,
  response: ServerResponse,
  { status, contentType, body }: HealthAnswer,
): Promise<void> {
  const isLong = body.length >= compressedFrom;
  const isCompressed = isLong && takesGzip(request.headers["accept-encoding"]);
  const bytes = isCompressed ? await compress(body) : Buffer.from(body);
  response.writeHead(status, {
    "content-type": `${contentType}; charset=utf-8`,
    "content-length": bytes.length,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    ...(isLong ? { vary: "accept-encoding" } : {}),
    ...(isCompressed ? { "content-encoding": "gzip" } : {}),
    ...(status === 405 ? { allow: "GET, HEAD" } : {}),
  });
  response.end(request.method === "HEAD" ? undefined : bytes);
}

function toAnswer({ ready, reasons, facts }: Readiness): HealthAnswer {
  const body = `${JSON.stringify({ ready, reasons, ...facts })}\n`;
  return { status: ready ? 200 : 503, contentType: "application/json", body };
}
