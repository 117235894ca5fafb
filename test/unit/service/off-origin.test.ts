// Hundreds of next links, contexts and redirects that lead elsewhere: nothing but the configured
// origin is ever connected to. Watched at two places: servers of somebody else that count what
// arrives, and every connection that this process attempts.
import { writeFile } from "node:fs/promises";
import { Socket } from "node:net";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { oauth2Token } from "../../../src/service/oauth2-token.ts";
import { folderForTest } from "../../support/folder.ts";
import { canary, collect, connect, errorOf, json, startServer, type TestServer } from "./test-server.ts";

const list = "/sync/odata/approvals";

/**
 * Where connections were attempted to since the test began, before any name was looked up:
 * `host:port`, or a path.
 */
let attempts: string[] = [];
beforeEach(() => {
  attempts = [];
  const original = Socket.prototype.connect;
  const spy = vi.spyOn(Socket.prototype, "connect").mockImplementation(function (this: Socket, ...args: unknown[]) {
    const [first] = args;
    const target: unknown = Array.isArray(first) ? first[0] : first;
    attempts.push(toPlace(target, args));
    return Reflect.apply(original, this, args) as Socket;
  });
  onTestFinished(() => spy.mockRestore());
});

function toPlace(target: unknown, args: readonly unknown[]): string {
  if (typeof target !== "object" || target === null) return args.map(String).join(":");
  const { host, port, path } = target as { host?: unknown; port?: unknown; path?: unknown };
  return path === undefined || path === null ? `${String(host)}:${String(port)}` : String(path);
}

/**
 * Hosts that are not the service; many of them are this machine, where the other server listens.
 */
const hostsOf = (port: number) => [
  `127.0.0.1:${port}`,
  `localhost:${port}`,
  `2130706433:${port}`,
  `0x7f000001:${port}`,
  `0x7f.1:${port}`,
  `0177.0.0.1:${port}`,
  `017700000001:${port}`,
  `127.1:${port}`,
  `127.0.0.1.:${port}`,
  `0.0.0.0:${port}`,
  `[::1]:${port}`,
  `[::ffff:127.0.0.1]:${port}`,
  `[::ffff:7f00:1]:${port}`,
  `１２７.0.0.1:${port}`,
  `%31%32%37.0.0.1:${port}`,
  `127。0。0。1:${port}`,
  `evil.example:${port}`,
  `xn--e1awd7f.example:${port}`,
  `еvil.example:${port}`,
  `127.0.0.1.evil.example:${port}`,
  "169.254.169.254",
  "127.0.0.1",
  // Ports that are none, too much, or the scheme's own; zones; hosts that hide what they are.
  "127.0.0.1:",
  "127.0.0.1:80",
  "127.0.0.1:443",
  `127.0.0.1:00${port}`,
  `127.0.0.1:${port}:80`,
  `127.0.0.1:+${port}`,
  `[::]:${port}`,
  `[0:0:0:0:0:ffff:127.0.0.1]:${port}`,
  `[::1%25lo]:${port}`,
  `[fe80::1]:${port}`,
  `LOCALHOST:${port}`,
  `localhost.:${port}`,
  `127.0.0.1%00.evil.example:${port}`,
  `127.0.0.1%2eevil.example:${port}`,
  `127.0.0.1%40evil.example:${port}`,
  `127.0.\u00ad0.1:${port}`,
  `\u200b127.0.0.1:${port}`,
  `①②⑦.0.0.1:${port}`,
  `*.evil.example:${port}`,
];

const prefixes = [
  "http://",
  "https://",
  "HTTP://",
  "//",
  "///",
  "////",
  "\\\\",
  "/\\",
  "\\/",
  "http:\\\\",
  "https:\\\\",
  "http:/\\",
  "http:/",
  "http:",
  "http:///",
  "http://u@",
  "http://u:p@",
  "http://@",
  "//127.0.0.1@",
  "http://127.0.0.1\\@",
  " http://",
  "\thttp://",
  "ht\ttp://",
  "http:\n//",
  "\u0000http://",
  "ftp://",
  "ws://",
  "wss://",
  "gopher://",
  "blob:http://",
  "view-source:http://",
  "url:http://",
];

