// What happens when somebody gives the log what must not be given to it: the errors of the
// libraries, with all that hangs on them.
import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { inspect } from "node:util";
import got from "got";
import { Redis } from "ioredis";
import * as oauth from "oauth4webapi";
import { describe, expect, it, onTestFinished } from "vitest";
import { parse } from "yaml";
import type { EventFields } from "../../../src/core/event-log.ts";
import { noteSecret, noteUrlPassword } from "../../../src/core/secrets.ts";
import { createLogger } from "../../../src/ops/logger.ts";
import { errorOf } from "../service/test-server.ts";

const token = "canary-of-the-logger-test-81f";

/** Logs an error in every way that somebody might think of, past the types, and gives all lines. */
function logged(error: unknown): string {
  noteSecret(token);
  const lines: string[] = [];
  const log = createLogger("info", (line) => lines.push(line));
  const fields = (values: Record<string, unknown>) => values as EventFields;
  log.error("bug.caught", fields({ err: error }));
  log.warn("bug.caught", fields({ error, list: [error, token], nested: { deep: { error } } }));
  log.info(
    "bug.caught",
    fields({ message: String(error), stack: (error as Error).stack, json: JSON.stringify(error) }),
  );
  log.info("bug.caught", fields({ all: inspect(error, { depth: 10, showHidden: true }) }));
  log.info("bug.caught", fields(error as Record<string, unknown>));
  return lines.join("\n");
}

async function listening(server: { listen(port: number, host: string): unknown; address(): unknown }): Promise<number> {
  const events = server as unknown as NodeJS.EventEmitter;
  server.listen(0, "127.0.0.1");
  await once(events, "listening");
  return (server.address() as AddressInfo).port;
}

async function echoingServer(): Promise<string> {
  const server = createServer((request, response) => {
    response.writeHead(401, { "content-type": "application/json", "x-echo": token });
    response.end(JSON.stringify({ error: "invalid_client", echo: request.headers.authorization, token }));
  });
  const port = await listening(server);
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${port}`;
}

describe("the log", () => {
  it("shows nothing of what hangs on got's errors", async () => {
    const url = `${await echoingServer()}/x?secret=${token}`;
    const headers = { authorization: `Bearer ${token}` };
    for (const options of [{ headers }, { headers, responseType: "json" as const, throwHttpErrors: false, port: 1 }]) {
      const text = logged(await errorOf(Promise.resolve(got(url, { ...options, retry: { limit: 0 } }))));
      expect(text).not.toContain(token);
      expect(text).toContain("Error");
    }
  });

  it("shows no property of ioredis's errors, such as a refused command's password", async () => {
    const server = createTcpServer((socket) => {
      socket.on("error", () => {});
      socket.setEncoding("utf8").on("data", (text: string) => {
        // One answer for each command.
        for (const _ of text.matchAll(/^\*\d/gm)) socket.write("-WRONGPASS invalid username-password pair\r\n");
      });
    });
    const port = await listening(server);
    const redis = new Redis(`redis://:${token}@127.0.0.1:${port}`, { lazyConnect: true, retryStrategy: () => null });
    onTestFinished(() => {
      redis.disconnect();
      server.close();
    });
    const errors: unknown[] = [];
    redis.on("error", (error: unknown) => errors.push(error));
    errors.push(await errorOf(redis.connect()));
    noteUrlPassword(`redis://:${token}@127.0.0.1`);
    expect(inspect(errors, { depth: 10 })).toContain(token);
    for (const error of errors) expect(logged(error)).not.toContain(token);
  });

  it("shows nothing of what hangs on oauth4webapi's errors, such as the whole answer", async () => {
    const url = await echoingServer();
    const server = { issuer: url, token_endpoint: url };
    const client = { client_id: "c" };
    const insecure = { [oauth.allowInsecureRequests]: true };
    const auth = oauth.ClientSecretBasic(token);
    const response = await oauth.clientCredentialsGrantRequest(server, client, auth, {}, insecure);
    const error = await errorOf(oauth.processClientCredentialsResponse(server, client, response));
    expect(inspect(error, { depth: 10 })).toContain(token);
    expect(logged(error)).not.toContain(token);
  });

  it("shows nothing of a YAML error's source line", () => {
    let error: unknown;
    try {
      parse(`token: "${token}`);
    } catch (thrown) {
      error = thrown;
    }
    expect(inspect(error)).toContain(token);
    expect(logged(error)).not.toContain(token);
  });

  it("writes an error that was not meant to be there by its name and message alone", () => {
    const lines: string[] = [];
    const log = createLogger("info", (line) => lines.push(line));
    const error = Object.assign(new RangeError("too far"), { config: "something" });
    log.error("bug.caught", {
      err: error,
      where: { a: 1 },
      list: ["a", 1, error],
      none: null,
    } as unknown as EventFields);
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({
      err: "RangeError: too far",
      where: "(not shown)",
      list: ["a", 1, "RangeError: too far"],
      none: null,
    });
  });
});
