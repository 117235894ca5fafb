// Applying one object (src/apply/apply-object.ts) over real HTTP and a real Redis: one story each.
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import type { ApplyDependencies } from "../../../src/apply/apply-dependencies.ts";
import { type ApplyResult, applyObject } from "../../../src/apply/apply-object.ts";
import { MaskCache } from "../../../src/apply/mask-cache.ts";
import type { DeclaredKind, DeclaredObject } from "../../../src/core/declared-object.ts";
import { SyncService, staticToken } from "../../../src/service/client.ts";
import { DeclaredMemory } from "../../../src/store/declared-memory.ts";
import { DeclaredService } from "../../support/declared-service.ts";
import { redisForTest, storeForTest } from "../../support/redis.ts";
import { shiftingMasks } from "../../support/shifting-masks.ts";

const redis = redisForTest();
const fake = new DeclaredService();
let stories = 0;

const store = await storeForTest(redis);
const baseUrl = await fake.start();
const service = new SyncService({ baseUrl, token: staticToken("secret"), retries: 0 });
beforeEach(() => {
  stories += 1;
});
afterAll(async () => {
  service.close();
  fake.stop();
});

function declare(kind: DeclaredKind, id: number, fields: Record<string, string>): DeclaredObject {
  return { kind, id, fields };
}

/** Each story has a service name of its own, so that it remembers nothing of the others. */
function apply(object: DeclaredObject, more: Partial<ApplyDependencies> = {}): Promise<ApplyResult> {
  return applyObject(object, {
    place: { service: `story-${stories}`, repository: "HR" },
    service,
    masks: new MaskCache(),
    memory: new DeclaredMemory(store),
    signal: new AbortController().signal,
    sinceMs: Number.POSITIVE_INFINITY,
    by: `task-${crypto.randomUUID()}`,
    holder: async () => undefined,
    ...more,
  });
}

const putsOf = () => fake.puts.map(({ object, fields, status }) => `${object} ${fields.join(",")} ${status}`);

