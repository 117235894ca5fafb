// The web server of the role `web`: limits of connections, headers and times around the web
// application. app/create-web.ts starts and stops it; without the role nothing of it is loaded.
import { getRequestListener } from "@hono/node-server";
import { type HttpServer, startHttpServer } from "../core/http-server.ts";
import { createWebApp, type WebParts } from "./web-app.ts";

const limits = { requestMsMax: 10_000, headerBytesMax: 16_384, connectionsMax: 256 };

/** Starts the server; `port` 0: any free one. @throws UsageError when it cannot listen there. */
export async function startWebServer(
  address: { readonly host: string; readonly port: number },
  parts: WebParts,
): Promise<HttpServer> {
  const { fetch } = createWebApp(parts);
  const options = { name: "the web server", ...address, ...limits, hint: ": see --web-port" };
  // With the listener's own `Request` as the global one: hono's body limit copies requests by it.
  const server = await startHttpServer(options, getRequestListener(fetch));
  return {
    port: server.port,
    stop: () => {
      parts.live.stop();
      return server.stop();
    },
  };
}
