// An HTTP server with limits of connections, headers and times: the health server (ops/health.ts)
// and the web server (web/web-server.ts) listen by it.
import { createServer, type RequestListener } from "node:http";
import { systemClock, withTimeLimit } from "./clock.ts";
import { UsageError } from "./errors.ts";

/** Where a server listens, and its limits. */
export interface HttpServerOptions {
  /** For the error: `the health server`. */
  readonly name: string;
  /** 0: any free port. */
  readonly port: number;
  /** The address to listen on; undefined: all. */
  readonly host: string | undefined;
  /** How long a request, its headers and an idle connection may take. */
  readonly requestMsMax: number;
  readonly headerBytesMax: number;
  readonly connectionsMax: number;
  /** What to do about a taken port; empty: nothing is said. */
  readonly hint?: string;
}

/** A listening server. */
export interface HttpServer {
  readonly port: number;
  /** Lets answers under way end for two seconds: a caller must not take a done thing for failed. */
  stop(): Promise<void>;
}

const answersEndWithinMs = 2_000;
/** How often connections are closed whose answer has ended since. */
const closeIdleEveryMs = 50;

/** Starts a server. @throws UsageError when the port is taken or not allowed. */
export async function startHttpServer(options: HttpServerOptions, listener: RequestListener): Promise<HttpServer> {
  const { name, port, host, requestMsMax, headerBytesMax, connectionsMax, hint = "" } = options;
  const times = { requestTimeout: requestMsMax, headersTimeout: requestMsMax, keepAliveTimeout: requestMsMax };
  const server = createServer({ maxHeaderSize: headerBytesMax, ...times }, listener);
  server.maxConnections = connectionsMax;
  await new Promise<void>((resolve, reject) => {
    server.on("error", (error) => {
      const reason = "code" in error ? String(error.code) : error.message;
      reject(new UsageError(`${name} cannot listen on ${host ?? "all addresses"}, port ${port} (${reason})${hint}`));
    });
    // Without a host Node takes all addresses, also where the machine has no IPv6.
    server.listen(port, host === "::" ? undefined : host, resolve);
  });
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : port,
    stop: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      const endClosing = systemClock.every(closeIdleEveryMs, () => server.closeIdleConnections());
      await withTimeLimit(closed, answersEndWithinMs, () => new Error("busy")).catch(() =>
        server.closeAllConnections(),
      );
      endClosing();
      await closed;
    },
  };
}

/** Whether a client accepts gzip: by name or else by `*`, and not with a weight of 0. */
export function takesGzip(accepted: string | string[] | undefined): boolean {
  const weights = new Map(
    String(accepted ?? "")
      .split(",")
      .map((one) => {
        const [, name = "", weight = "1"] = /^\s*([^\s;]+)\s*(?:;\s*q=([\d.]+))?\s*$/i.exec(one) ?? [];
        return [name.toLowerCase(), Number(weight)];
      }),
  );
  return (weights.get("gzip") ?? weights.get("*") ?? 0) > 0;
}