describe("what is sent", () => {
  it("is what differs and nothing else, though more was read and more is declared", async () => {
    fake.set({ "driveTarget-9": { fields: { siteName: "A", siteId: "1", folderName: "In", folderId: "f" } } });
    await apply(declare("driveTarget", 9, { siteName: "A", folderName: "In" }));
    const second = await apply(declare("driveTarget", 9, { siteName: "A", folderName: "Out" }));
    expect(putsOf()).toEqual(["driveTarget-9 siteName,folderName 200", "driveTarget-9 folderName 200"]);
    expect(second.changes).toEqual([
      { field: "folderName", before: "In", isBeforeKnown: true, after: "Out", isDrift: false },
    ]);
  });

  it("is nothing when a sync job has the name already, also the first time", async () => {
    fake.set({ "syncJob-42": { fields: { name: "Contracts" } } });
    expect(await apply(declare("syncJob", 42, { name: "Contracts" }))).toEqual({
      end: "done",
      changes: [],
      blocked: [],
      unread: [],
    });
    expect(putsOf()).toEqual([]);
  });

  it("waits while another task holds the sync job, also a sync job of a mask", async () => {
    fake.set({ "docMask-7": { fields: { name: "A" } } });
    const asked: string[] = [];
    const holder = async (syncJobId: string) => {
      asked.push(syncJobId);
      return "nightly__run__42__1";
    };
    expect(await apply(declare("docMask", 7, { name: "B" }), { holder })).toMatchObject({ end: "busy" });
    expect(asked).toEqual(["42"]);
    expect(putsOf()).toEqual([]);
  });

  it("is one caller's at a time, so that each tells what it changed", async () => {
    fake.set({ "driveTarget-9": { fields: { siteName: "x", folderName: "x" } } });
    const folder = () => apply(declare("driveTarget", 9, { folderName: "In" }), { by: "task-b" });
    let meanwhile: Promise<ApplyResult> | undefined;
    const fate = () => {
      meanwhile ??= folder();
      return "answered" as const;
    };
    fake.become({ fate });
    const site = await apply(declare("driveTarget", 9, { siteName: "A" }), { by: "task-a" });
    expect(site).toMatchObject({ end: "done", changes: [{ field: "siteName" }] });
    expect(await meanwhile).toMatchObject({ end: "busy", holder: "task-a", isSent: false, changes: [] });
    expect(await folder()).toMatchObject({ end: "done", changes: [{ field: "folderName" }] });
  });

  it("is no more once its hold ran out during a round and another caller has taken it", async () => {
    fake.set(
      { "driveTarget-9": { fields: { siteName: "x", folderName: "x" } } },
      { readOnly: { "driveTarget.folderName": "silent" } },
    );
    const memory = new DeclaredMemory(store);
    const hold = memory.hold.bind(memory);
    let rounds = 0;
    const outrun: typeof hold = async (place, object, by) => {
      rounds += 1;
      if (rounds === 2) {
        await memory.letGo(place, object, by);
        await hold(place, object, "task-b");
      }
      return hold(place, object, by);
    };
    const both = declare("driveTarget", 9, { siteName: "A", folderName: "In" });
    const applied = await apply(both, { by: "task-a", memory: Object.assign(memory, { hold: outrun }) });
    expect(applied).toEqual({ end: "busy", holder: "task-b", isSent: false, changes: [] });
    expect(putsOf()).toEqual(["driveTarget-9 siteName,folderName 400"]);
  });

  it("is nothing when the service answers with another sync job", async () => {
    fake.set({ "syncJob-42": { fields: { name: "A", syncJobId: "43" } } });
    const detail = "the service answered with sync job 43 instead";
    expect(await apply(declare("syncJob", 42, { name: "B" }))).toMatchObject({ end: "missing", detail });
    expect(putsOf()).toEqual([]);
  });

  it("says what is not there", async () => {
    fake.set({});
    expect(await apply(declare("syncJob", 1, { name: "A" }))).toMatchObject({ end: "missing" });
    expect(await apply(declare("docMask", 1, { name: "A" }))).toMatchObject({ end: "missing" });
    expect(await apply(declare("siteTarget", 1, { siteName: "A" }))).toMatchObject({ end: "missing" });
    expect(putsOf()).toEqual(["siteTarget-1 siteName 404"]);
  });

  it("is no more once the service created a target of it, until a person keeps that", async () => {
    fake.set({}, { upserts: true });
    const wrong = declare("siteTarget", 1, { siteName: "A" });
    const created = { end: "missing", detail: expect.stringContaining("an update created (status 201") };
    expect(await apply(wrong)).toMatchObject({ ...created, changes: [{ field: "siteName", after: "A" }] });
    expect(await apply(wrong)).toMatchObject({ ...created, changes: [] });
    expect(putsOf()).toEqual(["siteTarget-1 siteName 201"]);
    const forgetBeforeMs = (await new DeclaredMemory(store).nowMs()) + 1;
    expect(await apply(wrong, { forgetBeforeMs })).toMatchObject({ end: "done", blocked: [] });
    expect(await apply(wrong)).toMatchObject({ end: "done", changes: [] });
    expect(putsOf()).toEqual(["siteTarget-1 siteName 201", "siteTarget-1 siteName 200"]);
  });
});

