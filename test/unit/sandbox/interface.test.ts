// The sandbox against service-interface.md, from outside: every row of §4.1, §4.2, §4.3, §4.4, §5
// and §7, over real HTTP. Written from the document; knows addresses, bodies and statuses only.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../../src/sandbox/sandbox.ts";
import { freshSandbox, send } from "./caller.ts";

const firstIdentity = "00000000-0000-4000-8000-000000000001";
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

// One shared sandbox for what only reads; each changing test starts its own.
let shared: Sandbox;
beforeAll(async () => {
  shared = await startSandbox({ limitedToken: "limited", repositories: ["HR", "FIN"] });
});
afterAll(() => shared.stop());

describe("§4.1: the fifteen operations, each in all its path forms", () => {
  const syncJob = { syncJobId: 3, name: expect.any(String) };
  const target = {
    thirdSystemSyncTargetId: 3,
    siteName: expect.any(String),
    siteId: expect.any(String),
    folderName: expect.any(String),
    folderId: expect.any(String),
  };
  const mask = {
    maskId: expect.any(Number),
    name: expect.any(String),
    ecmMaskId: expect.any(String),
    type: expect.stringMatching(/^(Doc|Folder)Mask$/),
    syncJobId: expect.any(Number),
  };
  const entities: readonly [string, unknown, unknown, object][] = [
    ["GET /odata/syncjobs{3}", undefined, undefined, syncJob],
    ["PUT /odata/syncjobs{3}", { name: "New" }, undefined, { syncJobId: 3, name: "New" }],
    [
      "PUT /odata/syncjobsdocmasks{1}",
      { name: "New" },
      undefined,
      { ...mask, maskId: 1, name: "New", type: "DocMask" },
    ],
    ["PUT /odata/drivesynctargets{3}", { siteName: "New" }, undefined, { ...target, siteName: "New" }],
    ["PUT /odata/sitesynctargets{3}", { siteId: "New" }, undefined, { ...target, siteId: "New" }],
  ];
  const keyForms = entities.flatMap(([line, body, _, entity]) =>
    [line.replace(/\{(\d+)\}/, "($1)"), line.replace(/\{(\d+)\}/, "/$1")].map((form) => ({ form, body, entity })),
  );
  it.each(keyForms)("$form answers 200 with the entity itself", async ({ form, body, entity }) => {
    const sandbox = await freshSandbox();
    const answer = await send(sandbox, form, body === undefined ? {} : { body });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toMatch(/^application\/json/);
    expect(answer.json).toEqual(entity);
  });

  it.each(["/odata/syncjobs(3)", "/odata/syncjobs/3"])("DELETE %s answers 200 true", async (path) => {
    const answer = await send(await freshSandbox(), `DELETE ${path}`);
    expect([answer.status, answer.text]).toEqual([200, "true"]);
  });

  it.each(["/api/syncjobs/run(3)", "/api/syncjobs/run/3", "/api/syncjobs/activate(3)", "/api/syncjobs/activate/3"])(
    "POST %s answers a bare 200",
    async (path) => {
      const answer = await send(await freshSandbox(), `POST ${path}`);
      expect([answer.status, answer.text]).toEqual([200, ""]);
      expect(answer.headers.get("content-type")).toBeNull();
    },
  );

  it.each([
    ["syncjobsmasks", 60, mask],
    ["trigger", 20, { triggerId: expect.any(Number), isActive: expect.any(Boolean) }],
    [
      "authactivities",
      40,
      {
        authAccountActivityEntityId: expect.any(Number),
        accountIdentifier: expect.any(Boolean),
        accountObjectId: expect.any(Boolean),
      },
    ],
    ["synchronizationactivities", 250, expect.any(Object)],
    ["syncconflictdetails", 4, expect.any(Object)],
    ["approvals", 0, undefined],
  ])("GET /odata/%s answers a collection, and its /$count twin %i as plain digits", async (list, count, item) => {
    const page = await send(shared, `GET /odata/${list}`);
    expect(page.status).toBe(200);
    expect(page.json["@odata.context"]).toBe(`${shared.baseUrl}/odata/$metadata#${list}`);
    expect(page.json.value).toHaveLength(Math.min(count, 100));
    for (const one of page.json.value) expect(one).toEqual(item);
    const counted = await send(shared, `GET /odata/${list}/$count`);
    expect([counted.status, counted.text]).toEqual([200, String(count)]);
    expect(counted.headers.get("content-type")).toMatch(/^text\/plain/);
  });

  it("GET /odata/approvals shows id, name and a UUID once a run left one", async () => {
    const sandbox = await freshSandbox();
    await send(sandbox, "POST /api/syncjobs/run(11)");
    const { json } = await send(sandbox, "GET /odata/approvals");
    expect(json.value).toEqual([{ approvalId: 1, itemName: expect.any(String), itemId: expect.stringMatching(uuid) }]);
    expect((await send(sandbox, "GET /odata/approvals/$count")).text).toBe("1");
  });

  it.each([
    `ecmsync.userorgroup(id=${firstIdentity},repository=HR)`,
    `userorgroup(id=${firstIdentity},repository=HR)`,
    `userorgroup(id=${firstIdentity},repository='HR')`,
    `userorgroup(repository='HR',id='${firstIdentity}')`,
    `userorgroup(id=${firstIdentity},repository=%27HR%27)`,
    `userorgroup?id=${firstIdentity}&repository=HR`,
    `userorgroup?id='${firstIdentity}'&repository='HR'`,
    `ecmsync.userorgroup?id=${firstIdentity}&repository=HR`,
  ])("GET /odata/ecmidentities/%s answers the identity wrapped in value", async (path) => {
    const answer = await send(shared, `GET /odata/ecmidentities/${path}`);
    expect(answer.status).toBe(200);
    expect(answer.json.value).toEqual([
      { id: firstIdentity, idAsNumber: 901, name: "Ada Berger", isAdministrator: false },
    ]);
  });

  it("an identity of another repository is an empty value", async () => {
    const path = `/odata/ecmidentities/userorgroup(id=${firstIdentity},repository=FIN)`;
    expect((await send(shared, `GET ${path}`)).json.value).toEqual([]);
  });
});

