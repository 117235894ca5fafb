// A receiver of webhooks on 127.0.0.1: keeps what came, answers as told, and can hold an answer
// back. Used by the tests and the bench of sinks.
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Notice } from "../../src/model/notice.ts";
import { LimitedWait } from "./limited-wait.ts";

/** One request that came, and how it was answered. */
export interface Received {
  readonly id: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly status: number;
  readonly atMs: number;
}

/** What to answer, at once unless said; `hold` never answers. */
export type Answer =
  | {
      readonly status: number;
      readonly headers?: Record<string, string>;
      readonly body?: string;
      readonly afterMs?: number;
    }
  | "hold";

/** A receiver. */
export class Receiver {
  readonly received: Received[] = [];
  /** Asked for each request; 204 unless set. */
  answer: (id: string, earlier: number) => Answer = () => ({ status: 204 });
  readonly #server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => this.#take(request.headers, Buffer.concat(chunks).toString("utf8"), response));
  });
  readonly #wait = new LimitedWait(() => this.received.map(({ id }) => id).join("\n"));

  /** Known once it started; stays when it stops. */
  url = "";

  /** Ids that were accepted, in order. */
  readonly accepted: string[] = [];
  readonly #tries = new Map<string, number>();

  async start(port = 0): Promise<this> {
    this.#server.listen(port, "127.0.0.1");
    await once(this.#server, "listening");
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/hook`;
    return this;
  }

  /** Waits until something is true after a request; fails after too long. */
  async until(holds: () => boolean): Promise<void> {
    await this.#wait.until(() => holds() || undefined, holds);
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    if (this.#server.listening) await once(this.#server, "close");
  }

  #take(headers: IncomingHttpHeaders, body: string, response: ServerResponse): void {
    const id = String(headers["webhook-id"]);
    const earlier = this.#tries.get(id) ?? 0;
    this.#tries.set(id, earlier + 1);
    const answer = this.answer(id, earlier);
    const status = answer === "hold" ? 0 : answer.status;
    if (status >= 200 && status < 300) this.accepted.push(id);
    this.received.push({ id, headers, body, status, atMs: performance.now() });
    if (answer !== "hold") {
      const respond = () => response.writeHead(answer.status, answer.headers).end(answer.body);
      if (answer.afterMs === undefined) respond();
      else setTimeout(respond, answer.afterMs);
    }
    this.#wait.wake();
  }
}

/** A notice of a policy. */
export function noticeOf(id: string, policy = "nightly"): Notice {
  return {
    v: 1,
    id,
    kind: "outcome",
    at: "2026-11-21T02:30:00.000Z",
    orderKey: policy,
    policy,
    service: "main",
    title: `${policy}: failed`,
    data: { status: "failed", taskId: id },
  };
}