describe("an answer that got lost", () => {
  const target = (siteName: string) => declare("siteTarget", 3, { siteName });

  it("leaves a target open: declaring it again sends it again", async () => {
    fake.set({ "siteTarget-3": { fields: { siteName: "old" } } });
    await apply(target("A"));
    fake.become({ fate: (method) => (method === "PUT" ? "lost-after" : "answered") });
    expect(await apply(target("B"))).toMatchObject({ end: "failed", isSent: true });
    fake.become({});
    expect(await apply(target("A"))).toMatchObject({ end: "done" });
    expect(fake.fieldsOf("siteTarget-3")).toEqual({ siteName: "A" });
  });

  it("leaves a target open, too, when a later request surely did nothing", async () => {
    fake.set({ "siteTarget-3": { fields: { siteName: "old" } } });
    await apply(target("A"));
    fake.become({ fate: (method) => (method === "PUT" ? "lost-after" : "answered") });
    await apply(target("B"), { by: "task-b" });
    const denied = { acquire: async () => ({ deniedBy: "concurrency", waitMs: 1 }) as const };
    const limited = new SyncService({ baseUrl, token: staticToken("secret"), retries: 0, limiter: denied });
    expect(await apply(target("B"), { by: "task-b", service: limited })).toMatchObject({ end: "failed", isSent: true });
    limited.close();
    fake.become({});
    expect(await apply(target("A"))).toMatchObject({ end: "done" });
    expect(fake.fieldsOf("siteTarget-3")).toEqual({ siteName: "A" });
  });

  it("is another task's doubt, and none of one that surely sent nothing", async () => {
    fake.set({ "siteTarget-3": { fields: { siteName: "old" } } });
    fake.become({ fate: (method) => (method === "PUT" ? "lost-after" : "answered") });
    await apply(target("B"), { by: "task-b" });
    const denied = { acquire: async () => ({ deniedBy: "concurrency", waitMs: 1 }) as const };
    const limited = new SyncService({ baseUrl, token: staticToken("secret"), retries: 0, limiter: denied });
    for (const by of ["task-c", "task-c"])
      expect(await apply(target("B"), { by, service: limited })).toMatchObject({ end: "failed", isSent: false });
    limited.close();
  });

  it("is not forgotten by a refusal of another field, or of another value", async () => {
    const drive = (siteName: string, folderName: string) => declare("driveTarget", 9, { siteName, folderName });
    fake.set({ "driveTarget-9": { fields: { siteName: "old", folderName: "old" } } });
    await apply(drive("A", "In"));
    fake.become({ fate: (method) => (method === "PUT" ? "lost-after" : "answered") });
    await apply(drive("B", "In"));
    fake.become({ readOnly: { "driveTarget.folderName": "named" } });
    await apply(drive("A", "Out"));
    expect(fake.fieldsOf("driveTarget-9")).toEqual({ siteName: "A", folderName: "In" });
  });

  it("is not forgotten by an attempt that cannot even read", async () => {
    fake.set({ "syncJob-42": { fields: { name: "A" } } });
    const object = declare("syncJob", 42, { name: "B" });
    fake.become({ fate: (method) => (method === "PUT" ? "lost-after" : "answered") });
    await apply(object, { by: "task-b" });
    fake.become({ fate: () => "lost-before" });
    expect(await apply(object, { by: "task-b" })).toMatchObject({ end: "failed", isSent: true });
    expect(await apply(object, { by: "another" })).toMatchObject({ end: "failed", isSent: false });
  });

  it("is found by the next read: the change is reported as the drift it corrected", async () => {
    fake.set({ "syncJob-42": { fields: { name: "A" } } });
    const object = declare("syncJob", 42, { name: "A" });
    await apply(object);
    fake.changeByHand("syncJob-42", "name", "B");
    fake.become({ fate: (method) => (method === "PUT" ? "lost-after" : "answered") });
    expect(await apply(object)).toMatchObject({ end: "failed", isSent: true, changes: [] });
    fake.become({});
    const change = { field: "name", before: "B", isBeforeKnown: true, after: "A", isDrift: true };
    expect(await apply(object)).toEqual({ end: "done", blocked: [], unread: [], changes: [change] });
    expect(putsOf()).toEqual(["syncJob-42 name 200"]);
    expect(await apply(object)).toMatchObject({ changes: [] });
  });

  it("stays open while the old value shows: the request may take effect later", async () => {
    fake.set({ "syncJob-42": { fields: { name: "A" } } });
    const object = declare("syncJob", 42, { name: "B" });
    const by = "task-b";
    fake.become({ fate: (method) => (method === "PUT" ? "lost-before" : "answered") });
    await apply(object, { by });
    fake.become({});
    const holder = async () => "nightly__run__42__1";
    expect(await apply(object, { by: "another", holder })).toMatchObject({ end: "busy", isSent: false });
    await apply(object, { by });
    fake.changeByHand("syncJob-42", "name", "A");
    fake.become({ fate: (method) => (method === "PUT" ? "lost-before" : "answered") });
    await apply(object, { by });
    expect(await apply(object, { by, holder })).toMatchObject({ end: "busy", isSent: true });
    fake.changeByHand("syncJob-42", "name", "B");
    expect(await apply(object, { by })).toMatchObject({ end: "done", changes: [{ before: "A", after: "B" }] });
  });

  it("is confirmed by a read of the masks from after the request", async () => {
    fake.set({ "docMask-7": { fields: { name: "A" } } });
    const masks = new MaskCache();
    fake.become({ fate: (method) => (method === "PUT" ? "lost-after" : "answered") });
    await apply(declare("docMask", 7, { name: "B" }), { masks, sinceMs: 0 });
    expect(await apply(declare("docMask", 7, { name: "B" }), { masks, sinceMs: 0 })).toMatchObject({ end: "done" });
    expect(putsOf()).toEqual(["docMask-7 name 200"]);
  });

  it("of a mask that slipped over a page boundary is made; a missing one is missing", async () => {
    const masks = [1, 2, 3, 4, 5].map((maskId) => ({ maskId, syncJobId: maskId, name: "A" }));
    let readings = 0;
    const shifting = await shiftingMasks(masks, () => {
      readings += 1;
      if (readings === 1) masks.shift();
    });
    expect(await apply(declare("docMask", 3, { name: "A" }), { service: shifting })).toMatchObject({ end: "done" });
    expect(await apply(declare("docMask", 1, { name: "A" }), { service: shifting })).toMatchObject({ end: "missing" });
    expect(readings).toBe(4);
  });

  it("of missing masks is made once: two readings that agree serve for all of them", async () => {
    const listed = [1, 2, 3].map((maskId) => ({ maskId, syncJobId: maskId }));
    let readings = 0;
    const service = await shiftingMasks(listed, () => {
      readings += 1;
    });
    const shared = { service, masks: new MaskCache(), sinceMs: 0 };
    const missing = (id: number) => apply(declare("docMask", id, { name: "A" }), shared);
    expect(await Promise.all([missing(7), missing(8)])).toMatchObject([{ end: "missing" }, { end: "missing" }]);
    expect(await missing(9)).toMatchObject({ end: "missing" });
    expect(readings).toBe(2);
  });

  it("to the mending of a target's drift is told as that when it is sent again", async () => {
    fake.set({ "driveTarget-9": { fields: { siteName: "x", folderName: "x" }, etag: "body" } });
    await apply(declare("driveTarget", 9, { siteName: "A" }));
    fake.changeByHand("driveTarget-9", "siteName", "by hand");
    let puts = 0;
    const fate = (method: string) => {
      puts += method === "PUT" ? 1 : 0;
      return puts === 2 ? "lost-before" : "answered";
    };
    fake.become({ fate });
    const both = declare("driveTarget", 9, { siteName: "A", folderName: "In" });
    expect(await apply(both)).toMatchObject({ end: "failed", isSent: true });
    expect((await apply(both)).changes.map(({ field, isDrift }) => [field, isDrift])).toEqual([
      ["siteName", true],
      ["folderName", false],
    ]);
  });

  it("of another shape is settled by reading at once", async () => {
    fake.set({ "syncJob-42": { fields: { name: "A" }, answers: "empty" } });
    expect(await apply(declare("syncJob", 42, { name: "B" }))).toMatchObject({
      end: "done",
      changes: [{ after: "B" }],
    });
    expect(putsOf()).toEqual(["syncJob-42 name 200"]);
  });

  it("a task that is delivered again tells what it changed before", async () => {
    fake.set({ "syncJob-42": { fields: { name: "A" } } });
    const first = await apply(declare("syncJob", 42, { name: "B" }), { by: "task-1" });
    expect(await apply(declare("syncJob", 42, { name: "B" }), { by: "task-1" })).toEqual(first);
    expect(await apply(declare("syncJob", 42, { name: "B" }), { by: "task-2" })).toMatchObject({ changes: [] });
  });
});

