// The client against SAP CAP: links relative to the service root with an encoded dollar, an empty
// last page, numbers as strings, DELETE with 204. What this proves does not rest on a server that
// Syncline's own authors wrote.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ServiceOptions, SyncService, staticToken } from "../../src/service/client.ts";
import { type CapServer, startCapServer } from "../support/cap-server.ts";

let cap: CapServer;
let baseUrl = "";

beforeAll(async () => {
  cap = await startCapServer();
  ({ baseUrl } = cap);
}, 60_000);

afterAll(() => cap.stop());

const connect = (options: Partial<ServiceOptions> = {}) =>
  new SyncService({ baseUrl, token: staticToken("contract-token"), retries: 0, ...options });

describe("the client against SAP CAP", () => {
  it("reads 250 activities once over three pages with relative links", async () => {
    const sizes: number[] = [];
    const ids: unknown[] = [];
    const links: (string | undefined)[] = [];
    for await (const page of connect().pages("GetActivities", { repository: "R 1" })) {
      sizes.push(page.items.length);
      links.push(page.nextLink);
      ids.push(...page.items.map((item) => Number(item["activityId"])));
    }
    expect(sizes).toEqual([100, 100, 50]);
    expect(ids).toEqual(Array.from({ length: 250 }, (_, index) => index + 1));
    expect(links[0]).toContain(`${baseUrl}/odata/synchronizationactivities?`);
    expect(links[0]).toContain("%24skiptoken=");
    expect(links[0]).toContain("repository=R");
  });

  it("takes the empty page after exactly 200 items for the end", async () => {
    const sizes: number[] = [];
    for await (const page of connect().pages("GetConflictDetails")) sizes.push(page.items.length);
    expect(sizes).toEqual([100, 100, 0]);
  });

  it("resumes at a checkpoint", async () => {
    const first = await connect().getActivities({ select: ["state"] });
    const rest: number[] = [];
    for await (const page of connect().pages("GetActivities", {}, { from: first.nextLink }))
      rest.push(page.items.length);
    expect(rest).toEqual([100, 50]);
  });

  it("counts", async () => {
    expect(await connect().count("GetActivities", { repository: "R" })).toBe(250);
  });

  it.each(["parentheses", "segment"] as const)(
    "reads, changes and deletes a sync job in the form %s",
    async (pathForm) => {
      const service = connect({ pathForm });
      const key = pathForm === "segment" ? 1 : 2;
      expect(await service.getSyncJobById(key, { select: ["name"] })).toMatchObject({ name: `Job ${key}` });
      expect(await service.updateSyncJobById(key, { name: "New" })).toMatchObject({ syncJobId: key, name: "New" });
      expect(await service.deleteSyncJobById(key)).toBe("deleted-no-content");
      await expect(service.getSyncJobById(key)).rejects.toMatchObject({ kind: "not-found", status: 404 });
    },
  );

  it("says what CAP says to a request that it refuses", async () => {
    await expect(connect().getActivities({ select: ["nothing"] })).rejects.toMatchObject({
      kind: "bad-request",
      answer: expect.stringContaining("nothing"),
      correlationId: expect.any(String),
    });
  });

  it.each([
    ["qualified", "repository"],
    ["unqualified", "repository"],
    ["query", "none"],
  ] as const)("loads an identity by the form %s with quotes %s", async (identityForm, quoteStrings) => {
    const id = "4be6c9a0-0f3b-4d55-9d7c-0c6f1a2b3c4d";
    const identities = await connect({ identityForm, quoteStrings }).getIdentityById(id, { repository: "H'R" });
    expect(identities).toMatchObject([{ id, idAsNumber: "9007199254740993", name: "of H'R" }]);
  });
});
