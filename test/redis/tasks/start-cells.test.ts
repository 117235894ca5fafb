// The column of starts in docs/outcomes.md, walked over real HTTP and a real journal: what the
// server does, what becomes of the start.
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { silentLog } from "../../../src/core/event-log.ts";
import type { Task } from "../../../src/model/task.ts";
import { SyncService, staticToken } from "../../../src/service/client.ts";
import { History } from "../../../src/store/history.ts";
import { redisTimeMs } from "../../../src/store/redis.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { feedOf, requestLists } from "../../../src/tasks/followed-lists.ts";
import type { ProcessDependencies } from "../../../src/tasks/process-task.ts";
import { createProcessTask } from "../../../src/tasks/process-task.ts";
import { createRecorder } from "../../../src/tasks/recorder.ts";
import { sendStart } from "../../../src/tasks/send-start.ts";
import { testPolicy } from "../../support/policies.ts";
import { redisForTest, storeForTest } from "../../support/redis.ts";
import { testDeps } from "../../support/task-deps.ts";

const target = redisForTest();

const store = await storeForTest(target);
const journal = new StartJournal(store);

type Answer = (response: ServerResponse) => void;

/** What a start meets beside the server; no stop and the usual wait unless set. */
interface Moment {
  readonly stopping?: AbortSignal;
  readonly secureConnectMs?: number;
}

