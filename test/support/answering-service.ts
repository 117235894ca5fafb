// A service that gives each request the answer that stands in line for it, and a client of it with
// a short wait and no retries. For tests of single steps of work; both end with their test.
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { type Limiter, SyncService, staticToken } from "../../src/service/client.ts";

/** What is done with one request. */
export type Answer = (response: ServerResponse) => void;

/** A whole answer. */
export const status =
  (code: number, body = "", headers: Record<string, string> = {}): Answer =>
  (response) =>
    response.writeHead(code, headers).end(body);

/** A reset before any answer. */
export const reset: Answer = (response) => response.socket?.resetAndDestroy();

/**
 * The answers to each GET in turn, and to each other request; the last one for all further ones, a
 * reset where there is none.
 */
interface Answers {
  readonly reads: readonly Answer[];
  readonly writes: readonly Answer[];
  readonly limiter?: Limiter | undefined;
}

/** Starts it. `asked`: the methods of what came, oldest first; `urls`: their paths. */
export async function answeringService({ reads, writes, limiter }: Answers) {
  const asked: string[] = [];
  const urls: string[] = [];
  const server = createServer(({ method = "", url = "" }, response) => {
    asked.push(method);
    urls.push(url);
    const answers = method === "GET" ? reads : writes;
    const nth = asked.filter((other) => other === method).length - 1;
    (answers[nth] ?? answers.at(-1) ?? reset)(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const client = new SyncService({
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token: staticToken("secret"),
    timeouts: { requestMs: 4_000 },
    retries: 0,
    limiter,
  });
  // What tasks reckon with: an answer may take longer on a busy machine.
  const service = Object.assign(client, { requestTimeoutMs: 2_000 });
  onTestFinished(() => {
    service.close();
    server.closeAllConnections();
    server.close();
  });
  return { asked, urls, service };
}
