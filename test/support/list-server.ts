// A service of nothing but lists, whose items a test changes at will: `/odata/NAME` in one page, or
// in several by `$skip`, and `/odata/NAME/$count`.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A running one. */
export interface ListServer {
  readonly url: string;
  /**
   * The items of each list, by its name in the path (`approvals`, `trigger`, …); changed in place.
   */
  readonly lists: Record<string, readonly unknown[]>;
  /** The list of each request so far, a count as `NAME/$count`. */
  readonly asked: readonly string[];
  /** What every request is answered with instead, unless 200. */
  status: number;
  /** Called once, after the next first page of several; may set another. */
  afterFirst?: (() => void) | undefined;
  /**
   * Keeps the next request waiting until `release`; answers when it has arrived. What it is told
   * then is what stands in `lists` now.
   */
  hold(): Promise<void>;
  release(): void;
  stop(): Promise<void>;
}

/** Starts it. */
export async function startListServer(
  lists: Record<string, readonly unknown[]>,
  pageSize = Number.POSITIVE_INFINITY,
): Promise<ListServer> {
  let arrived: (() => void) | undefined;
  let held: (() => void) | undefined;
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const [, , name = "", count] = (request.url ?? "").split("?")[0]?.split("/") ?? [];
    asked.push(count === undefined ? name : `${name}/${count}`);
    const items = one.lists[name] ?? [];
    const from = Number(/skip=(\d+)/.exec(request.url ?? "")?.[1] ?? 0);
    const end = from + pageSize;
    const next = end < items.length ? { "@odata.nextLink": `${name}?$skip=${end}` } : {};
    const sendPage = () => {
      const page = { "@odata.context": `$metadata#${name}`, value: items.slice(from, end), ...next };
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(page));
      if (from > 0 || items.length <= pageSize) return;
      const then = one.afterFirst;
      one.afterFirst = undefined;
      then?.();
    };
    const answer = () => {
      if (one.status !== 200) response.writeHead(one.status).end("{}");
      else if (count === "$count") response.writeHead(200, { "content-type": "text/plain" }).end(String(items.length));
      else sendPage();
    };
    if (arrived === undefined) return answer();
    arrived();
    arrived = undefined;
    held = answer;
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const one: ListServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    lists,
    asked,
    status: 200,
    hold: () =>
      new Promise((resolve) => {
        arrived = resolve;
      }),
    release: () => held?.(),
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return one;
}
