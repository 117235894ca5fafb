// A service with one long list, in a process of its own: items are made from their number, so a
// million cost no memory. Asked by feeds.ts through child.ts. `newestFirst`: the highest number
// stands first, as in a list that grows at its front.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { answerParent } from "./child.ts";

const pageSize = 100;
const startMs = Date.parse("2020-01-01T00:00:00Z");
let items = 0;
let answerAfterMs = 0;
let newestFirst = false;
let itemBytes = 0;
let requests = 0;

const server = createServer((request, response) => {
  requests += 1;
  const { pathname, searchParams } = new URL(request.url ?? "", "http://service");
  const from = Number(searchParams.get("$skip") ?? 0);
  const isCount = pathname.endsWith("/$count");
  const body = isCount ? String(items) : page(pathname, from);
  const answer = () =>
    response.writeHead(200, { "content-type": isCount ? "text/plain" : "application/json" }).end(body);
  if (answerAfterMs > 0) setTimeout(answer, answerAfterMs);
  else answer();
});
server.keepAliveTimeout = 65_000;
server.listen(0, "127.0.0.1");
await once(server, "listening");

answerParent(
  {
    port: () => ({ port: (server.address() as AddressInfo).port }),
    configure: (figures) => {
      items = figures["items"] ?? items;
      answerAfterMs = figures["answerAfterMs"] ?? answerAfterMs;
      itemBytes = figures["itemBytes"] ?? itemBytes;
      newestFirst = (figures["newestFirst"] ?? (newestFirst ? 1 : 0)) > 0;
      return {};
    },
    counts: () => ({ requests }),
  },
  async () => {
    server.closeAllConnections();
    server.close();
  },
);

function page(pathname: string, from: number): string {
  const rows: string[] = [];
  const end = Math.min(from + pageSize, items);
  for (let index = from; index < end; index += 1) rows.push(item(newestFirst ? items - index : index + 1));
  const { port } = server.address() as AddressInfo;
  const link = end < items ? `,"@odata.nextLink":"http://127.0.0.1:${port}${pathname}?$skip=${end}"` : "";
  return `{"value":[${rows.join(",")}]${link}}`;
}

/** Four texts make an item as long as asked for. */
function item(number: number): string {
  const at = new Date(startMs + number * 60_000).toISOString();
  const plain = `"activityId":${number},"syncJobId":${number % 500},"state":"Finished","startedAt":"${at}","finishedAt":"${at}","itemsProcessed":${number % 977}`;
  const text = "Übertragen ".repeat(itemBytes / 44 + 1).slice(0, Math.max(0, itemBytes - plain.length - 62) / 4);
  return `{${plain},"sourcePath":"${text}","targetPath":"${text}","message":"${text}","details":"${text}"}`;
}
