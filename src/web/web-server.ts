// The web server of the role `web`: limits of connections, headers and times around the web
// application. app/create-web.ts starts and stops it; without the role nothing of it is loaded.
import { createServer, type Server } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { UsageError } from "../core/errors.ts";
import { createWebApp, type WebParts } from "./web-app.ts";

/** Where to listen. `port` 0: any free one. */
export interface WebAddress {
  readonly host: string;
  readonly port: number;
}

/** A listening server. */
export interface WebServer {
  readonly port: number;
  stop(): Promise<void>;
}

const requestMsMax = 10_000;
const headerBytesMax = 16_384;
const connectionsMax = 256;

/** Starts the server. @throws UsageError when it cannot listen there. */
export async function startWebServer(address: WebAddress, parts: WebParts): Promise<WebServer> {
  const { fetch } = createWebApp(parts);
  const server = createServer(
    {
      maxHeaderSize: headerBytesMax,
      requestTimeout: requestMsMax,
      headersTimeout: requestMsMax,
      keepAliveTimeout: requestMsMax,
    },
    // With the listener's own `Request` as the global one: hono's body limit copies requests by it.
    getRequestListener(fetch),
  );
  server.maxConnections = connectionsMax;
  const port = await listen(server, address);
  return {
    port,
    stop: () =>
      new Promise((resolve) => {
        parts.live.stop();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function listen(server: Server, { host, port }: WebAddress): Promise<number> {
  return new Promise((resolve, reject) => {
    server.on("error", (error) => {
      const reason = "code" in error ? String(error.code) : error.message;
      reject(new UsageError(`the web server cannot listen on ${host}, port ${port} (${reason}): see --web-port`));
    });
    server.listen(port, host, () => {
      const found = server.address();
      resolve(typeof found === "object" && found !== null ? found.port : port);
    });
  });
}
