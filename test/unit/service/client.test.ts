import { describe, expect, it } from "vitest";
import type { SyncService } from "../../../src/service/client.ts";
import { operationNames, type operations, type PathForm } from "../../../src/service/operations.ts";
import { canary, connect, errorOf, json, startServer } from "./test-server.ts";

interface Case {
  readonly name: keyof typeof operations;
  readonly call: (service: SyncService) => Promise<unknown>;
  readonly answer: unknown;
  readonly method: string;
  readonly parentheses: string;
  readonly segment: string;
  readonly body?: string;
  readonly result: unknown;
}

const target = { thirdSystemSyncTargetId: 9, siteName: "HR" };
const page = (item: unknown) => expect.objectContaining({ items: [item], nextLink: undefined, pageNumber: 1 });
const q = { repository: "R 1" };

const cases: Case[] = [
  {
    name: "GetSyncJobById",
    call: (s) => s.getSyncJobById(42, { ...q, select: ["name", "syncJobId"], expand: ["masks"] }),
    answer: { syncJobId: 42, name: "A", other: [1] },
    method: "GET",
    parentheses: "/odata/syncjobs(42)?repository=R%201&$select=name,syncJobId&$expand=masks",
    segment: "/odata/syncjobs/42?repository=R%201&$select=name,syncJobId&$expand=masks",
    result: { syncJobId: 42, name: "A", other: [1] },
  },
  {
    name: "UpdateSyncJobById",
    call: (s) => s.updateSyncJobById(42, { name: "B" }, q),
    answer: { syncJobId: 42, name: "B" },
    method: "PUT",
    parentheses: "/odata/syncjobs(42)?repository=R%201",
    segment: "/odata/syncjobs/42?repository=R%201",
    body: '{"name":"B"}',
    result: { syncJobId: 42, name: "B" },
  },
  {
    name: "DeleteSyncJobById",
    call: (s) => s.deleteSyncJobById(42, q),
    answer: true,
    method: "DELETE",
    parentheses: "/odata/syncjobs(42)?repository=R%201",
    segment: "/odata/syncjobs/42?repository=R%201",
    result: "deleted",
  },
  {
    name: "RunSyncJob",
    call: (s) => s.runSyncJob(42, q),
    answer: undefined,
    method: "POST",
    parentheses: "/api/syncjobs/run(42)?repository=R%201",
    segment: "/api/syncjobs/run/42?repository=R%201",
    result: undefined,
  },
  {
    name: "EnableSyncJobById",
    call: (s) => s.enableSyncJobById(42, q),
    answer: undefined,
    method: "POST",
    parentheses: "/api/syncjobs/activate(42)?repository=R%201",
    segment: "/api/syncjobs/activate/42?repository=R%201",
    result: undefined,
  },
  {
    name: "UpdateEcmDocumentMaskById",
    call: (s) => s.updateEcmDocumentMaskById(7, { name: "M" }, q),
    answer: { maskId: 7, name: "M" },
    method: "PUT",
    parentheses: "/odata/syncjobsdocmasks(7)?repository=R%201",
    segment: "/odata/syncjobsdocmasks/7?repository=R%201",
    body: '{"name":"M"}',
    result: { maskId: 7, name: "M" },
  },
  {
    name: "GetJobMasks",
    call: (s) => s.getJobMasks(q),
    answer: { value: [{ maskId: 1, type: "DocMask" }] },
    method: "GET",
    parentheses: "/odata/syncjobsmasks?repository=R%201",
    segment: "/odata/syncjobsmasks?repository=R%201",
    result: page({ maskId: 1, type: "DocMask" }),
  },
  {
    name: "UpdateDriveSyncTargetById",
    call: (s) => s.updateDriveSyncTargetById(9, { siteName: "HR" }, q),
    answer: target,
    method: "PUT",
    parentheses: "/odata/drivesynctargets(9)?repository=R%201",
    segment: "/odata/drivesynctargets/9?repository=R%201",
    body: '{"siteName":"HR"}',
    result: target,
  },
  {
    name: "UpdateSiteSyncTargetById",
    call: (s) => s.updateSiteSyncTargetById(9, { siteName: "HR" }, q),
    answer: target,
    method: "PUT",
    parentheses: "/odata/sitesynctargets(9)?repository=R%201",
    segment: "/odata/sitesynctargets/9?repository=R%201",
    body: '{"siteName":"HR"}',
    result: target,
  },
  {
    name: "GetApprovals",
    call: (s) => s.getApprovals(q),
    answer: [{ approvalId: 1 }],
    method: "GET",
    parentheses: "/odata/approvals?repository=R%201",
    segment: "/odata/approvals?repository=R%201",
    result: page({ approvalId: 1 }),
  },
  {
    name: "GetIdentityById",
    call: (s) => s.getIdentityById("4be6-x", q),
    answer: { value: [{ id: "4be6-x", idAsNumber: "901" }] },
    method: "GET",
    parentheses: "/odata/ecmidentities/ecmsync.userorgroup(id=4be6-x,repository=R%201)",
    segment: "/odata/ecmidentities/ecmsync.userorgroup(id=4be6-x,repository=R%201)",
    result: [{ id: "4be6-x", idAsNumber: 901 }],
  },
  {
    name: "GetTriggers",
    call: (s) => s.getTriggers(q),
    answer: { value: [{ triggerId: 3, isActive: true }] },
    method: "GET",
    parentheses: "/odata/trigger?repository=R%201",
    segment: "/odata/trigger?repository=R%201",
    result: page({ triggerId: 3, isActive: true }),
  },
  {
    name: "GetAuthActivities",
    call: (s) => s.getAuthActivities(q),
    answer: { value: [{ accountIdentifier: true, more: 1 }] },
    method: "GET",
    parentheses: "/odata/authactivities?repository=R%201",
    segment: "/odata/authactivities?repository=R%201",
    result: page({ accountIdentifier: true, more: 1 }),
  },
  {
    name: "GetActivities",
    call: (s) => s.getActivities(q),
    answer: { value: [{ anything: "x" }] },
    method: "GET",
    parentheses: "/odata/synchronizationactivities?repository=R%201",
    segment: "/odata/synchronizationactivities?repository=R%201",
    result: page({ anything: "x" }),
  },
  {
    name: "GetConflictDetails",
    call: (s) => s.getConflictDetails(q),
    answer: { value: [{ c: null }] },
    method: "GET",
    parentheses: "/odata/syncconflictdetails?repository=R%201",
    segment: "/odata/syncconflictdetails?repository=R%201",
    result: page({ c: null }),
  },
];

