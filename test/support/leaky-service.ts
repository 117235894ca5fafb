// A service that does wrong whatever it can with secrets: it echoes tokens in bodies and headers,
// puts credentials into links and redirects, resets, and answers nonsense. In turn, request by
// request. Also a token endpoint that grants, or fails with the secret.
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { canaries } from "./canaries.ts";
import type { TestCertificate } from "./certificates.ts";

/** A running service. */
export interface LeakyService {
  readonly url: string;
  /**
   * What came: the authorization headers, the bodies of the token endpoint, and where receivers and
   * heartbeats were asked.
   */
  readonly heard: Set<string>;
  /** Which wrong answers were given, and how often. */
  readonly given: Map<string, number>;
  stop(): Promise<void>;
}

type Answer = (response: ServerResponse, token: string, own: string) => void;

const page = (response: ServerResponse, link: string) =>
  json(response, 200, { value: [{ approvalId: 1, itemName: "a" }], "@odata.nextLink": link });

const answers: Readonly<Record<string, Answer>> = {
  "500 with the token": (response, token) =>
    json(response, 500, { error: { code: token, message: `no access with ${token}, Bearer ${token}` } }),
  "a link with a password": (response, _, own) =>
    page(response, own.replace("://", `://user:${canaries.linkPassword}@`)),
  "a link with a secret in its query": (response, _, own) => page(response, `${own}?$skip=1&sig=${canaries.linkQuery}`),
  "401 with the token": (response, token) => json(response, 401, { title: "unauthorized", detail: token }),
  reset: (response) => void response.destroy(),
  "a redirect with the token": (response, token, own) =>
    void response.writeHead(302, { location: `${own}?access_token=${token}`, "x-request-id": token }).end(token),
  "wrong JSON with the token": (response, token) => json(response, 200, { [token]: [token], value: token }),
  "half a JSON with the token": (response, token) =>
    void response.writeHead(200, { "content-type": "application/json" }).end(`{"value":[{"${token}`),
  "503 with the token": (response, token) =>
    void response.writeHead(503, { "retry-after": token, "x-correlation-id": token }).end(token),
  "400 with the token": (response, token) =>
    json(response, 400, { message: `bad ${token} at https://u:${token}@h/?x=${token}` }),
  good: (response) => json(response, 200, { value: [], "@odata.context": `x?${canaries.linkQuery}` }),
};

/** Starts it; with a certificate over TLS, wanting one of the client that this authority signed. */
export async function startLeakyService(tls?: TestCertificate & { readonly ca: string }): Promise<LeakyService> {
  const heard = new Set<string>();
  const given = new Map<string, number>();
  let turn = 0;
  const listener: RequestListener = (request, response) => {
    const { authorization = "" } = request.headers;
    heard.add(authorization);
    if (request.url?.startsWith("/oauth") === true) {
      void readBody(request).then((body) => {
        heard.add(body);
        grant(response, request.url === "/oauth/good", `${authorization} ${body}`);
      });
      return;
    }
    request.resume();
    if (/^\/(hook|tick)\//.test(request.url ?? "")) heard.add(request.url ?? "");
    // What lies below /ok is well: somebody must be told, and a heartbeat follows a success.
    if (request.url?.startsWith("/ok/") === true) {
      response.writeHead(200).end();
      return;
    }
    if (request.url?.startsWith("/tick/") === true) {
      json(response, 500, { error: { message: `no heartbeat for ${request.url}` } });
      return;
    }
    // The page behind that link is good, so that its address is worth remembering.
    if (request.url?.includes("sig=") === true) {
      json(response, 200, { value: [{ approvalId: 2, itemName: "b" }] });
      return;
    }
    turn += 1;
    // A prime step: with several callers in turn everybody meets every answer.
    const names = Object.keys(answers);
    const name = names[(turn * 7) % names.length] ?? "good";
    given.set(name, (given.get(name) ?? 0) + 1);
    const own = `${tls === undefined ? "http" : "https"}://${request.headers.host}${request.url?.split("?")[0]}`;
    answers[name]?.(response, authorization.replace(/^Bearer /, ""), own);
  };
  const server =
    tls === undefined
      ? createServer(listener)
      : createSecureServer({ ...tls, requestCert: true, rejectUnauthorized: true }, listener);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `${tls === undefined ? "http" : "https"}://127.0.0.1:${port}`,
    heard,
    given,
    stop: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

function grant(response: ServerResponse, isRight: boolean, sent: string): void {
  if (isRight) json(response, 200, { access_token: canaries.accessToken, token_type: "Bearer", expires_in: 1 });
  else json(response, 401, { error: "invalid_client", error_description: sent, echo: canaries.clientSecret });
}

async function readBody(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) body += chunk;
  return body;
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json", "x-correlation-id": "an-id" });
  response.end(JSON.stringify(body));
}
