// The data at the start: repeatable, complete, and under the names that were asked for.
import { describe, expect, it } from "vitest";
import { UsageError } from "../../../src/core/errors.ts";
import { parseFieldNames, type SandboxOptions, toFieldNames } from "../../../src/sandbox/options.ts";
import { startSandbox } from "../../../src/sandbox/sandbox.ts";
import { freshSandbox, handClock, send } from "./caller.ts";

const lists = [
  "syncjobsmasks",
  "approvals",
  "trigger",
  "authactivities",
  "synchronizationactivities",
  "syncconflictdetails",
];

async function everything(options: SandboxOptions): Promise<string> {
  const sandbox = await freshSandbox({ ...options, clock: handClock(), pageSize: 1_000 });
  const bodies = await Promise.all(lists.map((list) => send(sandbox, `GET /odata/${list}`)));
  return bodies.map((answer) => JSON.stringify(answer.json.value)).join("\n");
}

describe("seed data", () => {
  it("is the same for the same seed and another for another", async () => {
    expect(await everything({ seed: 7 })).toBe(await everything({ seed: 7 }));
    expect(await everything({ seed: 7 })).not.toBe(await everything({ seed: 8 }));
  });

  it("deals the sync jobs out to the repositories in blocks", async () => {
    const sandbox = await freshSandbox({ jobs: 5, repositories: ["A", "B", "C"] });
    const visible = async (repository: string) => {
      const { json } = await send(sandbox, `GET /odata/trigger?repository=${repository}`);
      return json.value.map((trigger: { triggerId: number }) => trigger.triggerId);
    };
    expect([await visible("A"), await visible("B"), await visible("C")]).toEqual([[1, 2], [3, 4], [5]]);
  });

  it("has ids in ascending order in every list", async () => {
    const sandbox = await freshSandbox();
    for (const [list, key] of [
      ["syncjobsmasks", "maskId"],
      ["synchronizationactivities", "activityId"],
      ["syncconflictdetails", "conflictId"],
    ] as const) {
      const { json } = await send(sandbox, `GET /odata/${list}`);
      expect(json.value.map((item: Record<string, number>) => item[key])).toEqual(
        json.value.map((_: unknown, index: number) => index + 1),
      );
    }
  });
});

describe("the shape of activities and conflicts", () => {
  it.each([
    ["plain", ["activityId", "syncJobId", "state", "startedAt", "finishedAt", "itemsProcessed"], "conflictId"],
    ["opaque", ["f1", "f2", "f3", "f4", "f5", "f6"], "f7"],
    ["keyless", ["syncJobId", "state", "startedAt", "finishedAt", "itemsProcessed"], undefined],
  ] as const)("%s", async (shape, names, conflictKey) => {
    const sandbox = await freshSandbox({ shape });
    const activities = await send(sandbox, "GET /odata/synchronizationactivities");
    expect(Object.keys(activities.json.value[0])).toEqual(names);
    const conflicts = await send(sandbox, "GET /odata/syncconflictdetails");
    expect(Object.values(conflicts.json.value[0])).toHaveLength(conflictKey === undefined ? 3 : 4);
    if (conflictKey !== undefined) expect(conflicts.json.value[0]).toHaveProperty(conflictKey, 1);
  });

  it("takes other names, and leaves a field out", async () => {
    const fieldNames = parseFieldNames("activityId=a, state=b,itemsProcessed=");
    const sandbox = await freshSandbox({ fieldNames });
    const { json } = await send(sandbox, "GET /odata/synchronizationactivities?$select=a,b,syncJobId");
    expect(json.value[0]).toEqual({ a: 1, syncJobId: 1, b: "Finished" });
    expect((await send(sandbox, "GET /odata/synchronizationactivities?$select=itemsProcessed")).status).toBe(400);
  });

  it.each([
    ["activityid=a", 'did you mean "activityId"'],
    ["state", "is not FIELD=NAME"],
    ["state=a=b", "is not FIELD=NAME"],
    ["state=1a", "is not a name"],
  ])("refuses %s: %s", (text, message) => {
    expect(() => parseFieldNames(text)).toThrow(UsageError);
    expect(() => parseFieldNames(text)).toThrow(message);
  });

  it("refuses the same name twice in one entity", () => {
    expect(() => toFieldNames("plain", { state: "syncJobId" })).toThrow(
      'two fields of one entity are named "syncJobId"',
    );
  });
});

describe("options", () => {
  it.each([
    [{ jobs: 0 }, "jobs is 0; it must be a whole number from 1 to 10000"],
    [{ port: 70_000 }, "port is 70000"],
    [{ seed: 1.5 }, "seed is 1.5"],
    [{ pageSize: Number.NaN }, "pageSize is NaN"],
    [{ runMs: [5, 4] as const }, "a run takes 5 to 4 ms"],
    [{ basePath: "sync/" }, 'base path "sync/" must look like /sync'],
    [{ token: "a b" }, "a token is 1 to 512"],
    [{ token: "a", limitedToken: "a" }, "the two tokens must differ"],
    [{ repositories: ["A", "A"] }, "different repository keys"],
    [{ host: "192.0.2.1" }, '"192.0.2.1" is no address of this machine'],
  ])("%o is refused", async (options, message) => {
    const starting = startSandbox(options);
    await expect(starting).rejects.toThrow(UsageError);
    await expect(starting).rejects.toThrow(message);
  });

  it("a port in use is refused with a hint", async () => {
    const { port } = new URL((await freshSandbox()).baseUrl);
    await expect(startSandbox({ port: Number(port) })).rejects.toThrow(`port ${port} on 127.0.0.1 is in use`);
  });
});