describe("a service that wants to know the version", () => {
  it("gets the one that was read, and after a 412 the one of a second reading", async () => {
    fake.set({ "syncJob-42": { fields: { name: "A" }, etag: "header" } });
    let reads = 0;
    // Somebody changes it right after the first reading.
    const fate = (method: string) => {
      if (method === "GET") reads += 1;
      if (method === "PUT" && reads === 1) fake.changeByHand("syncJob-42", "name", "C");
      return "answered" as const;
    };
    fake.become({ fate });
    expect(await apply(declare("syncJob", 42, { name: "B" }))).toMatchObject({
      end: "done",
      changes: [{ before: "C", after: "B" }],
    });
    expect(putsOf()).toEqual(["syncJob-42 name 412", "syncJob-42 name 200"]);
  });

  it("is left alone after two repetitions", async () => {
    fake.set({ "syncJob-42": { fields: { name: "A" }, etag: "body" } });
    let count = 0;
    const fate = (method: string) => {
      count += 1;
      if (method === "PUT") fake.changeByHand("syncJob-42", "name", `C${count}`);
      return "answered" as const;
    };
    fake.become({ fate });
    expect(await apply(declare("syncJob", 42, { name: "B" }))).toMatchObject({ end: "precondition" });
    expect(putsOf()).toEqual(["syncJob-42 name 412", "syncJob-42 name 412", "syncJob-42 name 412"]);
  });

  it("and shows none is reported, where the object can be read", async () => {
    fake.set({ "syncJob-42": { fields: { name: "A" }, etag: "hidden" } });
    expect(await apply(declare("syncJob", 42, { name: "B" }))).toMatchObject({ end: "precondition" });
    expect(putsOf()).toEqual(["syncJob-42 name 428"]);
  });

  it("gets any version of a target; a 412 means drift and sets every declared field", async () => {
    fake.set({ "driveTarget-9": { fields: { siteName: "x", folderName: "x" }, etag: "body" } });
    await apply(declare("driveTarget", 9, { siteName: "A", folderName: "In" }));
    fake.changeByHand("driveTarget-9", "siteName", "by hand");
    const applied = await apply(declare("driveTarget", 9, { siteName: "A", folderName: "Out" }));
    expect(fake.fieldsOf("driveTarget-9")).toEqual({ siteName: "A", folderName: "Out" });
    expect(putsOf()).toEqual([
      "driveTarget-9 siteName,folderName 428",
      "driveTarget-9 siteName,folderName 200",
      "driveTarget-9 folderName 412",
      "driveTarget-9 siteName,folderName 200",
    ]);
    expect(applied.changes.map(({ field, isDrift }) => [field, isDrift])).toEqual([
      ["siteName", true],
      ["folderName", false],
    ]);
  });
});

