// Hostile requests to the API and the pages over a real port, and what none of them may do: fail,
// tell of another service or of a secret, show markup, or change something without its record.
import { request } from "node:http";
import fc from "fast-check";
import { systemClock } from "../../src/core/clock.ts";
import { Changes } from "../../src/store/changes.ts";
import { createToken } from "../../src/web/tokens.ts";
import { apiRequests } from "./api-requests.ts";
import { stateOfRedis } from "./redis-state.ts";
import { webForTest } from "./web-fixture.ts";
import { smallStory } from "./web-story.ts";

const callers = {
  reader: createToken({ name: "reader", scope: "read", services: [] }),
  ana: createToken({ name: "ana", scope: "operate", services: [] }),
  boss: createToken({ name: "boss", scope: "admin", services: [] }),
  other: createToken({ name: "other", scope: "admin", services: ["other"] }),
  old: createToken({ name: "old", scope: "admin", services: [], lastDay: "2020-01-01" }),
};
const tokens = Object.values(callers);
const markup = "<script>alert(9)</script>";
const odd = [
  "..",
  "%2e%2e",
  "%00",
  "%ff",
  "%2F",
  "*",
  "{name}",
  "__proto__",
  "constructor",
  "~",
  markup,
  "x".repeat(3_000),
];
const pages = [
  "",
  "policies",
  "policies/invoices",
  "changes",
  "audit",
  "feeds",
  "services",
  "plan",
  "run?of=invoices",
  "pause?of=policy:invoices",
  "sign-in",
  "events",
  "assets",
];

/** What came of all requests: how many had each status, and how many changed something. */
export interface Survived {
  readonly statuses: ReadonlyMap<number, number>;
  readonly changed: number;
}

/** Sends so many requests. @throws with the request, and the seed, that does what it may not. */
export async function surviveHostile(count: number): Promise<Survived> {
  // Time flies, so that no request is refused for being too fast.
  let flownMs = 0;
  const clock = { ...systemClock, monotonicMs: () => (flownMs += 60_000) };
  const web = await webForTest({ story: smallStory, tokens: () => tokens.map(({ line }) => line).join("\n"), clock });
  const { port } = new URL(await web.serve());
  const statuses = new Map<number, number>();
  const changes = new Changes(web.store);
  const recorded = new Set<string>();
  let [changed, sent] = [0, 0];
  let before = await stateOfRedis(web.store);
  await fc.assert(
    fc.asyncProperty(hostileRequest(), async (asked) => {
      const { status, type, id, text } = await send(Number(port), asked);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (status >= 500) throw new Error(`status ${status}: ${text}`);
      for (const { token } of tokens) if (text.includes(token)) throw new Error("the answer holds a token");
      if (/at file:|node_modules|127\.0\.0\.1:\d+\/\d/.test(text)) throw new Error("the answer tells of the process");
      if (type.includes("html") && /<script>alert|<img src=x/.test(text)) throw new Error("markup is not text");
      const isStranger = [callers.other, callers.old].some(
        ({ token }) => asked.headers["authorization"] === `Bearer ${token}`,
      );
      if (isStranger && text.includes("alert(2)")) throw new Error("the answer tells of another service");
      sent += 1;
      // What was refused is looked at with the next ones: a look costs more than a request.
      if (status >= 400 && sent % 20 !== 0) return;
      const after = await stateOfRedis(web.store);
      if (after === before) return;
      before = after;
      changed += 1;
      const newest = await changes.newest(50);
      // One whose connection broke goes on without its caller.
      const fresh = newest.filter(({ from }) => from !== undefined && !recorded.has(from.requestId));
      if (fresh.length === 0) throw new Error(`status ${status} changed something without its record`);
      if (status > 0 && status < 400 && fresh.some((one) => one.from?.requestId === id && one.isBegun))
        throw new Error("a change that was answered has no end in its record");
      for (const { actor, from } of fresh) {
        recorded.add(from?.requestId ?? "");
        if (actor !== "ana" && actor !== "boss") throw new Error(`${actor} changed something`);
      }
    }),
    { numRuns: count, endOnFailure: true },
  );
  return { statuses, changed };
}

interface Hostile {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly isInChunks: boolean;
}

