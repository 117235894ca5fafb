// A service that costs next to nothing, in a process of its own: fake-service.ts. Starts are
// counted, runs appear in the activities at once and finish when told to; nothing is checked. Asked
// by the benchmarks through child.ts.
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { answerParent } from "./child.ts";
import { monotonicMs } from "./redis-figures.ts";

interface Run {
  readonly activityId: string;
  readonly syncJobId: string;
  readonly atMs: number;
}

const pageSize = 100;
const runs: Run[] = [];
const arrivals = new Map<string, number>();
let starts = 0;
let lists = 0;
let answerAfterMs = 0;
let isHanging = false;
/** How long runs take; negative: they do not end. */
let runMs = 0;

const server = createServer((request, response) => {
  request.resume();
  const url = request.url ?? "";
  const isStart = request.method === "POST";
  if (isStart) starts += 1;
  else lists += 1;
  // What hangs has done what was asked all the same: only its answer is missing.
  if (isStart) noteStart(url, request.headers["idempotency-key"]);
  if (isHanging) return;
  if (isStart) {
    later(() => response.writeHead(200).end());
  } else {
    later(() => sendPage(url, response));
  }
});
server.keepAliveTimeout = 65_000;
server.listen(0, "127.0.0.1");
await once(server, "listening");

answerParent(
  {
    port: () => ({ port: (server.address() as AddressInfo).port }),
    configure: (figures) => {
      answerAfterMs = figures["answerAfterMs"] ?? answerAfterMs;
      runMs = figures["runMs"] ?? runMs;
      isHanging = (figures["hang"] ?? (isHanging ? 1 : 0)) > 0;
      return {};
    },
    counts: () => ({ starts, lists, runs: runs.length }),
    forget: () => {
      runs.length = 0;
      arrivals.clear();
      return {};
    },
    /** When the starts since the last look arrived, by idempotency key, on the monotonic clock. */
    arrivals: () => {
      const seen = Object.fromEntries(arrivals);
      arrivals.clear();
      return seen;
    },
    /** Cuts every open connection. */
    drop: () => {
      server.closeAllConnections();
      return {};
    },
  },
  async () => {
    server.closeAllConnections();
    server.close();
  },
);

function later(answer: () => void): void {
  if (answerAfterMs > 0) setTimeout(answer, answerAfterMs);
  else answer();
}

function noteStart(url: string, key: string | string[] | undefined): void {
  const syncJobId = /\((\d+)\)/.exec(url)?.[1] ?? "0";
  runs.push({ activityId: `a${starts}`, syncJobId, atMs: Date.now() });
  if (typeof key === "string") arrivals.set(key, monotonicMs());
}

function sendPage(url: string, response: ServerResponse): void {
  const { pathname, searchParams } = new URL(url, "http://service");
  const from = Number(searchParams.get("$skip") ?? 0);
  const all = pathname.endsWith("/synchronizationactivities") ? runs : [];
  const nowMs = Date.now();
  const value = all.slice(from, from + pageSize).map(({ activityId, syncJobId, atMs }) => ({
    activityId,
    syncJobId,
    state: runMs >= 0 && nowMs - atMs >= runMs ? "Finished" : "Running",
  }));
  const next = from + pageSize < all.length ? { "@odata.nextLink": nextLink(pathname, searchParams, from) } : {};
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ value, ...next }));
}

function nextLink(pathname: string, searchParams: URLSearchParams, from: number): string {
  const query = new URLSearchParams(searchParams);
  query.set("$skip", String(from + pageSize));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}${pathname}?${query}`;
}