describe("SyncService", () => {
  it("has a case here for each of the fifteen operations", () => {
    expect(cases.map((one) => one.name).sort()).toEqual([...operationNames].sort());
    expect(operationNames).toHaveLength(15);
  });

  for (const pathForm of ["parentheses", "segment"] as const satisfies PathForm[]) {
    it.each(cases)(`sends $name in the form ${pathForm} and reads its answer`, async (one) => {
      const server = await startServer((_, response) => {
        if (one.answer === undefined) response.end();
        else json(response, one.answer);
      });
      const result = await one.call(connect(server.url, { pathForm }));
      expect(result).toEqual(one.result);
      const [request] = server.seen;
      expect(server.seen).toHaveLength(1);
      expect(request?.method).toBe(one.method);
      expect(request?.url).toBe(one[pathForm]);
      expect(request?.headers.authorization).toBe(`Bearer ${canary}`);
      expect(request?.headers.accept).toBe("application/json");
      expect(request?.body).toBe(one.body ?? "");
      expect(request?.headers["content-type"]).toBe(one.body === undefined ? undefined : "application/json");
    });
  }

  it("keeps a base path and joins it without a double slash", async () => {
    const server = await startServer((_, response) => json(response, { value: [] }));
    for (const base of ["/sync", "/sync/", "/a/b%20c//"]) await connect(server.url + base).getTriggers();
    expect(server.seen.map((one) => one.url)).toEqual([
      "/sync/odata/trigger",
      "/sync/odata/trigger",
      "/a/b%20c/odata/trigger",
    ]);
  });

  it.each([
    ["qualified", "none", "/odata/ecmidentities/ecmsync.userorgroup(id=a-1,repository=O%27R%20%29%2C)"],
    ["qualified", "repository", "/odata/ecmidentities/ecmsync.userorgroup(id=a-1,repository='O''R%20%29%2C')"],
    ["unqualified", "none", "/odata/ecmidentities/userorgroup(id=a-1,repository=O%27R%20%29%2C)"],
    ["unqualified", "all", "/odata/ecmidentities/userorgroup(id='a-1',repository='O''R%20%29%2C')"],
    ["query", "none", "/odata/ecmidentities/userorgroup?id=a-1&repository=O%27R%20),"],
  ] as const)("addresses an identity %s with quotes %s", async (identityForm, quoteStrings, url) => {
    const server = await startServer((_, response) => json(response, { value: { id: "a-1" } }));
    const service = connect(server.url, { identityForm, quoteStrings });
    expect(await service.getIdentityById("a-1", { repository: "O'R )," })).toEqual([{ id: "a-1" }]);
    expect(server.seen[0]?.url).toBe(url);
  });

  it.each([
    [200, "true", "deleted"],
    [200, "false", "not-deleted"],
    [200, "\uFEFFTrue", "deleted"],
    [200, '{"@odata.context":"x","value":false}', "not-deleted"],
    [204, "", "deleted-no-content"],
  ] as const)("reads a deletion with status %i and body %s as %s", async (status, body, result) => {
    const server = await startServer((_, response) => {
      response.writeHead(status);
      response.end(body);
    });
    expect(await connect(server.url).deleteSyncJobById(1)).toBe(result);
  });

  it.each([200, 202, 204])("takes status %i for a started run", async (status) => {
    const server = await startServer((_, response) => {
      response.writeHead(status);
      response.end(status === 200 ? "OK" : undefined);
    });
    await connect(server.url).runSyncJob(1, {}, { idempotencyKey: "slot-1" });
    expect(server.seen[0]?.headers["idempotency-key"]).toBe("slot-1");
    expect(server.seen[0]?.headers["content-length"]).toBe("0");
    expect(server.seen[0]?.headers.connection).toBe("close");
  });

  it("keeps reading over kept connections and gives writes their own", async () => {
    const server = await startServer((_, response) => json(response, { value: [] }));
    const service = connect(server.url);
    await service.getTriggers();
    await service.updateSyncJobById(1, { name: "x" }).catch(() => undefined);
    await service.deleteSyncJobById(1).catch(() => undefined);
    expect(server.seen.map((one) => one.headers.connection)).toEqual(["keep-alive", "close", "close"]);
  });

  it("keeps numbers beyond 2^53-1 exact and accepts digits in strings", async () => {
    const server = await startServer((_, response) =>
      response.end(
        '{"value":[{"maskId":9007199254740993,"syncJobId":"42"},{"maskId":"9223372036854775807","deep":{"n":12345678901234567890}}]}',
      ),
    );
    expect((await connect(server.url).getJobMasks()).items).toEqual([
      { maskId: "9007199254740993", syncJobId: 42 },
      { maskId: "9223372036854775807", deep: { n: "12345678901234567890" } },
    ]);
  });

  it.each([
    ["a name that is a number", { name: 5 }],
    ["an id that is a text", { syncJobId: "abc" }],
    ["an id with a fraction", { syncJobId: 1.5 }],
    ["an array", [{ syncJobId: 1 }]],
    ["null", null],
    ["an error inside a 200", { error: { code: "x", message: "failed later" } }],
    ["an error text inside a 200", { error: "failed later" }],
  ])("refuses %s as contract", async (_, body) => {
    const server = await startServer((_, response) => json(response, body));
    const error = await errorOf(connect(server.url, { retries: 2 }).getSyncJobById(1));
    expect(error).toMatchObject({ kind: "contract", status: 200, sent: "maybe" });
    expect(server.seen).toHaveLength(1);
  });

  it.each([
    ["a login page", "<html>Sign in</html>", "text/html"],
    ["an error object", '{"error":{"code":"1","message":"no"}}', "application/json"],
  ])("refuses %s as the answer to a run", async (_, body, type) => {
    const server = await startServer((_, response) => {
      response.writeHead(200, { "content-type": type });
      response.end(body);
    });
    expect(await errorOf(connect(server.url).runSyncJob(1))).toMatchObject({ kind: "contract", sent: "maybe" });
  });

  it("takes 204 for an update that worked and 201 for one that created something", async () => {
    let status = 204;
    const server = await startServer((_, response) => {
      response.writeHead(status);
      response.end(status === 201 ? '{"syncJobId":1}' : undefined);
    });
    const service = connect(server.url);
    expect(await service.updateSyncJobById(1, { name: "x" })).toEqual({});
    status = 201;
    expect(await errorOf(service.updateSyncJobById(1, { name: "x" }))).toMatchObject({ kind: "contract", status: 201 });
  });

  it("does not let a body pollute prototypes", async () => {
    const server = await startServer((_, response) => response.end('{"value":[{"__proto__":{"polluted":1},"a":1}]}'));
    const [item] = (await connect(server.url).getActivities()).items;
    expect(Object.getPrototypeOf(item)).toBe(Object.prototype);
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
    expect(item?.["polluted"]).toBeUndefined();
  });

  it.each([
    ["a key that is no number", (s: SyncService) => s.getSyncJobById("4/../2")],
    ["a negative key", (s: SyncService) => s.runSyncJob(-1)],
    ["a key with a fraction", (s: SyncService) => s.runSyncJob(1.5)],
    ["a repository that is half a character", (s: SyncService) => s.getTriggers({ repository: "\ud800" })],
    ["an identity without repository", (s: SyncService) => s.getIdentityById("x", { repository: "" })],
    ["an idempotency key with a line break", (s: SyncService) => s.runSyncJob(1, {}, { idempotencyKey: "a\r\nb" })],
  ])("refuses %s before anything is sent", async (_, call) => {
    const server = await startServer((_, response) => response.end());
    expect(await errorOf(call(connect(server.url)))).toMatchObject({ kind: "bad-request", sent: "no" });
    expect(server.seen).toHaveLength(0);
  });

  it.each([
    "ftp://x",
    "nonsense",
    "",
    "https://u:p@h",
    "https://@h/",
    "https://h/?a=1",
    "https://h/#f",
    "https://h/?",
    "file:///etc",
  ])("refuses the base URL %s without repeating it", (baseUrl) => {
    expect(() => connect(baseUrl)).toThrow(TypeError);
  });

  it("tells each finished call once, with its tries", async () => {
    const events: unknown[] = [];
    const server = await startServer((_, response) => json(response, {}, 404));
    const service = connect(server.url, { onRequest: (event) => events.push(event) });
    await errorOf(service.getSyncJobById(1));
    const told = { sent: "maybe", durationMs: expect.any(Number), tries: 1 };
    expect(events).toEqual([{ operation: "GetSyncJobById", method: "GET", status: 404, kind: "not-found", ...told }]);
  });

  it("tells no end of a call that a bug ends: it was neither answered nor refused", async () => {
    const events: unknown[] = [];
    const limiter = { acquire: () => Promise.reject(new TypeError("a bug")) };
    const service = connect("http://127.0.0.1:1", { limiter, onRequest: (event) => events.push(event) });
    expect(await errorOf(service.runSyncJob(1))).toBeInstanceOf(TypeError);
    expect(events).toEqual([]);
  });

  it("shows neither its token nor its options when it is printed", async () => {
    const { inspect } = await import("node:util");
    const service = connect("http://127.0.0.1:1");
    expect(inspect(service, { depth: 9, showHidden: true }) + JSON.stringify(service)).not.toContain(canary);
  });

  it("ends open calls as cancelled when it is closed", async () => {
    const server = await startServer(() => service.close());
    const service = connect(server.url);
    expect(await errorOf(service.runSyncJob(1))).toMatchObject({ kind: "cancelled", sent: "maybe" });
  });
});