describe("§4.2: parameters", () => {
  it("repository narrows every list, and the repositories add up", async () => {
    for (const list of [
      "syncjobsmasks",
      "trigger",
      "authactivities",
      "synchronizationactivities",
      "syncconflictdetails",
    ]) {
      const count = async (query: string) => Number((await send(shared, `GET /odata/${list}/$count${query}`)).text);
      const [all, hr, fin] = [await count(""), await count("?repository=HR"), await count("?repository=FIN")];
      expect(hr).toBeGreaterThan(0);
      expect(fin).toBeGreaterThan(0);
      expect(hr + fin).toBe(all);
    }
  });

  it("repository is taken by every operation with a key", async () => {
    const sandbox = await freshSandbox();
    for (const line of ["GET /odata/syncjobs(3)", "POST /api/syncjobs/run(4)", "POST /api/syncjobs/activate(3)"]) {
      expect((await send(sandbox, `${line}?repository=HR`)).status).toBe(200);
    }
    for (const list of ["syncjobs", "syncjobsdocmasks", "drivesynctargets", "sitesynctargets"]) {
      expect((await send(sandbox, `PUT /odata/${list}(1)?repository=HR`, { body: {} })).status).toBe(200);
    }
    expect((await send(sandbox, "DELETE /odata/syncjobs(3)?repository=HR")).status).toBe(200);
  });

  it("a sync job of another repository counts as missing", async () => {
    const sandbox = await freshSandbox();
    expect((await send(sandbox, "PUT /odata/syncjobs(3)?repository=FIN", { body: { name: "x" } })).status).toBe(404);
    expect((await send(sandbox, "POST /api/syncjobs/run(3)?repository=FIN")).status).toBe(400);
    expect(sandbox.ledger()).toEqual([]);
  });

  it.each([
    ["/odata/syncjobs(3)?$select=name", (json: { name: string }) => json, ["name"]],
    ["/odata/syncjobsmasks?$select=maskId,type", (json: { value: object[] }) => json.value[0], ["maskId", "type"]],
    ["/odata/syncjobsmasks?%24select=type", (json: { value: object[] }) => json.value[0], ["type"]],
    ["/odata/synchronizationactivities?$select=state", (json: { value: object[] }) => json.value[0], ["state"]],
    [
      `/odata/ecmidentities/userorgroup(id=${firstIdentity},repository=HR)?$select=name`,
      (json: { value: object[] }) => json.value[0],
      ["name"],
    ],
  ])("$select chooses the properties: %s", async (path, pick, names) => {
    const answer = await send(shared, `GET ${path}`);
    expect(Object.keys(pick(answer.json) ?? {})).toEqual(names);
  });

  it.each([
    "/odata/syncjobs(3)",
    "/odata/syncjobsmasks",
    "/odata/approvals",
    "/odata/trigger",
    "/odata/authactivities",
    "/odata/synchronizationactivities",
    "/odata/syncconflictdetails",
    `/odata/ecmidentities/userorgroup(id=${firstIdentity},repository=HR)`,
  ])("$select and $expand are taken, other options with $ are not: %s", async (path) => {
    expect((await send(shared, `GET ${path}?$select=*&$expand=anything&own=1`)).status).toBe(200);
    for (const query of ["$select=nothing", "$select=", "$filter=x", "$top=1", "$SELECT=name", "$select=*&$select=*"]) {
      const answer = await send(shared, `GET ${path}?${query}`);
      expect([query, answer.status]).toEqual([query, 400]);
    }
  });
});

