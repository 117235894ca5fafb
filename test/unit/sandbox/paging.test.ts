// Walking lists to their last item over real HTTP, with every style of link.
import { describe, expect, it } from "vitest";
import { KeptLinks } from "../../../src/sandbox/odata-page.ts";
import { type ListOrder, nextLinkStyles, tokenStyles } from "../../../src/sandbox/options.ts";
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
    // But what is nothing than a query belongs to the address that was asked, and a wrong host to
    // the right one.
    const base: string | URL = String(link).startsWith("?") ? url : new URL(json["@odata.context"], url);
    url = typeof link === "string" ? new URL(link, base).href : undefined;
    url = url?.replace("http://sync-inner.invalid:8080", new URL(sandbox.baseUrl).origin);
  }
  return { sizes, ids };
}

const oneTo = (last: number) => Array.from({ length: last }, (_, index) => index + 1);

describe("paging", () => {
  it.each(nextLinkStyles.flatMap((links) => tokenStyles.map((tokens) => [links, tokens] as const)))(
    "reaches the last of 250 activities by %s links with %s tokens",
    async (nextLinkStyle, tokenStyle) => {
      const sandbox = await freshSandbox({
        nextLinkStyle,
        tokenStyle,
        basePath: "/sync",
        activities: 250,
        pageSize: 30,
      });
      const { sizes, ids } = await walk(sandbox, list);
      expect(sizes).toEqual([30, 30, 30, 30, 30, 30, 30, 30, 10]);
      expect(ids).toEqual(oneTo(250));
      expect((await send(sandbox, `GET ${list}/$count`)).text).toBe("250");
    },
  );

  it.each([
    ["number", "$skip=100"],
    ["base64", `$skiptoken=${encodeURIComponent(btoa('{"r":100,"c":[{"a":true,"k":"Id","v":100}]}'))}`],
    ["key", "$skiptoken=Id-100"],
    ["guid", expect.stringMatching(/^\$skiptoken=[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/)],
    ["encoded", "$skiptoken=from%3D100%2B%26to%3D100%25"],
  ] as const)("%s tokens are written as real services write them", async (tokenStyle, query) => {
    const { json } = await send(await freshSandbox({ tokenStyle, nextLinkStyle: "query" }), `GET ${list}`);
    expect(json["@odata.nextLink"].slice(1)).toEqual(query);
  });

  it("opaque links have another path and no query; those that are made up are refused", async () => {
    const sandbox = await freshSandbox({ nextLinkStyle: "opaque", tokenStyle: "guid" });
    const { json } = await send(sandbox, `GET ${list}?repository=HR&$select=state`);
    expect(json["@odata.nextLink"]).toMatch(/^\/odata\/\$next\/[0-9a-f-]{36}$/);
    const next = await send(sandbox, `GET ${json["@odata.nextLink"]}`);
    expect([next.json.value.length, Object.keys(next.json.value[0])]).toEqual([30, ["state"]]);
    for (const bad of ["/odata/$next/Id-1", `${list}?$skiptoken=eyJub3Ro`, `${list}?$skiptoken=Id-x`])
      expect((await send(sandbox, `GET ${bad}`)).status).toBe(400);
  });

  it("the sandbox forgets the oldest of more than 10,000 links", () => {
    const links = new KeptLinks();
    const tokens = Array.from({ length: 10_001 }, (_, index) => links.keep(`text ${index}`, "guid", 1));
    expect(new Set(tokens).size).toBe(10_001);
    expect([tokens[0], tokens[1], tokens[10_000]].map((token) => links.find(token ?? ""))).toEqual([
      undefined,
      "text 1",
      "text 10000",
    ]);
  });

  it("mixed links have another style on each page", async () => {
    const sandbox = await freshSandbox({ nextLinkStyle: "mixed", pageSize: 10 });
    const links: string[] = [];
    for (let skip = 0; skip < 60; skip += 10)
      links.push((await send(sandbox, `GET ${list}?$skip=${skip}`)).json["@odata.nextLink"]);
    const name = list.slice("/odata/".length);
    expect(links).toEqual([
      `${sandbox.baseUrl}${list}?$skip=10`,
      "?$skip=20",
      `${list}?$skip=30`,
      expect.stringMatching(/^\/odata\/\$next\/\d+$/),
      `${name}?$skip=50`,
      `http://sync-inner.invalid:8080${list}?$skip=60`,
    ]);
  });

  it.each(tokenStyles)("with %s tokens each order has its own, and shows every item once", async (tokenStyle) => {
    const at = async (order: ListOrder) => freshSandbox({ order, tokenStyle, activities: 50, pageSize: 7 });
    expect((await walk(await at("descending"), list)).ids).toEqual(oneTo(50).toReversed());
    const hashed = await at("hash");
    const { ids } = await walk(hashed, list);
    expect(ids).not.toEqual(oneTo(50));
    expect(ids.toSorted((left, right) => left - right)).toEqual(oneTo(50));
    expect((await walk(hashed, list)).ids).toEqual(ids);
    await send(hashed, "POST /api/syncjobs/run(1)");
    const grown = (await walk(hashed, list)).ids;
    expect([grown.filter((id) => id !== 51), grown.at(-1) === 51]).toEqual([ids, false]);
    const shuffled = await at("shuffled");
    const [once, twice] = [(await walk(shuffled, list)).ids, (await walk(shuffled, list)).ids];
    expect(once).not.toEqual(twice);
    expect(twice.toSorted((left, right) => left - right)).toEqual(oneTo(50));
  });

  it("with an empty last page, a full page has a link although nothing follows", async () => {
    const exact = await freshSandbox({ activities: 200, emptyLastPage: true });
    expect((await walk(exact, list)).sizes).toEqual([100, 100, 0]);
    const more = await freshSandbox({ activities: 201, emptyLastPage: true, tokenStyle: "base64" });
    expect((await walk(more, list)).sizes).toEqual([100, 100, 1]);
  });

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

  it("wrong-host links carry another origin and the right path", async () => {
    const sandbox = await freshSandbox({ nextLinkStyle: "wrong-host", basePath: "/sync" });
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