/** A request that the description allows, or one of its wrong ones, or any path; then bent. */
function hostileRequest(): fc.Arbitrary<Hostile> {
  const described = apiRequests({ list: "conflictDetails" }).map(({ method, path, headers, body = "", isWrong }) => ({
    ...{ method: method.toUpperCase(), path, headers, body },
    isChange: method !== "get" && !isWrong,
  }));
  const piece = fc.oneof(fc.constantFrom(...odd, "api", "v1"), fc.webPath(), fc.string({ maxLength: 30 }));
  const loose = fc.record({
    method: fc.constantFrom("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PROPFIND"),
    path: fc
      .oneof(
        fc.constantFrom(...pages),
        fc.array(piece, { maxLength: 5 }).map((parts) => parts.join("/")),
      )
      .map((path) => `/${path}`),
    headers: fc.constant({}),
    body: fc.oneof(fc.constantFrom("", "x".repeat(20_000), "reason=x&name=invoices"), fc.string({ maxLength: 200 })),
  });
  const maybe = <T>(...values: T[]) =>
    fc.oneof({ weight: 9, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: fc.constantFrom(...values) });
  const bent = fc.record({
    query: maybe(
      "after=x",
      "after=%ff",
      `q=${encodeURIComponent(markup)}`,
      "limit=1&limit=2",
      "__proto__=1",
      "page=-1",
      "after=1~%00",
    ),
    segment: maybe(...odd),
    body: maybe(
      "{",
      '{"__proto__":{"reason":"x"}}',
      `{"reason":${JSON.stringify(markup)}}`,
      "[".repeat(5_000),
      "\u0000",
    ),
    headers: fc.record({
      authorization: fc.constantFrom(
        ...tokens.map(({ token }) => `Bearer ${token}`),
        ...Array<string>(8).fill(`Bearer ${callers.ana.token}`),
        `Bearer ${callers.boss.token}x`,
        "Bearer",
        "Basic eDp5",
        undefined,
      ),
      cookie: maybe("__Host-syncline=x", "__Host-syncline=%ff", "a=;;b", "__proto__=1"),
      accept: maybe("text/csv", "application/x-ndjson", "*/*", "%"),
      "if-none-match": maybe("*", 'W/"x"', ","),
      "content-type": maybe(
        "multipart/form-data",
        "application/x-www-form-urlencoded",
        "application/json; charset=utf-16",
        "x",
      ),
      "content-encoding": maybe("gzip", "x"),
      "sec-fetch-site": maybe("same-origin", "cross-site", "same-site", "x"),
      origin: maybe("https://evil.example.com", "null"),
      "x-forwarded-host": maybe("evil.example.com"),
    }),
    isInChunks: fc.boolean(),
  });
  const base = fc.oneof(
    { weight: 2, arbitrary: fc.constantFrom(...described) },
    { weight: 2, arbitrary: fc.constantFrom(...described.filter(({ isChange }) => isChange)) },
    { weight: 1, arbitrary: loose },
  );
  return fc.tuple(base, bent).map(([one, { query, segment, body, headers, isInChunks }]) => {
    const path = segment === undefined ? one.path : one.path.replace(/[^/?]+(?=\?|$)/, () => segment);
    const given = Object.entries({ ...one.headers, ...headers }).filter(
      (pair): pair is [string, string] => pair[1] !== undefined,
    );
    const own =
      "content-type" in one.headers && headers["content-type"] === undefined
        ? { "content-type": "application/json" }
        : {};
    return {
      method: one.method,
      // What Node's client refuses to send is made fit: the rest of it stays as it is.
      path: `${path}${query === undefined ? "" : `${path.includes("?") ? "&" : "?"}${query}`}`.replaceAll(
        /[^\x21-\x7e]/g,
        "%E2",
      ),
      headers: { ...Object.fromEntries(given), ...own },
      body: body ?? one.body,
      isInChunks,
    };
  });
}

/** Status 0: the connection was closed without an answer. */
function send(port: number, { method, path, headers, body, isInChunks }: Hostile) {
  const bodied = body !== "" && method !== "GET" && method !== "HEAD";
  const length = isInChunks || !bodied ? {} : { "content-length": Buffer.byteLength(body) };
  return new Promise<{ status: number; type: string; id: string; text: string }>((resolve) => {
    const asked = request({ host: "127.0.0.1", port, method, path, headers: { ...headers, ...length } }, (answer) => {
      let text = "";
      const type = answer.headers["content-type"] ?? "";
      answer.setEncoding("utf8").on("data", (chunk) => {
        text += chunk;
        // A stream of events never ends by itself.
        if (type === "text/event-stream") answer.destroy();
      });
      const id = String(answer.headers["x-request-id"] ?? "");
      answer.on("close", () => resolve({ status: answer.statusCode ?? 0, type, id, text }));
    });
    asked.on("error", () => resolve({ status: 0, type: "", id: "", text: "" }));
    if (bodied && isInChunks) asked.write(body.slice(0, 1));
    asked.end(bodied ? body.slice(isInChunks ? 1 : 0) : undefined);
  });
}
