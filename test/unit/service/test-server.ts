// A real HTTP server on 127.0.0.1 for the tests of the client: it records what arrives and answers
// what the test says.
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Server as NetServer, Socket } from "node:net";
import { onTestFinished } from "vitest";
import { type ServiceOptions, SyncService, staticToken } from "../../../src/service/client.ts";

export const canary = "canary-Zx81fQ07LmNop2345-token";

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

export interface TestServer {
  readonly url: string;
  readonly port: number;
  readonly seen: Seen[];
  readonly server: Server;
}

export type Answering = (request: Seen, response: ServerResponse, raw: IncomingMessage) => void;

export async function startServer(answer: Answering): Promise<TestServer> {
  const seen: Seen[] = [];
  const server = createServer((raw, response) => {
    const chunks: Buffer[] = [];
    raw.on("data", (chunk: Buffer) => chunks.push(chunk));
    raw.on("end", () => {
      const body = Buffer.concat(chunks).toString("utf8");
      const request = { method: raw.method ?? "", url: raw.url ?? "", headers: raw.headers, body };
      seen.push(request);
      answer(request, response, raw);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, port, seen, server };
}

/** Lets any server listen until the test is over, then cuts what is open. Answers its port. */
export async function listen(server: NetServer, host = "127.0.0.1"): Promise<number> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
  });
  server.on("tlsClientError", () => {});
  server.listen(0, host);
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

export function json(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { "content-type": "application/json; charset=utf-8" });
  response.end(JSON.stringify(body));
}

export function raw(response: ServerResponse, body: string, headers: Record<string, string> = {}): void {
  response.writeHead(200, headers);
  response.end(body);
}

export function connect(baseUrl: string, options: Partial<ServiceOptions> = {}): SyncService {
  const service = new SyncService({ baseUrl, token: staticToken(canary), retries: 0, ...options });
  onTestFinished(() => service.close());
  return service;
}

/** The error that a promise ends with. */
export async function errorOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("expected a rejection");
}

/** Every page of a walk, and the error that ended it. */
export async function collect<Page>(walk: AsyncGenerator<Page>): Promise<{ pages: Page[]; error: unknown }> {
  const pages: Page[] = [];
  try {
    for await (const page of walk) pages.push(page);
  } catch (error) {
    return { pages, error };
  }
  return { pages, error: undefined };
}
