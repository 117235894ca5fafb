// What viewers cost whoever serves them: plain-web-process.ts WEB_PORT TOKENS. Answers at once with
// the bytes that the web server gave, tells all streams of a change at an even pace, and knows no
// Redis. Asked by web-viewers.ts through child.ts.
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, get, type IncomingMessage, type OutgoingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { answerParent } from "./child.ts";
import { viewedLists, viewedPages } from "./web-installation.ts";

const [webPort = "", file = ""] = process.argv.slice(2);
const [token = ""] = readFileSync(file, "utf8").split("\n");
const answers = new Map<string, { readonly headers: OutgoingHttpHeaders; readonly body: Buffer }>();
const streams = new Set<ServerResponse>();
let timer: NodeJS.Timeout | undefined;

const server = createServer(({ url = "" }, response) => {
  if (url === "/events") {
    response.writeHead(200, { "content-type": "text/event-stream" }).write("retry: 5000\n\n");
    streams.add(response);
    response.once("close", () => streams.delete(response));
    return;
  }
  const { headers, body } = answers.get(url) ?? {};
  response.writeHead(body === undefined ? 404 : 200, headers).end(body);
});
server.listen(0, "127.0.0.1");
await once(server, "listening");

answerParent(
  {
    port: () => ({ port: (server.address() as AddressInfo).port }),
    /** Takes over what the web server answers now; a change comes every `everyMs`. */
    begin: async ({ everyMs = 0 }) => {
      for (const path of [...viewedPages, ...viewedLists]) answers.set(path, await read(path));
      clearInterval(timer);
      timer = setInterval(() => {
        for (const stream of streams) stream.write("event: changed\ndata:\n\n");
      }, everyMs);
      return {};
    },
  },
  async () => server.closeAllConnections(),
);

async function read(path: string) {
  const headers = { authorization: `Bearer ${token}`, "accept-encoding": "gzip" };
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    get({ host: "127.0.0.1", port: webPort, path, headers }, resolve).on("error", reject);
  });
  const body = Buffer.concat(await Array.fromAsync(answer, (chunk) => chunk as Buffer));
  const { "transfer-encoding": chunked, ...kept } = answer.headers;
  return { headers: { ...kept, "content-length": body.length }, body };
}