describe("§4.3: update bodies", () => {
  it("changes what was sent, keeps the rest, and shows it afterwards", async () => {
    const sandbox = await freshSandbox();
    await send(sandbox, "PUT /odata/drivesynctargets(9)", { body: { siteName: "S", folderName: "F" } });
    const body = { thirdSystemSyncTargetId: 9, siteId: "I" };
    const { json } = await send(sandbox, "PUT /odata/drivesynctargets/9", { body });
    expect(json).toMatchObject({ thirdSystemSyncTargetId: 9, siteName: "S", siteId: "I", folderName: "F" });
    await send(sandbox, "PUT /odata/syncjobs(9)", { body: { name: "Contracts" } });
    expect((await send(sandbox, "GET /odata/syncjobs(9)")).json).toEqual({ syncJobId: 9, name: "Contracts" });
  });

  it("an empty object changes nothing and answers the entity", async () => {
    const before = await send(shared, "GET /odata/syncjobs(9)");
    const answer = await send(shared, "PUT /odata/syncjobs(9)", { body: {} });
    expect([answer.status, answer.json]).toEqual([200, before.json]);
  });

  const puts = ["syncjobs(1)", "syncjobsdocmasks(1)", "drivesynctargets(1)", "sitesynctargets(1)"];
  const refused: readonly (readonly [string, object])[] = [
    ["syncjobs(1)", { syncJobId: 1, name: "x" }],
    ["syncjobsdocmasks(1)", { maskId: 1 }],
    ["syncjobsdocmasks(1)", { type: "DocMask" }],
    ["syncjobsdocmasks(1)", { syncJobId: 1 }],
    ["drivesynctargets(1)", { thirdSystemSyncTargetId: 2, siteName: "x" }],
    ["sitesynctargets(1)", { thirdSystemSyncTargetId: "1" }],
    ...puts.map((put) => [put, { unheardOf: 1 }] as const),
    ["syncjobs(1)", { name: 5 }],
    ["syncjobs(1)", { name: null }],
    ["syncjobsdocmasks(1)", { ecmMaskId: ["x"] }],
    ["drivesynctargets(1)", { siteName: {} }],
    ["sitesynctargets(1)", { folderId: false }],
  ];
  it.each(refused)("PUT %s with %o is 400 and changes nothing", async (path, body) => {
    const sandbox = await freshSandbox();
    const answer = await send(sandbox, `PUT /odata/${path}`, { body });
    expect(answer.status).toBe(400);
    expect(answer.json.error).toEqual({ code: "BadRequest", message: expect.any(String) });
    expect(sandbox.ledger()).toEqual([]);
  });

  it.each(puts)("PUT %s with a body that is no JSON object is 400", async (path) => {
    for (const rawBody of ["", "{", "null", '"name"', "[1]", "5", "\u0000"]) {
      expect((await send(shared, `PUT /odata/${path}`, { rawBody })).status).toBe(400);
    }
    const headers = { "Content-Type": "text/plain" };
    expect((await send(shared, `PUT /odata/${path}`, { body: {}, headers })).status).toBe(400);
    expect((await send(shared, `PUT /odata/${path}`)).status).toBe(400);
  });

  it("a body over 64 KiB is 413, one below is read", async () => {
    const put = (length: number) => send(shared, "PUT /odata/syncjobs(2)", { body: { name: "x".repeat(length) } });
    expect((await put(65_000)).status).toBe(200);
    expect((await put(66_000)).status).toBe(413);
    expect((await put(900_000)).status).toBe(413);
  });
});

