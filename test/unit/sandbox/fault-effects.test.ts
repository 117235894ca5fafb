// What each kind of fault does to a real connection, and what the ledger says afterwards.
import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { parseFault } from "../../../src/sandbox/faults.ts";
import type { Sandbox } from "../../../src/sandbox/sandbox.ts";
import { freshSandbox, handClock, send } from "./caller.ts";

const run = "POST /api/syncjobs/run(3)";

/**
 * Sends a request over a bare socket and returns every byte until the connection ends, and how it
 * ended.
 */
async function raw(
  sandbox: Sandbox,
  line: string,
): Promise<{ readonly text: string; readonly error: string | undefined }> {
  const [method, path] = line.split(" ");
  const { port, host } = new URL(sandbox.baseUrl);
  const socket = connect(Number(port), "127.0.0.1");
  const head = [`${method} ${path} HTTP/1.1`, `Host: ${host}`, `Authorization: Bearer ${sandbox.token}`];
  socket.write(`${[...head, "Content-Length: 0", "Connection: close"].join("\r\n")}\r\n\r\n`);
  let text = "";
  let error: string | undefined;
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
  });
  socket.on("error", (failure: NodeJS.ErrnoException) => {
    error = failure.code;
  });
  await new Promise((resolve) => socket.once("close", resolve));
  return { text, error };
}

const answers = (sandbox: Sandbox) => sandbox.ledger().map((entry) => entry.answered);

describe("faults on a run", () => {
  it.each([
    ["401", 401, null],
    ["429", 429, "1"],
    ["429,retryAfter=7", 429, "7"],
    ["503", 503, null],
    ["503,retryAfter=0", 503, "0"],
    ["500-before", 500, null],
  ])("%s answers %i and changes nothing", async (text, status, retryAfter) => {
    const sandbox = await freshSandbox({ faults: [parseFault(text)] });
    const answer = await send(sandbox, run);
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([status, retryAfter]);
    if (status === 401) expect(answer.text).toBe("");
    else expect(answer.json.error.message).toEqual(expect.any(String));
    expect(sandbox.ledger()).toEqual([]);
    expect(sandbox.requests()).toEqual({ RunSyncJob: { [status]: 1 } });
  });

  it("200-before answers as if it had started the run and changes nothing", async () => {
    const sandbox = await freshSandbox({ faults: [parseFault("200-before,op=RunSyncJob,first=1")] });
    const answer = await send(sandbox, run);
    expect([answer.status, answer.text]).toEqual([200, ""]);
    expect(sandbox.ledger()).toEqual([]);
    expect((await send(sandbox, run)).status).toBe(200);
    expect(sandbox.ledger()).toHaveLength(1);
  });

  it("500-after starts the run and answers 500", async () => {
    const sandbox = await freshSandbox({ faults: [parseFault("500-after")] });
    expect((await send(sandbox, run)).status).toBe(500);
    expect(answers(sandbox)).toEqual(["500"]);
    expect((await send(sandbox, "POST /api/syncjobs/run(99)")).status).toBe(400);
  });

  it("reset starts nothing and resets the connection", async () => {
    const sandbox = await freshSandbox({ faults: [parseFault("reset")] });
    expect(await raw(sandbox, run)).toEqual({ text: "", error: "ECONNRESET" });
    expect(sandbox.ledger()).toEqual([]);
    expect(sandbox.requests()).toEqual({ RunSyncJob: { cut: 1 } });
  });

  it("lost-answer starts the run and resets the connection", async () => {
    const sandbox = await freshSandbox({ faults: [parseFault("lost-answer,op=RunSyncJob")], activities: 0 });
    expect(await raw(sandbox, run)).toEqual({ text: "", error: "ECONNRESET" });
    expect((await send(sandbox, "GET /odata/synchronizationactivities")).json.value).toHaveLength(1);
    expect(answers(sandbox)).toEqual(["lost"]);
  });

  it("truncate on an empty answer cuts the status line", async () => {
    const sandbox = await freshSandbox({ faults: [parseFault("truncate")] });
    const { text } = await raw(sandbox, run);
    expect(text).toBe("HTTP/1.1 200");
    expect(answers(sandbox)).toEqual(["lost"]);
  });

  it("latency delays the start, which happens also when the caller has gone", async () => {
    const clock = handClock();
    const waiting = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<number>();
    const sleep = (durationMs: number) => {
      asked.resolve(durationMs);
      return waiting.promise;
    };
    const sandbox = await freshSandbox({ clock: { ...clock, sleep }, faults: [parseFault("latency,ms=300,times=1")] });
    const caller = new AbortController();
    const sent = send(sandbox, run, { signal: caller.signal });
    expect(await asked.promise).toBe(300);
    expect(sandbox.ledger()).toEqual([]);
    caller.abort();
    await expect(sent).rejects.toThrow();
    // By the second answer to others, the server has seen that this caller hung up.
    for (let times = 0; times < 2; times += 1) await send(sandbox, "GET /_sandbox/requests");
    waiting.resolve();
    await expect.poll(() => answers(sandbox)).toEqual(["lost"]);
  });
});