describe("a field that the service does not take", () => {
  const target = { fields: { siteName: "x", siteId: "x", folderName: "x" } };

  it("is named by a 400, left out, and not sent again for any object of its kind", async () => {
    fake.set({ "siteTarget-1": target, "siteTarget-2": target }, { readOnly: { "siteTarget.siteId": "named" } });
    const fields = { siteName: "A", siteId: "1", folderName: "In" };
    const first = await apply(declare("siteTarget", 1, fields));
    await apply(declare("siteTarget", 2, { ...fields, siteId: "2" }));
    expect(putsOf()).toEqual([
      "siteTarget-1 siteName,siteId,folderName 400",
      "siteTarget-1 siteName,folderName 200",
      "siteTarget-2 siteName,folderName 200",
    ]);
    expect(first).toMatchObject({ end: "done", blocked: [{ field: "siteId", block: { how: "read-only" } }] });
    expect(first.changes.map(({ field }) => field)).toEqual(["siteName", "folderName"]);
  });

  it("is found one by one when the 400 names none, and sent apart for other objects", async () => {
    fake.set({ "siteTarget-1": target, "siteTarget-2": target }, { readOnly: { "siteTarget.siteId": "silent" } });
    const fields = { siteName: "A", siteId: "1", folderName: "In" };
    await apply(declare("siteTarget", 1, fields));
    expect(await apply(declare("siteTarget", 1, fields))).toMatchObject({ blocked: [{ field: "siteId" }] });
    await apply(declare("siteTarget", 2, fields));
    expect(putsOf()).toEqual([
      "siteTarget-1 siteName,siteId,folderName 400",
      "siteTarget-1 siteName 200",
      "siteTarget-1 siteId 400",
      "siteTarget-1 folderName 200",
      "siteTarget-2 siteName,folderName 200",
      "siteTarget-2 siteId 400",
    ]);
  });

  it("is tried with another value, or again on request; once taken it is forgotten", async () => {
    fake.set({ "syncJob-42": { fields: { name: "x" } } }, { readOnly: { "syncJob.name": "named" } });
    await apply(declare("syncJob", 42, { name: "A" }));
    fake.become({});
    expect(await apply(declare("syncJob", 42, { name: "A" }))).toMatchObject({ blocked: [{ field: "name" }] });
    const forgetBeforeMs = (await new DeclaredMemory(store).nowMs()) + 1;
    expect(await apply(declare("syncJob", 42, { name: "A" }), { forgetBeforeMs })).toMatchObject({ blocked: [] });
    expect(await apply(declare("syncJob", 42, { name: "B" }))).toMatchObject({
      blocked: [],
      changes: [{ after: "B" }],
    });
    expect(putsOf()).toEqual(["syncJob-42 name 400", "syncJob-42 name 200", "syncJob-42 name 200"]);
  });

  it("is not called changed when the service says so and keeps the old value", async () => {
    fake.set({ "syncJob-42": { fields: { name: "x" } } }, { ignored: ["syncJob.name"] });
    const ignored = { end: "done", changes: [], blocked: [{ field: "name", block: { how: "ignored" } }] };
    expect(await apply(declare("syncJob", 42, { name: "A" }))).toMatchObject(ignored);
    expect(await apply(declare("syncJob", 42, { name: "A" }))).toMatchObject(ignored);
    expect(putsOf()).toEqual(["syncJob-42 name 200"]);
  });
});