describe("§4.4: behaviours", () => {
  it("a deleted sync job answers 404 to PUT and DELETE, without masks and trigger", async () => {
    const sandbox = await freshSandbox();
    await send(sandbox, "DELETE /odata/syncjobs(3)");
    expect((await send(sandbox, "DELETE /odata/syncjobs(3)")).status).toBe(404);
    expect((await send(sandbox, "PUT /odata/syncjobs(3)", { body: { name: "x" } })).status).toBe(404);
    expect((await send(sandbox, "GET /odata/syncjobsmasks/$count")).text).toBe("57");
    expect((await send(sandbox, "GET /odata/trigger/$count")).text).toBe("19");
  });

  it("deleting a sync job that is running answers 200 false and deletes nothing", async () => {
    const sandbox = await freshSandbox({ runMs: [60_000, 60_000] });
    await send(sandbox, "POST /api/syncjobs/run(3)");
    const answer = await send(sandbox, "DELETE /odata/syncjobs(3)");
    expect([answer.status, answer.text]).toEqual([200, "false"]);
    expect((await send(sandbox, "GET /odata/syncjobs(3)")).status).toBe(200);
  });

  it("activate makes the trigger active", async () => {
    const sandbox = await freshSandbox();
    await send(sandbox, "POST /api/syncjobs/activate/1");
    const { json } = await send(sandbox, "GET /odata/trigger");
    expect(json.value.slice(0, 3)).toEqual([
      { triggerId: 1, isActive: true },
      { triggerId: 2, isActive: false },
      { triggerId: 3, isActive: true },
    ]);
  });
});

describe("§5: authentication", () => {
  const guarded = [
    "POST /api/syncjobs/run(1)",
    "POST /api/syncjobs/activate(1)",
    "GET /odata/syncjobs(1)",
    "PUT /odata/syncjobs(1)",
    "DELETE /odata/syncjobs(1)",
    `GET /odata/ecmidentities/userorgroup(id=${firstIdentity},repository=HR)`,
  ];
  const others = [
    "PUT /odata/syncjobsdocmasks(1)",
    "PUT /odata/drivesynctargets(1)",
    "PUT /odata/sitesynctargets(1)",
    ...[
      "syncjobsmasks",
      "approvals",
      "trigger",
      "authactivities",
      "synchronizationactivities",
      "syncconflictdetails",
    ].map((list) => `GET /odata/${list}`),
  ];
  const bodyFor = (line: string) => (line.startsWith("PUT") ? { body: {} } : {});

  it.each([...guarded, ...others])("%s is an empty 401 without a token and with a wrong one", async (line) => {
    for (const extras of [
      { token: null },
      { token: "wrong" },
      { token: null, headers: { Authorization: `Basic ${shared.token}` } },
      { token: null, headers: { Authorization: shared.token } },
    ]) {
      const answer = await send(shared, line, { ...bodyFor(line), ...extras });
      expect([answer.status, answer.text]).toEqual([401, ""]);
    }
    expect(shared.ledger().filter((entry) => entry.operation === "RunSyncJob")).toEqual([]);
  });

  it.each(guarded)("%s is 401 for a caller without the rights", async (line) => {
    const answer = await send(shared, line, { ...bodyFor(line), token: "limited" });
    expect([answer.status, answer.text]).toEqual([401, ""]);
  });

  it.each(others)("%s needs no more than a token", async (line) => {
    expect((await send(shared, line, { ...bodyFor(line), token: "limited" })).status).toBe(200);
  });
});

