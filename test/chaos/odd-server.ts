// A server that answers starts and some reads as its plan says, and everything else as a good
// service would; and its own book of what it carried out. Speaks HTTP by hand over bare
// connections, so that no library tidies up what it sends. Used by run-answers.ts.
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { TLSSocket } from "node:tls";
import type { TestCertificate } from "../support/certificates.ts";
import type { AnswerChaos, OddAnswer } from "./plan-answers.ts";

/** One start that arrived. `kind`: of its answer; `isDone`: whether it was carried out. */
export interface OddStart {
  readonly taskId: string;
  readonly syncJobId: number;
  readonly atMs: number;
  readonly kind: string;
  readonly isDone: boolean;
}

/** How the server answers now: as a good service, by its plan for tasks, or nothing but oddly. */
type Manner = "well" | "planned" | "to-commands";

/** A running one. */
export class OddServer {
  readonly book: OddStart[] = [];
  manner: Manner = "well";
  /** Odd answers that were given. */
  oddCount = 0;
  readonly #plan: AnswerChaos;
  readonly #certificate: TestCertificate | undefined;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #starts = 0;
  #reads = 0;
  #commandReads = 0;

  private constructor(plan: AnswerChaos, certificate: TestCertificate | undefined) {
    this.#plan = plan;
    this.#certificate = certificate;
    this.#server = createServer({ allowHalfOpen: true }, (socket) => this.#accept(socket));
  }

  /** Starts one; over TLS where the plan says so. */
  static async start(plan: AnswerChaos, certificate: TestCertificate): Promise<OddServer> {
    const server = new OddServer(plan, plan.isTls ? certificate : undefined);
    await new Promise<void>((resolve) => server.#server.listen(0, "127.0.0.1", resolve));
    return server;
  }

  get baseUrl(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `${this.#certificate === undefined ? "http" : "https"}://127.0.0.1:${port}`;
  }

  stop(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }

  #accept(bare: Socket): void {
    this.#sockets.add(bare);
    bare.on("error", () => {});
    bare.once("close", () => this.#sockets.delete(bare));
    const socket =
      this.#certificate === undefined ? bare : new TLSSocket(bare, { ...this.#certificate, isServer: true });
    socket.on("error", () => {});
    let text = "";
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
      const end = text.indexOf("\r\n\r\n");
      if (end < 0) return;
      const request = text.slice(0, end);
      text = "";
      void this.#answer(request, { socket, bare });
    });
    socket.on("end", () => socket.end());
  }

  async #answer(request: string, connection: Connection): Promise<void> {
    const odd = /^GET /.test(request) ? this.#nextRead() : this.#nextStart(request);
    if (odd === undefined) {
      const body = soundBody(request.split(" ")[1] ?? "", this.book);
      connection.socket.write(
        `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );
      return;
    }
    this.oddCount += 1;
    await perform(odd, connection);
  }

  #nextRead(): OddAnswer | undefined {
    if (this.manner === "well") return undefined;
    const { reads, commandReads } = this.#plan;
    if (this.manner === "planned") return reads[this.#reads++ % reads.length];
    return commandReads[this.#commandReads++ % commandReads.length];
  }

  #nextStart(request: string): OddAnswer | undefined {
    const { starts } = this.#plan;
    const odd = this.manner === "well" ? undefined : starts[this.#starts++ % starts.length];
    const syncJobId = Number(/\((\d+)\)/.exec(request)?.[1]);
    const taskId = /^idempotency-key: *(\S+)/im.exec(request)?.[1] ?? "";
    const { kind, isDone } = odd ?? { kind: "well", isDone: true };
    this.book.push({ taskId, syncJobId, atMs: Date.now(), kind, isDone });
    return odd;
  }
}

interface Connection {
  readonly socket: Socket;
  /** The same one without TLS. */
  readonly bare: Socket;
}

async function perform({ moves }: OddAnswer, { socket, bare }: Connection): Promise<void> {
  for (const move of moves) {
    if (socket.destroyed) return;
    switch (move.move) {
      case "write":
        socket.write(move.bytes, "latin1");
        break;
      case "beneath":
        bare.write(move.bytes, "latin1");
        break;
      case "wait":
        await delay(move.forMs);
        break;
      case "drip": {
        // A connection that closed before this has no more event that would end it.
        const timer = setInterval(() => {
          if (socket.destroyed || bare.destroyed) clearInterval(timer);
          else socket.write(move.bytes, "latin1");
        }, move.everyMs);
        break;
      }
      case "half-close":
        socket.end();
        break;
      case "reset":
        // What was written before it has left by then.
        await delay(1);
        bare.resetAndDestroy();
        break;
      case "close":
        bare.end();
        break;
      case "hold":
        break;
    }
  }
}

/**
 * What a good service answers: its sync jobs, and an activity of each start that it carried out.
 */
function soundBody(path: string, book: readonly OddStart[]): string {
  if (/\$count/.test(path)) return String(book.length);
  const key = /syncjobs\((\d+)\)/.exec(path)?.[1];
  if (key !== undefined) return JSON.stringify({ syncJobId: Number(key), name: `Job ${key}` });
  if (!path.includes("/synchronizationactivities")) return JSON.stringify({ value: [] });
  const done = book.filter(({ isDone }) => isDone);
  const value = done.map(({ syncJobId, atMs }, index) => ({
    activityId: index + 1,
    syncJobId,
    startedAt: new Date(atMs).toISOString(),
    state: "Finished",
  }));
  return JSON.stringify({ value });
}