const tails = [`${list}?p=2`, "/collect?p=2", "", `/..${list}?p=2`, `${list}?p=2#f`];

/** Links without a host of their own. */
const hostless = [
  "data:application/json,{}",
  "data:text/html;base64,PGh0bWw+",
  `file://${list}`,
  "file:///etc/passwd",
  "file:/etc/passwd",
  "unix:/var/run/docker.sock:/sync/odata/approvals",
  "http://unix:/var/run/docker.sock:/sync/odata/approvals",
  "http+unix://%2Fvar%2Frun%2Fdocker.sock/sync/odata/approvals",
  "javascript:alert(1)",
  "about:blank",
  "mailto:a@b.example",
  "urn:x:y",
  "/sync/odata/%2e%2e/%2e%2e/collect",
  "/sync/odata/..%2f..%2fcollect",
  "/sync/odata/..%5c..%5ccollect",
  "/sync/odata/..\\..\\collect",
  "/sync/odata/%252e%252e/collect",
  "/sync/../collect",
  "../../../../collect",
  "/sync/odata//evil.example/approvals",
  "/sync/odata/approvals/../../api/syncjobs/run(1)",
  "/sync/api/syncjobs/run(1)",
  "/sync/odata/trigger?p=2",
  "/sync/odata/approvals/$count",
  "/sync/odata/approvals(1)",
  "/sync/odata/approvals;jsessionid=1",
  "/sync/odata/approvals%00",
  "/sync/odata/approvals%0d%0aHost:%20evil.example",
  "?p=2\r\nHost: evil.example",
  "?p=2 HTTP/1.1\r\nHost: evil.example\r\n\r\n",
  "/odata/approvals",
  "/sync2/odata/approvals",
  "/SYNC/odata/approvals",
  "#",
  "?",
  ".",
  "..",
  "/",
  ":",
  "::",
  "@evil.example",
  "http://",
  "https://",
  "//",
  "http://:80/",
  "http://[",
  "http://[::1/",
  "http://127.0.0.1:99999/sync/odata/approvals",
];

/** A service whose first page carries this link (and context); what it was asked for. */
async function startPaged(): Promise<TestServer & { carry: { link: string; context: string | undefined } }> {
  const carry: { link: string; context: string | undefined } = { link: "", context: undefined };
  const server = await startServer((request, response) => {
    if (request.url === list)
      json(response, { "@odata.context": carry.context, value: [{ p: 1 }], "@odata.nextLink": carry.link });
    else json(response, { value: [{ p: 2 }] });
  });
  return { ...server, carry };
}

describe("next links that lead elsewhere", () => {
  it("bring no connection, request or token off the origin, in over 2,600 shapes", async () => {
    const evil = await startServer((_, response) => json(response, { value: [{ evil: true }] }));
    const service = await startPaged();
    const client = connect(`${service.url}/sync`);
    const shapes = [
      ...hostsOf(evil.port).flatMap((host, row) =>
        prefixes.flatMap((prefix, column) => {
          // The path that would be right, and in turn one of the others.
          const other = tails[1 + ((row + column) % (tails.length - 1))];
          return [`${prefix}${host}${tails[0]}`, `${prefix}${host}${other}`];
        }),
      ),
      ...hostless,
    ];
    expect(new Set(shapes).size).toBeGreaterThan(2_600);
    const wrong: string[] = [];
    for (const link of new Set(shapes)) {
      service.carry.link = link;
      const { pages, error } = await collect(client.pages("GetApprovals"));
      const went = error === undefined ? JSON.stringify(pages[1]?.items) : (error as { kind?: string }).kind;
      if (pages[0]?.items.length !== 1 || (went !== '[{"p":2}]' && went !== "paging")) wrong.push(`${link} → ${went}`);
    }
    expect(wrong).toEqual([]);
    expect(evil.seen).toEqual([]);
    expect(new Set(attempts)).toEqual(new Set([`127.0.0.1:${service.port}`]));
    // What leads to another path of the same origin is read, under the base path and nowhere else.
    const strayed = service.seen.filter(
      ({ method, url }) => method !== "GET" || !/^\/sync\/(?!.*(?:\.\.|%2e|\/\/))/.test(url.split("?")[0] ?? ""),
    );
    expect(strayed).toEqual([]);
  }, 120_000);

  it("do not take effect by a context of another server", async () => {
    const evil = await startServer((_, response) => json(response, { value: [] }));
    const service = await startPaged();
    const client = connect(`${service.url}/sync`);
    const contexts = hostsOf(evil.port).flatMap((host) => [
      `http://${host}/sync/odata/$metadata#approvals`,
      `//${host}/sync/odata/$metadata`,
      `http://u:p@${host}/sync/odata/$metadata`,
    ]);
    for (const context of [...contexts, "file:///sync/odata/", "data:,x", "unix:/x", "http://["]) {
      for (const link of ["approvals?p=2", "?p=2", "../odata/approvals?p=2", "//approvals?p=2"]) {
        Object.assign(service.carry, { link, context });
        await collect(client.pages("GetApprovals"));
      }
    }
    expect(evil.seen).toEqual([]);
    expect(new Set(attempts)).toEqual(new Set([`127.0.0.1:${service.port}`]));
  });
});

