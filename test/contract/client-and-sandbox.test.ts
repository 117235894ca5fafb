// The client against the sandbox over real HTTP, row by row of the interface's tables
// (service-interface §4 to §8).
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { operationOf } from "../../src/feeds/service-list.ts";
import { listNames } from "../../src/model/feed.ts";
import { parseFault } from "../../src/sandbox/faults.ts";
import { type Sandbox, startSandbox } from "../../src/sandbox/sandbox.ts";
import {
  type Operation,
  operationNames,
  operations,
  type ServiceError,
  type ServiceOptions,
  SyncService,
  staticToken,
} from "../../src/service/client.ts";

let sandbox: Sandbox;
const clients: SyncService[] = [];
const limitedToken = "limited";

beforeAll(async () => {
  sandbox = await startSandbox({
    jobs: 130,
    activities: 250,
    limitedToken,
    runMs: [60_000, 60_000],
    basePath: "/sync",
  });
});
afterAll(async () => {
  for (const client of clients) client.close();
  await sandbox.stop();
});

function connect(options: Partial<ServiceOptions> = {}): SyncService {
  const client = new SyncService({
    baseUrl: sandbox.baseUrl,
    token: staticToken(sandbox.token),
    retries: 0,
    ...options,
  });
  clients.push(client);
  return client;
}

const uuid = "00000000-0000-4000-8000-000000000001";
const repository = "HR";

// One good call of each of the fifteen operations; sync job `key` is not running.
const calls: Readonly<Record<Operation, (client: SyncService, key: number) => Promise<unknown>>> = {
  GetSyncJobById: (client, key) => client.getSyncJobById(key, { repository }),
  UpdateSyncJobById: (client, key) => client.updateSyncJobById(key, { name: "New name" }, { repository }),
  DeleteSyncJobById: (client, key) => client.deleteSyncJobById(key, { repository }),
  RunSyncJob: (client, key) => client.runSyncJob(key, { repository }),
  EnableSyncJobById: (client, key) => client.enableSyncJobById(key, { repository }),
  UpdateEcmDocumentMaskById: (client, key) =>
    client.updateEcmDocumentMaskById(key * 3 - 2, { name: "Contract" }, { repository }),
  GetJobMasks: (client) => client.getJobMasks({ repository }),
  UpdateDriveSyncTargetById: (client, key) => client.updateDriveSyncTargetById(key, { siteName: "HR" }, { repository }),
  UpdateSiteSyncTargetById: (client, key) => client.updateSiteSyncTargetById(key, { siteName: "HR" }, { repository }),
  GetApprovals: (client) => client.getApprovals({ repository }),
  GetIdentityById: (client) => client.getIdentityById(uuid, { repository }),
  GetTriggers: (client) => client.getTriggers({ repository }),
  GetAuthActivities: (client) => client.getAuthActivities({ repository }),
  GetActivities: (client) => client.getActivities({ repository }),
  GetConflictDetails: (client) => client.getConflictDetails({ repository }),
};

async function failureOf(call: Promise<unknown>): Promise<ServiceError> {
  return call.then(
    () => {
      throw new Error("it should have failed");
    },
    (error: ServiceError) => error,
  );
}

describe("each of the fifteen operations (§4.1)", () => {
  it("is in the table", () => {
    expect([...operationNames].sort()).toEqual(Object.keys(calls).sort());
    expect(operationNames).toHaveLength(15);
  });

  let nextKey = 1;
  for (const operation of Object.keys(calls) as Operation[]) {
    for (const pathForm of ["parentheses", "segment"] as const) {
      it(`${operation} works with the key in ${pathForm}`, async () => {
        nextKey += 1;
        await calls[operation](connect({ pathForm }), nextKey);
        expect(sandbox.requests()[operation]?.["200"]).toBeGreaterThan(0);
      });
    }
  }
});

