// A service of its own that meets starts and reads as its kind of fault says, and keeps a ledger of
// what it truly did: each request, each answer, each run. Shares no code with the sandbox. Used by
// fault-trial.ts; check-faults.ts holds what Syncline tells against the ledger.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { FaultAnswer, FaultKind } from "./fault-kinds.ts";
import { createRandom, type SeededRandom } from "./seeded-random.ts";

/** One request and its answer. */
export interface Exchange {
  readonly atMs: number;
  readonly method: string;
  readonly path: string;
  /** Of a start: whose. */
  readonly taskId: string | undefined;
  readonly isFaulty: boolean;
  /** The status that the client may have read; undefined when none left. */
  status: number | undefined;
  /** Whether the whole answer left. */
  isWhole: boolean;
  /** Whether it was a web page, as a proxy's. */
  readonly isPage: boolean;
  /** The seconds of patience that it asked for. */
  readonly patience: number | undefined;
  endedMs: number | undefined;
}

/** Something that was carried out. `taskId`: undefined when someone else asked for it. */
export interface Deed {
  readonly taskId: string | undefined;
  readonly kind: "run" | "activate";
  readonly syncJobId: number;
  readonly atMs: number;
  readonly endsMs: number;
  readonly fails: boolean;
  readonly conflicts: number;
  readonly activities: readonly number[];
}

/** How likely a fault is. */
const startFaultsOf = 0.7;
const readFaultsOf = 0.35;
const connectionFaultsOf = 0.4;
const runMs = [200, 1_400] as const;
const lateMs = 1_900;
const pageSize = 5;
const approvalEveryMs = 4_000;

/** A running one. */
export class FaultyService {
  readonly exchanges: Exchange[] = [];
  readonly deeds: Deed[] = [];
  /** When nothing listened. */
  readonly downs: { readonly fromMs: number; toMs: number }[] = [];
  readonly startedMs = Date.now();
  readonly #kind: FaultKind;
  readonly #random: SeededRandom;
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #sockets = new Set<Socket>();
  #server: Server;
  #port = 0;
  #activities = 0;
  /** Faults go on until it is told to be well. */
  #isWell = false;

  private constructor(kind: FaultKind, seed: number) {
    this.#kind = kind;
    this.#random = createRandom(seed);
    this.#server = this.#create();
  }