describe("§7: errors", () => {
  it.each([
    ["GET /odata/syncjobs(99)", 400],
    ["PUT /odata/syncjobs(99)", 404],
    ["DELETE /odata/syncjobs(99)", 404],
    ["POST /api/syncjobs/run(99)", 400],
    ["POST /api/syncjobs/activate(99)", 400],
    ["PUT /odata/syncjobsdocmasks(99)", 400],
    ["PUT /odata/syncjobsdocmasks(3)", 400],
    ["PUT /odata/drivesynctargets(99)", 400],
    ["PUT /odata/sitesynctargets(99)", 400],
  ])("%s: a missing thing is %i, or 404 everywhere when told so", async (line, status) => {
    const extras = line.startsWith("PUT") ? { body: {} } : {};
    expect((await send(shared, line, extras)).status).toBe(status);
    const open = await freshSandbox({ missingStatus: 404 });
    expect((await send(open, line, extras)).status).toBe(404);
    expect(open.ledger()).toEqual([]);
  });

  it.each(["abc", "1.5", "-1", "'1'", "1%20", "%F0%9F%98%80", "9999999999999999", "$count"])(
    "the key %s is 400 for every operation with a key",
    async (key) => {
      for (const [method, path] of [
        ["GET", "/odata/syncjobs"],
        ["PUT", "/odata/syncjobs"],
        ["DELETE", "/odata/syncjobs"],
        ["POST", "/api/syncjobs/run"],
        ["POST", "/api/syncjobs/activate"],
        ["PUT", "/odata/syncjobsdocmasks"],
        ["PUT", "/odata/drivesynctargets"],
        ["PUT", "/odata/sitesynctargets"],
      ]) {
        const extras = method === "PUT" ? { body: {} } : {};
        expect((await send(shared, `${method} ${path}(${key})`, extras)).status).toBe(400);
        expect((await send(shared, `${method} ${path}/${key}`, extras)).status).toBe(400);
      }
    },
  );

  it.each([
    "GET /odata/trigger?repository=NOPE",
    "GET /odata/trigger?repository=HR&repository=HR",
    "GET /odata/trigger?$skip=-1",
    "GET /odata/trigger/$count?$skip=1",
    "POST /api/syncjobs/run(1)?$select=name",
    "GET /odata/ecmidentities/userorgroup",
    "GET /odata/ecmidentities/userorgroup(id=1,repository=HR)",
    `GET /odata/ecmidentities/userorgroup(id=${firstIdentity})`,
    `GET /odata/ecmidentities/userorgroup(id=${firstIdentity},repository=NOPE)`,
    `GET /odata/ecmidentities/userorgroup(${firstIdentity},HR)`,
    "GET /odata/syncjobs(%)",
  ])("%s is 400 with an error body", async (line) => {
    const answer = await send(shared, line);
    expect(answer.status).toBe(400);
    expect(answer.json).toEqual({ error: { code: "BadRequest", message: expect.any(String) } });
  });

  it.each([
    "GET /",
    "GET /odata",
    "GET /odata/syncjobs",
    "GET /odata/SyncJobs(1)",
    "GET /odata/syncjobs(1)/name",
    "GET /odata/syncjobs/1/",
    "GET /odata/trigger/",
    "GET /odata/trigger(1)",
    "GET /api/syncjobs/stop(1)",
    "GET /_sandbox/nothing",
  ])("%s is an unknown path: 404", async (line) => {
    expect((await send(shared, line)).status).toBe(404);
  });

  it.each([
    ["POST /odata/syncjobs(1)", "GET, PUT, DELETE"],
    ["GET /api/syncjobs/run(1)", "POST"],
    ["POST /odata/trigger", "GET"],
    ["DELETE /odata/approvals/$count", "GET"],
  ])("%s is a wrong method: 405, allowed %s", async (line, allow) => {
    const answer = await send(shared, line);
    expect([answer.status, answer.headers.get("allow")]).toEqual([405, allow]);
  });

  it("everything lies under the base path when there is one", async () => {
    const sandbox = await freshSandbox({ basePath: "/sync/v1" });
    expect(sandbox.baseUrl).toMatch(/\/sync\/v1$/);
    expect((await send(sandbox, "GET /odata/trigger/$count")).text).toBe("20");
    const outside = new URL("/odata/trigger", sandbox.baseUrl).href;
    expect((await send(sandbox, `GET ${outside}`)).status).toBe(404);
  });
});
