// Walking lists to their last item over real HTTP, with every style of link.
import { describe, expect, it } from "vitest";
import type { Sandbox } from "../../../src/sandbox/sandbox.ts";
import { freshSandbox, send } from "./caller.ts";

const list = "/odata/synchronizationactivities";

async function walk(sandbox: Sandbox, start: string): Promise<{ readonly sizes: number[]; readonly ids: number[] }> {
  const sizes: number[] = [];
  const ids: number[] = [];
  let url: string | undefined = sandbox.baseUrl + start;
  while (url !== undefined && sizes.length < 20) {
    const { json } = await send(sandbox, `GET ${url}`);
    sizes.push(json.value.length);
    for (const item of json.value) ids.push(item.activityId);
    const link: unknown = json["@odata.nextLink"];
    // The rule of OData JSON §4.3: a relative link starts at the context, and that at the request.
    url = typeof link === "string" ? new URL(link, new URL(json["@odata.context"], url)).href : undefined;
  }
  return { sizes, ids };
}

const oneTo = (last: number) => Array.from({ length: last }, (_, index) => index + 1);

describe("paging", () => {
  it.each(["absolute", "relative"] as const)(
    "reaches the last of 250 activities by %s links",
    async (nextLinkStyle) => {
      const sandbox = await freshSandbox({ nextLinkStyle, basePath: "/sync" });
      const { sizes, ids } = await walk(sandbox, list);
      expect(sizes).toEqual([100, 100, 50]);
      expect(ids).toEqual(oneTo(250));
      expect((await send(sandbox, `GET ${list}/$count`)).text).toBe("250");
    },
  );

  it("a list of exactly one page has no link, one more item brings one", async () => {
    const exact = await freshSandbox({ activities: 100 });
    expect((await send(exact, `GET ${list}`)).json).not.toHaveProperty(["@odata.nextLink"]);
    const more = await freshSandbox({ activities: 101 });
    expect((await walk(more, list)).sizes).toEqual([100, 1]);
  });

  it("keeps the other query options in the link, with a literal $", async () => {
    const sandbox = await freshSandbox();
    const { json } = await send(sandbox, `GET ${list}?repository=HR&$select=activityId,state&own=a%20b%26c`);
    const query = "repository=HR&$select=activityId%2Cstate&own=a+b%26c&$skip=100";
    expect(json["@odata.nextLink"]).toBe(`${sandbox.baseUrl}${list}?${query}`);
    expect(json["@odata.context"]).toBe(
      `${sandbox.baseUrl}/odata/$metadata#synchronizationactivities(activityId,state)`,
    );
    const next = await send(sandbox, `GET ${json["@odata.nextLink"]}`);
    expect(Object.keys(next.json.value[0])).toEqual(["activityId", "state"]);
    const all = await walk(sandbox, `${list}?repository=HR`);
    expect(all.ids.length).toBe(Number((await send(sandbox, `GET ${list}/$count?repository=HR`)).text));
  });

  it("links follow the Host header that the caller used", async () => {
    const sandbox = await freshSandbox();
    const url = sandbox.baseUrl.replace("127.0.0.1", "localhost");
    const { json } = await send(sandbox, `GET ${url}${list}`);
    expect(json["@odata.nextLink"]).toBe(`${url}${list}?$skip=100`);
  });

  it("wrong-scheme links carry another origin and the right path", async () => {
    const sandbox = await freshSandbox({ nextLinkStyle: "wrong-scheme", basePath: "/sync" });
    const { json } = await send(sandbox, `GET ${list}?repository=FIN`);
    expect(json["@odata.nextLink"]).toBe(`http://sync-inner.invalid:8080/sync${list}?repository=FIN&$skip=100`);
  });

  it("takes another page size", async () => {
    expect((await walk(await freshSandbox({ pageSize: 7, activities: 20 }), list)).sizes).toEqual([7, 7, 6]);
  });

  it("a position past the end is an empty last page", async () => {
    const { json } = await send(await freshSandbox(), `GET ${list}?$skip=1000`);
    expect(json.value).toEqual([]);
    expect(json).not.toHaveProperty(["@odata.nextLink"]);
  });
});