  /** Starts one. */
  static async start(kind: FaultKind, seed: number): Promise<FaultyService> {
    const service = new FaultyService(kind, seed);
    await service.#listen();
    if (kind.isDown) service.#goDownLater();
    if (kind.runs?.hasRivals) service.#startRivals();
    return service;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** From now on it meets everything well; what it has done and not done stays. */
  recover(): void {
    this.#isWell = true;
  }

  stop(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }

  /** How many approvals there were at an instant. */
  approvalsAt(instantMs: number): number {
    return Math.max(0, Math.floor((instantMs - this.startedMs) / approvalEveryMs));
  }

  #create(): Server {
    const server = createServer({ keepAliveTimeout: 20_000 }, (request, response) => this.#meet(request, response));
    server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.on("error", () => {});
      socket.once("close", () => this.#sockets.delete(socket));
      if (this.#kind.resetsConnections && !this.#isWell && this.#random.chance(connectionFaultsOf))
        socket.resetAndDestroy();
    });
    server.on("clientError", () => {});
    return server;
  }

  async #listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(this.#port, "127.0.0.1", resolve));
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  #later(afterMs: number, what: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      what();
    }, afterMs);
    this.#timers.add(timer);
  }

  #goDownLater(): void {
    this.#later(this.#random.integer(1_500, 4_000), () => {
      if (this.#isWell) return;
      const down = { fromMs: Date.now(), toMs: Number.POSITIVE_INFINITY };
      this.downs.push(down);
      this.#server.close();
      for (const socket of this.#sockets) socket.destroy();
      this.#later(this.#random.integer(1_500, 6_000), () => {
        this.#server = this.#create();
        void this.#listen().then(() => {
          down.toMs = Date.now();
          this.#goDownLater();
        });
      });
    });
  }

  #startRivals(): void {
    this.#later(this.#random.integer(1_500, 5_000), () => {
      if (this.#isWell) return;
      this.#do("run", this.#random.integer(1, 3), undefined);
      this.#startRivals();
    });
  }

  #meet(request: IncomingMessage, response: ServerResponse): void {
    const path = request.url ?? "";
    const method = request.method ?? "";
    const start = /^\/api\/syncjobs\/(run|activate)\((\d+)\)/.exec(path);
    const taskId = start === null ? undefined : String(request.headers["idempotency-key"]);
    const answer = this.#faultFor(start !== null, path);
    const { "retry-after": patience, "content-type": type } =
      (answer !== undefined && "say" in answer ? answer.headers : undefined) ?? {};
    const exchange: Exchange = {
      ...{ atMs: Date.now(), method, path, taskId, isFaulty: answer !== undefined },
      ...{ status: undefined, isWhole: false, isPage: type === "text/html", endedMs: undefined },
      patience: patience === undefined ? undefined : Number(patience),
    };
    this.exchanges.push(exchange);
    response.once("close", () => {
      exchange.endedMs ??= Date.now();
    });
    // A client that was gone by then did not get it.
    response.once("finish", () => {
      exchange.isWhole = request.socket.writable;
    });
    if (start !== null) this.#doStart(start, { taskId, isFaulty: answer !== undefined });
    if (answer === undefined) this.#answerWell(path, { response, exchange });
    else this.#answerOddly(answer, { response, exchange });
  }

  #faultFor(isStart: boolean, path: string): FaultAnswer | undefined {
    const { start, read, activities, conflicts } = this.#kind;
    if (this.#isWell) return undefined;
    if (isStart) return start !== undefined && this.#random.chance(startFaultsOf) ? start.answer : undefined;
    const ofList = path.includes("synchronizationactivities")
      ? activities
      : path.includes("syncconflictdetails")
        ? conflicts
        : undefined;
    const fault = ofList ?? read;
    return fault !== undefined && this.#random.chance(ofList === undefined ? readFaultsOf : startFaultsOf)
      ? fault
      : undefined;
  }

  #doStart(
    [, kind, key]: RegExpExecArray,
    { taskId, isFaulty }: { taskId: string | undefined; isFaulty: boolean },
  ): void {
    const effect = isFaulty ? (this.#kind.start?.effect ?? "done") : "done";
    const act = () => this.#do(kind === "run" ? "run" : "activate", Number(key), taskId);
    if (effect === "late") this.#later(lateMs, act);
    else if (effect === "done" || (effect === "drawn" && this.#random.chance(0.5))) act();
  }

  #do(kind: Deed["kind"], syncJobId: number, taskId: string | undefined): void {
    const { neverEnds, fails, leavesConflicts, isTwo } = this.#kind.runs ?? {};
    const atMs = Date.now();
    const activities = kind === "run" ? Array.from({ length: isTwo ? 2 : 1 }, () => ++this.#activities) : [];
    this.deeds.push({
      ...{ taskId, kind, syncJobId, atMs, activities },
      endsMs: neverEnds && this.#random.chance(0.5) ? Number.POSITIVE_INFINITY : atMs + this.#random.integer(...runMs),
      fails: fails === true && this.#random.chance(0.5),
      conflicts: leavesConflicts && this.#random.chance(0.5) ? this.#random.integer(1, 3) : 0,
    });
  }

  #answerWell(path: string, { response, exchange }: Answering): void {
    const text = this.#soundBody(path);
    exchange.status = 200;
    response.setHeader("content-type", path.includes("$count") ? "text/plain" : "application/json").end(text);
  }

  #answerOddly(answer: FaultAnswer, { response, exchange }: Answering): void {
    const { socket } = response;
    if ("say" in answer) {
      exchange.status = answer.say;
      const type = { "content-type": "application/json", ...answer.headers };
      response.writeHead(answer.say, type).end(answer.body ?? '{"error":{"code":"odd"}}');
      return;
    }
    if ("raw" in answer) {
      exchange.status = Number(/^HTTP\/1.1 (\d+)/.exec(answer.raw)?.[1] ?? Number.NaN) || undefined;
      if (answer.raw !== "") socket?.write(answer.raw, "latin1");
      if (answer.ending === "close") socket?.end();
      // What was written before it has left by then.
      if (answer.ending === "reset") this.#later(2, () => socket?.resetAndDestroy());
      return;
    }
    exchange.status = 200;
    const text = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 400\r\n\r\n${" ".repeat(400)}`;
    let sent = 0;
    const timer = setInterval(() => socket?.write(text[sent++] ?? ""), answer.dripEveryMs);
    socket?.once("close", () => clearInterval(timer));
  }

  #soundBody(path: string): string {
    const [name = "", query = ""] = path.split("?");
    const key = /syncjobs\((\d+)\)/.exec(name)?.[1];
    if (name.startsWith("/api/")) return "";
    if (key !== undefined) return JSON.stringify({ syncJobId: Number(key), name: `Job ${key}` });
    const items = this.#listOf(name);
    if (name.endsWith("/$count")) return String(items.length);
    const from = Number(/skiptoken=(\d+)/.exec(decodeURIComponent(query))?.[1] ?? 0);
    const value = items.slice(from, from + pageSize);
    const next =
      from + pageSize < items.length
        ? { "@odata.nextLink": `${this.baseUrl}${name}?$skiptoken=${from + pageSize}` }
        : {};
    return JSON.stringify({ value, ...next });
  }

  #listOf(name: string): readonly object[] {
    const nowMs = Date.now();
    if (name.includes("approvals"))
      return Array.from({ length: this.approvalsAt(nowMs) }, (_, index) => ({
        approvalId: index + 1,
        itemName: "odd",
      }));
    if (name.includes("synchronizationactivities")) return this.#activityItems(nowMs);
    if (name.includes("syncconflictdetails")) return this.#conflictItems(nowMs);
    return [];
  }

  #activityItems(nowMs: number): readonly object[] {
    const { lateMs: shownAfterMs = 0, isListedTwice } = this.#kind.runs ?? {};
    const shown = this.deeds.filter(({ atMs }) => atMs + shownAfterMs <= nowMs);
    const items = shown.flatMap(({ activities, syncJobId, atMs, endsMs, fails }) =>
      activities.map((activityId) => ({
        activityId,
        syncJobId,
        startedAt: new Date(atMs).toISOString(),
        state: endsMs > nowMs ? "Running" : fails ? "Failed" : "Finished",
      })),
    );
    return isListedTwice ? items.flatMap((item) => [item, item]) : items;
  }

  #conflictItems(nowMs: number): readonly object[] {
    return this.deeds.flatMap(({ activities, syncJobId, endsMs, conflicts }) =>
      endsMs > nowMs
        ? []
        : Array.from({ length: conflicts }, (_, index) => ({
            conflictId: `${activities[0]}-${index}`,
            syncJobId,
          })),
    );
  }
}

interface Answering {
  readonly response: ServerResponse;
  readonly exchange: Exchange;
}
