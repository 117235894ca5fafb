// The web server of the role `web`: limits of connections, headers and times around the web
// application. app/create-web.ts starts and stops it; without the role nothing of it is loaded.
import { getRequestListener } from "@hono/node-server";
import { errorText } from "../core/errors.ts";
import { type HttpServer, startHttpServer } from "../core/http-server.ts";
import { readAttention } from "../queries/attention.ts";
import { readAhead } from "./answer-cache.ts";
import { hoursAhead } from "./pages/next-day.ts";
import { createAnswerCache, createWebApp, type WebParts } from "./web-app.ts";

/** More often than the time ahead needs to be renewed. */
const readAheadEveryMs = 30_000;
const limits = { requestMsMax: 10_000, headerBytesMax: 16_384, connectionsMax: 256 };

/**
 * Starts the server; `port` 0: any free one. It reads all policies first, and the time ahead while
 * it is in use: the first look at thousands of policies costs as little as a later one.
 * @throws UsageError when it cannot listen there.
 */
export async function startWebServer(
  address: { readonly host: string; readonly port: number },
  parts: WebParts,
): Promise<HttpServer> {
  const cache = createAnswerCache(parts);
  const { fetch } = createWebApp(parts, cache);
  await readAttention(parts.context()).catch((error: unknown) =>
    // The page that reads the same tells it; a process with other roles works on.
    parts.log.warn("web.read-ahead-failed", { message: errorText(error) }),
  );
  const options = { name: "the web server", ...address, ...limits, hint: ": see --web-port" };
  // The listener makes its own `Request` the global one: hono's body limit copies requests with it.
  const server = await startHttpServer(options, getRequestListener(fetch));
  // What fails here fails for the page, too, and is told there.
  const read = () => void readAhead(cache, parts.context(), hoursAhead).catch(() => {});
  const endReading = parts.clock.every(readAheadEveryMs, read);
  read();
  return {
    port: server.port,
    stop: () => {
      endReading();
      parts.live.stop();
      return server.stop();
    },
  };
}