describe("a change that was made and does not show as it was sent", () => {
  it("is told with the value that the service made of it, once", async () => {
    const rewrite = (value: string) => value.replaceAll(/ +/g, " ");
    fake.set({ "syncJob-42": { fields: { name: "Old" } } }, { rewrite });
    const object = declare("syncJob", 42, { name: "Contracts  HR" });
    expect(await apply(object)).toMatchObject({
      end: "done",
      changes: [{ before: "Old", after: "Contracts HR" }],
      blocked: [{ before: "Contracts HR", block: { how: "altered" } }],
    });
    const stayed = { changes: [], blocked: [{ before: "Contracts HR", block: { how: "ignored" } }] };
    expect(await apply(object)).toMatchObject(stayed);
    expect(await apply(object)).toMatchObject(stayed);
    expect(putsOf()).toHaveLength(2);
  });

  it.each([
    ["the old value, as a late copy does", "Old"],
    ["a third one, which a person set", "By hand"],
  ])("is told when the next read shows %s, and is looked at again", async (_what, shown) => {
    fake.set({ "syncJob-42": { fields: { name: "Old" } } });
    let reads = 0;
    const fate = (method: string) => {
      if (method === "GET") reads += 1;
      if (reads === 2) fake.changeByHand("syncJob-42", "name", shown);
      return "answered" as const;
    };
    fake.become({ fate });
    const object = declare("syncJob", 42, { name: "New" });
    expect(await apply(object)).toMatchObject({
      changes: [{ before: "Old", after: "New" }],
      blocked: [{ before: shown, block: { how: "altered" } }],
    });
    fake.become({});
    expect(await apply(object)).toMatchObject({ end: "done", blocked: [] });
    expect(fake.fieldsOf("syncJob-42")).toEqual({ name: "New" });
  });
});