describe("what is answered (§2, §4.3, §4.4)", () => {
  it("gives entities with their documented fields", async () => {
    const client = connect();
    expect(await client.getSyncJobById(60)).toEqual({ syncJobId: 60, name: expect.any(String) });
    expect(await client.updateSyncJobById(60, { name: "Contracts" })).toMatchObject({
      syncJobId: 60,
      name: "Contracts",
    });
    expect((await client.getJobMasks()).items[0]).toMatchObject({
      maskId: expect.any(Number),
      name: expect.any(String),
      ecmMaskId: expect.any(String),
      type: expect.stringMatching(/^(Doc|Folder)Mask$/),
    });
    expect(await client.updateDriveSyncTargetById(60, { folderName: "In" })).toMatchObject({
      thirdSystemSyncTargetId: 60,
      folderName: "In",
    });
    expect((await client.getTriggers()).items[0]).toMatchObject({
      triggerId: expect.any(Number),
      isActive: expect.any(Boolean),
    });
    expect((await client.getAuthActivities()).items[0]).toMatchObject({
      authAccountActivityEntityId: expect.any(Number),
      accountIdentifier: expect.any(Boolean),
    });
    expect(await client.getIdentityById(uuid, { repository })).toEqual([
      { id: uuid, idAsNumber: expect.any(Number), name: expect.any(String), isAdministrator: expect.any(Boolean) },
    ]);
  });

  it("tells true from false when it deletes", async () => {
    const client = connect();
    await client.runSyncJob(61);
    expect(await client.deleteSyncJobById(61)).toBe("not-deleted");
    expect(await client.deleteSyncJobById(62)).toBe("deleted");
    expect(await failureOf(client.deleteSyncJobById(62))).toMatchObject({ kind: "not-found", status: 404 });
  });

  it("finds an identity in all three forms, quoted or not", async () => {
    for (const identityForm of ["qualified", "unqualified", "query"] as const) {
      for (const quoteStrings of ["none", "repository"] as const) {
        const [identity] = await connect({ identityForm, quoteStrings } as Partial<ServiceOptions>).getIdentityById(
          uuid,
          { repository },
        );
        expect(identity?.id).toBe(uuid);
      }
    }
  });

  it("selects properties and accepts $expand on reads", async () => {
    const client = connect();
    expect(Object.keys(await client.getSyncJobById(63, { select: ["name"] }))).toContain("name");
    expect((await client.getTriggers({ select: ["isActive"] })).items[0]).not.toHaveProperty("maskId");
    await client.getApprovals({ expand: ["anything"] });
  });
});

describe("lists (§8)", () => {
  for (const list of listNames) {
    it(`of ${list} have a count that equals the items of all pages`, async () => {
      const client = connect();
      let items = 0;
      for await (const page of client.pages(operationOf[list])) {
        expect(page.items.length).toBeLessThanOrEqual(100);
        items += page.items.length;
      }
      expect(await client.count(operationOf[list])).toBe(items);
    });
  }

  for (const nextLinks of ["absolute", "relative", "wrong-host"] as const) {
    it(`with ${nextLinks} next links are followed to the last item`, async () => {
      const other = await startSandbox({
        activities: 250,
        nextLinkStyle: nextLinks,
        repositories: ["HR"],
        basePath: "/deep/base",
      });
      const client = connect({ baseUrl: other.baseUrl, token: staticToken(other.token) });
      const seen: unknown[] = [];
      for await (const page of client.pages("GetActivities", { repository }))
        seen.push(...page.items.map((item) => item["activityId"]));
      await other.stop();
      expect(seen).toEqual(Array.from({ length: 250 }, (_, index) => index + 1));
    });
  }
});

describe("statuses (§5, §7)", () => {
  const kinds = { 400: "bad-request", 401: "unauthorized", 404: "not-found", 500: "server" } as const;

  for (const operation of operationNames) {
    it(`${operation}: 500 is a server error, with what the interface says of it`, async () => {
      const other = await startSandbox({ repositories: ["HR"], faults: [parseFault(`500-before,op=${operation}`)] });
      const error = await failureOf(
        calls[operation](connect({ baseUrl: other.baseUrl, token: staticToken(other.token) }), 1),
      );
      await other.stop();
      expect(error).toMatchObject({
        kind: kinds[500],
        status: 500,
        documented: `${operations[operation].statuses[500]} (service-interface §7)`,
      });
    });

    it(`${operation}: a wrong token is unauthorized`, async () => {
      expect(await failureOf(calls[operation](connect({ token: staticToken("wrong") }), 64))).toMatchObject({
        kind: kinds[401],
        status: 401,
      });
    });
  }

  it("400 for read-only properties, on every update (§7 rule 1)", async () => {
    const client = connect();
    const bodies = [
      () => client.updateSyncJobById(65, { syncJobId: 1 }),
      () => client.updateEcmDocumentMaskById(193, { maskId: 1 }),
      () => client.updateDriveSyncTargetById(65, { thirdSystemSyncTargetId: 1 }),
      () => client.updateSiteSyncTargetById(65, { thirdSystemSyncTargetId: 1 }),
    ];
    for (const body of bodies) expect(await failureOf(body())).toMatchObject({ kind: "bad-request", status: 400 });
  });

  it("404 for a sync job that is not there, on update and delete (§7 rule 2)", async () => {
    const client = connect();
    expect(await failureOf(client.updateSyncJobById(9_999, { name: "x" }))).toMatchObject({
      kind: "not-found",
      status: 404,
    });
    expect(await failureOf(client.deleteSyncJobById(9_999))).toMatchObject({ kind: "not-found", status: 404 });
  });

  it("401 for the identity without the rights (§5.2)", async () => {
    const client = connect({ token: staticToken(limitedToken) });
    expect(await failureOf(client.getIdentityById(uuid, { repository }))).toMatchObject({
      kind: "unauthorized",
      status: 401,
    });
    await client.getTriggers();
  });
});