describe("faults on a list", () => {
  const list = "GET /odata/trigger";

  it("truncate sends half of the body under the whole length", async () => {
    const sandbox = await freshSandbox();
    const whole = (await send(sandbox, list)).text;
    sandbox.setFaults([parseFault("truncate,op=GetTriggers")]);
    const { text } = await raw(sandbox, list);
    const [head = "", body] = text.split("\r\n\r\n");
    expect(head).toContain(`Content-Length: ${whole.length}`);
    expect(body).toBe(whole.slice(0, Math.floor(whole.length / 2)));
    await expect(send(sandbox, list)).rejects.toThrow();
  });

  it("drip sends the body byte by byte, whole in the end", async () => {
    const sandbox = await freshSandbox();
    const whole = (await send(sandbox, list)).text;
    sandbox.setFaults([parseFault("drip,ms=1")]);
    const started = performance.now();
    expect((await send(sandbox, list)).text).toBe(whole);
    expect(performance.now() - started).toBeGreaterThan(whole.length * 0.9);
  });

  it("stopping ends a drip and a latency at once", async () => {
    const sandbox = await freshSandbox({
      faults: ["drip,ms=60000,op=GetTriggers", "latency,ms=60000,op=GetApprovals"].map(parseFault),
    });
    const both = Promise.allSettled([send(sandbox, list), send(sandbox, "GET /odata/approvals")]);
    await expect.poll(() => sandbox.requests()).toEqual({ GetTriggers: { 200: 1 } });
    await sandbox.stop();
    expect((await both).map((one) => one.status)).toEqual(["rejected", "rejected"]);
    await sandbox.stop();
  });
});

describe("the ledger", () => {
  it("tells every change with key, repository, instant, run number and idempotency key", async () => {
    const clock = handClock();
    const sandbox = await freshSandbox({ clock });
    await send(sandbox, "POST /api/syncjobs/run/03", { headers: { "Idempotency-Key": "abc" } });
    clock.advance(10_000);
    sandbox.setFaults([parseFault("lost-answer,op=RunSyncJob,every=2")]);
    await send(sandbox, run);
    await expect(send(sandbox, run)).rejects.toThrow();
    await send(sandbox, "POST /api/syncjobs/activate(20)");
    await send(sandbox, "PUT /odata/syncjobsdocmasks(1)", { body: { name: "x" } });
    await send(sandbox, "GET /odata/trigger");
    const start = { operation: "RunSyncJob", key: "3", repository: "HR", atMs: Date.UTC(2026, 10, 21, 2, 30, 10) };
    const rest = { idempotencyKey: null, answered: "yes", runNumber: null };
    const ledger = [
      { ...start, number: 1, atMs: start.atMs - 10_000, runNumber: 1, idempotencyKey: "abc", answered: "yes" },
      { ...start, ...rest, number: 2, runNumber: 2 },
      { ...start, ...rest, number: 3, runNumber: 3, answered: "lost" },
      { ...start, ...rest, number: 4, operation: "EnableSyncJobById", key: "20", repository: "FIN" },
      { ...start, ...rest, number: 5, operation: "UpdateEcmDocumentMaskById", key: "1" },
    ];
    expect(sandbox.ledger()).toEqual(ledger);
    expect((await send(sandbox, "GET /_sandbox/ledger")).json).toEqual({ value: ledger });
    expect((await send(sandbox, "GET /_sandbox/requests")).json).toEqual({
      RunSyncJob: { 200: 2, cut: 1 },
      EnableSyncJobById: { 200: 1 },
      UpdateEcmDocumentMaskById: { 200: 1 },
      GetTriggers: { 200: 1 },
    });
  });

  it("is shown only with the token", async () => {
    const sandbox = await freshSandbox();
    for (const line of ["GET /_sandbox/ledger", "GET /_sandbox/requests", "POST /_sandbox/faults"]) {
      expect((await send(sandbox, line, { token: null })).status).toBe(401);
    }
  });
});

describe("POST /_sandbox/faults", () => {
  it("replaces the faults and shows their counts", async () => {
    const sandbox = await freshSandbox({ faults: [parseFault("500-before")] });
    const body = { faults: ["429,op=GetTriggers,every=2"] };
    await send(sandbox, "POST /_sandbox/faults", { body });
    const statuses = [await send(sandbox, "GET /odata/trigger"), await send(sandbox, "GET /odata/trigger")];
    expect(statuses.map((answer) => answer.status)).toEqual([200, 429]);
    expect((await send(sandbox, "GET /_sandbox/faults")).json.value).toEqual([
      { fault: { kind: "429", operation: "GetTriggers", every: 2 }, matched: 2, struck: 1 },
    ]);
  });

  it.each([
    ["{", "it is not JSON"],
    ["[]", "The body must be"],
    ['{"faults":[5]}', "a fault is a text"],
    ['{"faults":["rest"]}', 'did you mean "reset"'],
  ])("refuses %s and keeps the faults", async (rawBody, message) => {
    const sandbox = await freshSandbox({ faults: [parseFault("500-before")] });
    const answer = await send(sandbox, "POST /_sandbox/faults", { rawBody });
    expect(answer.status).toBe(400);
    expect(answer.json.error.message).toContain(message);
    expect((await send(sandbox, run)).status).toBe(500);
  });
});