/** A server that does one thing to every POST, and how many arrived. */
async function serve(answer: Answer): Promise<{ url: string; arrived: () => number }> {
  let arrived = 0;
  const server = createServer((_request, response) => {
    arrived += 1;
    answer(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, arrived: () => arrived };
}

function partsOver(
  baseUrl: string,
  { stopping = new AbortController().signal, secureConnectMs = 5_000 }: Moment = {},
): ProcessDependencies {
  const timeouts = { requestMs: 4_500, secureConnectMs };
  const service = new SyncService({ baseUrl, token: staticToken("secret"), timeouts });
  onTestFinished(() => service.close());
  return testDeps(store, {
    service: () => service,
    journal,
    stopping,
  });
}

const status = (code: number, headers: Record<string, string> = {}): Answer => {
  return (response) => response.writeHead(code, headers).end();
};
const cutAfter = (bytes: string): Answer => {
  return (response) => response.socket?.write(bytes, () => response.socket?.resetAndDestroy());
};

// A short name for what becomes of a start: its step, and the journal's state afterwards.
const accepted = "accepted";
const refused = "end not-started refused, journal sending";
const noAccess = "end not-started no-access, journal sending";
const waits = "snooze, journal claimed";
const verifies = "snooze, journal sending";
const retries = "retry not-started unreachable, journal claimed";

const cells: readonly (readonly [what: string, answer: Answer, becomes: string])[] = [
  ["200", status(200), accepted],
  ["202", status(202), accepted],
  ["204", status(204), accepted],
  ["200, then cut in its body", cutAfter("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf"), accepted],
  ["200, then cut after its body", cutAfter("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfull"), accepted],
  ["a login page", (response) => response.writeHead(200, { "content-type": "text/html" }).end("<html>"), verifies],
  ["half a login page", cutAfter("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 99\r\n\r\n"), verifies],
  [
    "a text that is called HTML",
    (response) => response.writeHead(200, { "content-type": "text/html" }).end("ok"),
    accepted,
  ],
  ["200 with an error object", (response) => response.end('{"error":{"code":"1"}}'), verifies],
  ["200 with an error text", (response) => response.end('{"error":"no"}'), verifies],
  ["302", status(302, { location: "/login" }), verifies],
  ["303", status(303, { location: "/done" }), verifies],
  ["308", status(308, { location: "/else" }), verifies],
  ["400", status(400), refused],
  ["401", status(401), noAccess],
  ["403", status(403), noAccess],
  ["404", status(404), verifies],
  ["408", status(408), verifies],
  ["409", status(409), verifies],
  ["412", status(412), verifies],
  ["429", status(429), waits],
  ["429 with Retry-After", status(429, { "retry-after": "7" }), waits],
  ["500", status(500), verifies],
  ["502", status(502), verifies],
  ["503", status(503), verifies],
  ["503 with Retry-After", status(503, { "retry-after": "7" }), waits],
  ["504", status(504), verifies],
  ["500, then cut", cutAfter("HTTP/1.1 500 Bad\r\ncontent-length: 100\r\n\r\nhalf"), verifies],
  ["a reset before any answer", (response) => response.socket?.resetAndDestroy(), verifies],
  ["a close before any answer", (response) => response.socket?.end(), verifies],
  ["half of a head", cutAfter("HTTP/1.1 200 O"), verifies],
  ["no answer in time", () => {}, verifies],
];

let tasks = 0;

async function start(kind: "run" | "activate", baseUrl: string, moment?: Moment) {
  tasks += 1;
  const task: Task = {
    v: 1,
    id: `cell-${tasks}`,
    kind,
    policy: "nightly",
    service: "main",
    repository: null,
    target: "42",
    slotMs: 0,
    origin: "manual",
    covers: [],
    startByMs: 9_999_999_999_999,
  };
  const claim = { claimant: "me", entry: await journal.claim(task.id, "me") };
  const deps = partsOver(baseUrl, moment);
  const step = await sendStart(task, { deps, claim, baseline: "", isEndedByAnswer: true });
  const entry = await journal.entry(task.id);
  const ending = "ending" in step ? ` ${step.ending?.status} ${step.ending?.reason}` : "";
  return { step, text: `${step.verdict === "complete" ? "end" : step.verdict}${ending}, journal ${entry?.state}` };
}

/**
 * An activation that is accepted has succeeded; nothing else differs. The outcome brings the answer
 * to the journal (store/history.ts).
 */
const becomesOf = (becomes: string, kind: "run" | "activate") =>
  becomes === accepted ? `end ${kind === "run" ? "accepted" : "succeeded"} answered, journal sending` : becomes;

describe.each(["run", "activate"] as const)("a start (%s) that meets", (kind) => {
  it.each(cells)("%s", async (_what, answer, becomes) => {
    const { url, arrived } = await serve(answer);
    expect((await start(kind, url)).text).toBe(becomesOf(becomes, kind));
    expect(arrived()).toBe(1);
  });

  it.each([
    ["a name that nobody knows", "http://nowhere.invalid"],
    ["a port that nobody listens on", "http://127.0.0.1:1"],
  ])("%s surely was not sent", async (_what, url) => {
    expect((await start(kind, url)).text).toBe(retries);
  });

  it("a server without TLS where TLS is meant surely was not sent", async () => {
    const { url, arrived } = await serve(status(200));
    expect((await start(kind, url.replace("http:", "https:"))).text).toBe(retries);
    expect(arrived()).toBe(0);
  });

  it("a server that is silent where TLS is meant surely was not sent", async () => {
    const silent = createTcpServer(() => {});
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void silent.close());
    const url = `https://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    expect((await start(kind, url, { secureConnectMs: 300 })).text).toBe(retries);
  });

  it("a shutdown is not sent", async () => {
    const { url, arrived } = await serve(status(200));
    expect((await start(kind, url, { stopping: AbortSignal.abort() })).text).toBe("snooze, journal claimed");
    expect(arrived()).toBe(0);
  });

  it("a Retry-After waits as long as it says", async () => {
    const { url } = await serve(status(429, { "retry-after": "7" }));
    const beforeMs = await redisTimeMs(store);
    const { step } = await start(kind, url);
    const untilMs = step.verdict === "snooze" ? step.untilMs : 0;
    expect(untilMs - beforeMs).toBeGreaterThanOrEqual(7_000);
    expect(untilMs - beforeMs).toBeLessThan(17_000);
  });
});

describe("a start whose client is closed while it is under way", () => {
  it("is verified and not sent again: the request may have arrived (P2)", async () => {
    let close = () => {};
    const { url } = await serve(() => close());
    const service = new SyncService({ baseUrl: url, token: staticToken("secret") });
    close = () => service.close();
    const deps = { ...partsOver(url), service: () => service };
    const task = { v: 1, id: "closed", kind: "run", policy: "nightly", service: "main", repository: null } as const;
    const whole: Task = {
      ...task,
      target: "42",
      slotMs: 0,
      origin: "manual",
      covers: [],
      startByMs: 9_999_999_999_999,
    };
    const claim = { claimant: "me", entry: await journal.claim("closed", "me") };
    const step = await sendStart(whole, { deps, claim, baseline: "", isEndedByAnswer: true });
    expect(step.verdict).toBe("snooze");
    expect(await journal.entry("closed")).toMatchObject({ state: "sending", doubt: { kind: "answer-lost" } });
  });
});

describe("a start that waits for its token when its worker is told to stop", () => {
  it("waits no longer, sends nothing and takes its permission back", async () => {
    const { url, arrived } = await serve(status(200));
    const waiting: (AbortSignal | undefined)[] = [];
    const get = (signal?: AbortSignal) =>
      new Promise<string>((_, reject) => {
        waiting.push(signal);
        signal?.addEventListener("abort", () => reject(new Error("stopped")));
      });
    const service = new SyncService({ baseUrl: url, token: { get, renew: async () => "" } });
    onTestFinished(() => service.close());
    const stop = new AbortController();
    const deps = testDeps(store, { service: () => service, journal, stopping: stop.signal });
    const task: Task = {
      ...{ v: 1, id: "no-token", kind: "run", policy: "nightly", service: "main", repository: null, target: "42" },
      ...{ slotMs: 0, origin: "manual", covers: [], startByMs: 9_999_999_999_999 },
    };
    const claim = { claimant: "me", entry: await journal.claim(task.id, "me") };
    const step = sendStart(task, { deps, claim, baseline: "", isEndedByAnswer: true });
    await expect.poll(() => waiting.length).toBe(1);
    stop.abort();
    expect(waiting[0]?.aborted).toBe(true);
    expect((await step).verdict).toBe("snooze");
    expect(arrived()).toBe(0);
    expect(await journal.entry(task.id)).toMatchObject({ state: "claimed", sends: 0 });
  });
});

describe("a start whose answer is its end", () => {
  it("waits for no feed, although another worker registered a wait in its name", async () => {
    const { url } = await serve((response) => void response.end());
    const timeouts = { requestMs: 10_000 };
    const service = new SyncService({ baseUrl: url, token: staticToken("secret"), timeouts });
    onTestFinished(() => service.close());
    const policy = testPolicy({ follow: { ...testPolicy().follow, until: "accepted" } });
    const deps = testDeps(store, { service: () => service, policy: () => policy, journal });
    const task: Task = {
      ...{ v: 1, id: "slow", kind: "run", policy: "nightly", service: "slow", repository: null, target: "42" },
      ...{ slotMs: 0, origin: "manual", covers: [], startByMs: 9_999_999_999_999 },
    };
    const nowMs = await redisTimeMs(store);
    await requestLists(task, deps, { nowMs, hurry: true });
    const process = createProcessTask(deps, createRecorder(new History(store), silentLog));
    const attempt = { attempt: 1, attemptsMax: 8, signal: new AbortController().signal };
    expect(await process(task, attempt)).toMatchObject({ verdict: "complete" });
    expect(await deps.feeds.waiting(feedOf(task, "activities"), nowMs)).toBe(0);
  });
});