const locationsOf = (evil: TestServer, own: TestServer) => [
  `${evil.url}${list}`,
  `//127.0.0.1:${evil.port}${list}`,
  `http:\\\\127.0.0.1:${evil.port}${list}`,
  `http://u:p@127.0.0.1:${evil.port}/`,
  `https://127.0.0.1:${evil.port}/`,
  `http://localhost:${evil.port}/`,
  `http://2130706433:${evil.port}/`,
  `/\\127.0.0.1:${evil.port}/`,
  "http://169.254.169.254/latest/meta-data/",
  "unix:/var/run/docker.sock:/",
  "file:///etc/passwd",
  "data:application/json,{}",
  `${own.url}${list}?p=2`,
  `${list}?p=2`,
  "?p=2",
  "",
];

describe("redirects", () => {
  it.each([300, 301, 302, 303, 305, 307, 308])(
    "with status %i are never followed, wherever they lead",
    async (status) => {
      const evil = await startServer((_, response) => json(response, {}));
      let location = "";
      const service = await startServer((_, response) =>
        response.writeHead(status, { location, link: `<${location}>` }).end(),
      );
      const client = connect(`${service.url}/sync`);
      const calls = [() => client.getApprovals(), () => client.runSyncJob(1), () => client.deleteSyncJobById(1)];
      let made = 0;
      for (location of locationsOf(evil, service)) {
        for (const call of calls) {
          made += 1;
          expect(await errorOf(call())).toMatchObject({ kind: "contract", status });
        }
      }
      expect(service.seen).toHaveLength(made);
      expect(evil.seen).toEqual([]);
      expect(new Set(attempts)).toEqual(new Set([`127.0.0.1:${service.port}`]));
    },
  );

  it("of the token endpoint bring neither the client's secret nor a token anywhere", async () => {
    const evil = await startServer((_, response) => json(response, { access_token: canary, token_type: "bearer" }));
    const folder = folderForTest();
    await writeFile(join(folder, "secret"), "client secret");
    for (const status of [301, 302, 303, 307, 308]) {
      let location = "";
      const endpoint = await startServer((_, response) => response.writeHead(status, { location }).end());
      for (location of locationsOf(evil, endpoint)) {
        const token = oauth2Token({
          tokenUrl: `${endpoint.url}/token`,
          clientId: "syncline",
          clientSecretFile: join(folder, "secret"),
        });
        expect(await errorOf(token.get())).toMatchObject({ name: "TokenError", temporary: false });
      }
      expect(endpoint.seen).toHaveLength(locationsOf(evil, endpoint).length);
      expect(new Set(attempts)).toEqual(new Set([`127.0.0.1:${endpoint.port}`]));
      attempts.length = 0;
    }
    expect(evil.seen).toEqual([]);
  });
});
