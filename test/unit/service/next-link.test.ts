import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { resolveNextLink } from "../../../src/service/next-link.ts";
import { collect, connect, json, startServer } from "./test-server.ts";

const base = "https://svc.example/sync";
const list = `${base}/odata/approvals`;
const context = "https://svc.example/sync/odata/$metadata#approvals";

function resolve(link: string, contextUrl: string | undefined = undefined, requestUrl = `${list}?repository=R`) {
  const result = resolveNextLink({
    link,
    contextUrl,
    requestUrl: new URL(requestUrl),
    collectionUrl: new URL(list),
    basePath: "/sync",
  });
  return "url" in result ? `${result.url.href}${result.rebased ? " (rebased)" : ""}` : result.refused;
}

describe("a next link that may be followed", () => {
  it.each([
    ["absolute", `${list}?$skip=100`, undefined, `${list}?$skip=100`],
    [
      "absolute with its port spelled out",
      "https://svc.example:443/sync/odata/approvals?$skip=100",
      undefined,
      `${list}?$skip=100`,
    ],
    ["absolute path", "/sync/odata/approvals?$skip=100", undefined, `${list}?$skip=100`],
    [
      "relative to the service root by the context (CAP)",
      "approvals?%24skiptoken=100",
      context,
      `${list}?%24skiptoken=100`,
    ],
    [
      "relative, with a relative context",
      "approvals?%24skiptoken=100",
      "$metadata#approvals",
      `${list}?%24skiptoken=100`,
    ],
    ["relative, without a context", "approvals?p=2", undefined, `${list}?p=2`],
    ["a query alone", "?p=2", undefined, `${list}?p=2`],
    ["a query alone, with a context", "?p=2", context, `${list}?p=2`],
    [
      "the query kept byte for byte",
      "?a=%7e%2F%2f&&=;+$,:@!'()*[]{}~|^`",
      undefined,
      `${list}?a=%7e%2F%2f&&=;+$,:@!%27()*[]{}~|^\``,
    ],
    ["dots in the query alone", "approvals?..", undefined, `${list}?..`],
    ["slashes, colons and backslashes in the query", "?u=https://x@y/..\\z", undefined, `${list}?u=https://x@y/..\\z`],
    ["a second question mark", "?a=b?c", undefined, `${list}?a=b?c`],
    ["no query", "approvals", undefined, list],
    ["percent-encoded path", "/sync/odata/%61pprovals?x=1", undefined, `${list}?x=1`],
    ["other letter case of the path", "/sync/odata/Approvals?x=1", undefined, `${list}?x=1`],
    ["dot segments that end at the list", "/sync/odata/x/../approvals?x=1", undefined, `${list}?x=1`],
    ["a dot segment", "./approvals?x=1", undefined, `${list}?x=1`],
    ["a context that cannot be read", "approvals?x=1", "http://[", `${list}?x=1`],
    ["a context of another scheme", "approvals?x=1", "urn:x:y", `${list}?x=1`],
    [
      "a context that lost the base path, link relative",
      "approvals?x=1",
      "https://svc.example/odata/$metadata",
      `${list}?x=1 (rebased)`,
    ],
    ["http instead of https", "http://svc.example/sync/odata/approvals?x=1", undefined, `${list}?x=1 (rebased)`],
    ["an internal host and port", "http://10.0.0.7:8080/sync/odata/approvals?x=1", undefined, `${list}?x=1 (rebased)`],
    ["a foreign host", "https://evil.example/sync/odata/approvals?x=1", undefined, `${list}?x=1 (rebased)`],
    ["a longer host", "https://svc.example.evil.example/sync/odata/approvals?x=1", undefined, `${list}?x=1 (rebased)`],
    ["a host as one number", "http://2130706433/sync/odata/approvals?x=1", undefined, `${list}?x=1 (rebased)`],
    ["an IPv6 host", "http://[::1]:9/sync/odata/approvals?x=1", undefined, `${list}?x=1 (rebased)`],
    ["without a scheme", "//evil.example/sync/odata/approvals?x=1", undefined, `${list}?x=1 (rebased)`],
    ["relative to a foreign context", "approvals?x=1", "http://internal/sync/odata/$metadata", `${list}?x=1 (rebased)`],
    ["no base path: a proxy cuts it off", "/odata/approvals?x=1", undefined, `${list}?x=1 (rebased)`],
    ["no base path, at an internal host", "http://app:8080/odata/approvals?x=1", undefined, `${list}?x=1 (rebased)`],
    ["an upper-case scheme and host", "HTTPS://SVC.EXAMPLE/sync/odata/approvals?x=1", undefined, `${list}?x=1`],
  ])("%s", (_, link, contextUrl, expected) => {
    expect(resolve(link, contextUrl)).toBe(expected);
  });
});

describe("a next link whose path is not the list's, on the configured origin", () => {
  const jobs = `${base}/api/syncjobs/run(42)`;
  it.each([
    ["opaque, absolute", `${base}/odata/$next/T1`, undefined, `${base}/odata/$next/T1`],
    ["opaque, with a query", `${base}/odata/$next/T1?$top=5`, undefined, `${base}/odata/$next/T1?$top=5`],
    ["opaque, as a path", "/sync/odata/$next/T1", undefined, `${base}/odata/$next/T1`],
    ["opaque, outside of odata", "/sync/next/T1", undefined, `${base}/next/T1`],
    ["opaque, relative to the context", "$next/T1", context, `${base}/odata/$next/T1`],
    ["opaque, relative to the request", "$next/T1", undefined, `${base}/odata/$next/T1`],
    ["opaque, relative with dots", "../odata/$next/AB%3D%3D", undefined, `${base}/odata/$next/AB%3D%3D`],
    [
      "opaque, relative to a foreign context",
      "$next/T1",
      "http://internal/sync/odata/$metadata",
      `${base}/odata/$next/T1`,
    ],
    [
      "base64 in the path",
      "/sync/odata/$next/aB%2Bc%2F%2Fd%3D%3D",
      undefined,
      `${base}/odata/$next/aB%2Bc%2F%2Fd%3D%3D`,
    ],
    ["a percent sign in the token", "/sync/odata/$next/100%25", undefined, `${base}/odata/$next/100%25`],
    ["JSON in the path", "/sync/odata/$next/%7B%22o%22:100%7D", undefined, `${base}/odata/$next/%7B%22o%22:100%7D`],
    ["a slash at the end", "/sync/odata/approvals/", undefined, `${list}/`],
    ["an encoded slash", "/sync/odata%2Fapprovals", undefined, list],
    ["a path parameter", "/sync/odata/approvals;x=1", undefined, `${list};x=1`],
    ["the run endpoint: it is only ever read", "../../sync/api/syncjobs/run(42)", undefined, jobs],
  ])("is followed as it is: %s", (_, link, contextUrl, expected) => {
    expect(resolve(link, contextUrl)).toBe(expected);
  });

  it("leads on from such a page: a query to the same path, a list's link to the list", () => {
    const from = `${base}/odata/$next/T1?p=2`;
    expect(resolve("?p=3", context, from)).toBe(`${base}/odata/$next/T1?p=3`);
    expect(resolve("T2", undefined, from)).toBe(`${base}/odata/$next/T2`);
    expect(resolve("approvals?p=3", context, from)).toBe(`${list}?p=3`);
  });
});

describe("a next link that is refused", () => {
  it.each([
    ["empty", "", "empty-link"],
    ["blank", "  ", "empty-link"],
    ["over 64 KiB", `?${"x".repeat(65_536)}`, "link-too-long"],
    ["user name", "https://user@svc.example/sync/odata/approvals", "link-userinfo"],
    ["user name and password", "https://u:p@svc.example/sync/odata/approvals", "link-userinfo"],
    ["host as user name", "https://svc.example@evil.example/sync/odata/approvals", "link-userinfo"],
    ["empty user name", "https://@svc.example/sync/odata/approvals", "link-userinfo"],
    ["user name without a scheme", "//svc.example@evil.example/sync/odata/approvals", "link-userinfo"],
    ["javascript", "javascript:alert(1)", "link-scheme"],
    ["data", "data:application/json,{}", "link-scheme"],
    ["file", "file:///sync/odata/approvals", "link-scheme"],
    ["ftp", "ftp://svc.example/sync/odata/approvals", "link-scheme"],
    ["unix socket", "unix:/var/run/x.sock:/sync/odata/approvals", "link-scheme"],
    ["websocket", "wss://svc.example/sync/odata/approvals", "link-scheme"],
    ["blob", "blob:https://svc.example/sync/odata/approvals", "link-scheme"],
    ["backslashes instead of slashes", "https:\\\\evil.example\\sync\\odata\\approvals", "malformed-link"],
    ["one backslash", "\\\\evil.example/sync/odata/approvals", "malformed-link"],
    ["a slash and a backslash", "/\\evil.example/sync/odata/approvals", "malformed-link"],
    ["a backslash before the at sign", "https://evil.example\\@svc.example/sync/odata/approvals", "malformed-link"],
    ["a scheme without slashes", "https:evil.example/sync/odata/approvals", "malformed-link"],
    ["a scheme with one slash", "https:/evil.example/sync/odata/approvals", "malformed-link"],
    ["a scheme with three slashes", "https:///evil.example/sync/odata/approvals", "malformed-link"],
    ["three slashes", "///evil.example/sync/odata/approvals", "malformed-link"],
    ["two slashes alone", "//", "malformed-link"],
    ["a tab in the scheme", "ht\ttps://evil.example/sync/odata/approvals", "malformed-link"],
    ["a line break in the host", "https://ev\nil.example/sync/odata/approvals", "malformed-link"],
    ["a leading space", " https://evil.example/sync/odata/approvals", "malformed-link"],
    ["a NUL", "/sync/odata/approvals\u0000?x", "malformed-link"],
    ["header splitting", "?x=1\r\nHost: evil", "malformed-link"],
    ["a fragment", "/sync/odata/approvals#x?y", "malformed-link"],
    ["a port out of range", "https://svc.example:99999/sync/odata/approvals", "malformed-link"],
    ["a broken IPv6 host", "https://[::1/sync/odata/approvals", "malformed-link"],
    ["an encoded dot", "/sync/odata/%2e%2e/odata/approvals", "malformed-link"],
    ["an encoded dot in capitals", "/sync/odata/%2E/approvals", "malformed-link"],
    ["an encoded slash before dots", "/sync/odata/x%2F..%2F..%2F..%2Fadmin", "malformed-link"],
    ["an encoded slash in the base path", "/sync%2Fodata/approvals", "link-outside-base-path"],
    ["a dot segment with a parameter", "/sync/odata/..;/..;/admin", "malformed-link"],
    ["a dot segment with an encoded parameter", "/sync/odata/..%3B/admin", "malformed-link"],
    ["a thrice encoded dot", "/sync/odata/%25252e%25252e/approvals", "malformed-link"],
    ["a twice encoded backslash", "/sync/odata/%255c..", "malformed-link"],
    ["what is encoded again and again", "/sync/odata/%2525252525412e", "malformed-link"],
    ["an opaque path at a foreign host", "https://evil.example/sync/odata/$next/T1", "link-other-origin"],
    ["an opaque path at an internal host", "http://10.0.0.7:8080/sync/odata/$next/T1", "link-other-origin"],
    ["an opaque path at a host without a scheme", "//evil.example/sync/odata/$next/T1", "link-other-origin"],
    ["an opaque path over http instead of https", "http://svc.example/sync/odata/$next/T1", "link-other-origin"],
    ["the run endpoint at a foreign host", "https://evil.example/sync/api/syncjobs/run(42)", "link-other-origin"],
    ["another list at a foreign host", "https://evil.example/sync/odata/trigger?$skip=100", "link-other-origin"],
    ["an opaque path outside of the base path", "/odata/$next/T1", "link-outside-base-path"],
    ["an encoded backslash", "/sync/odata%5capprovals", "malformed-link"],
    ["an encoded NUL", "/sync/odata/approvals%00", "malformed-link"],
    ["broken percent-encoding", "/sync/odata/approvals%zz", "malformed-link"],
    ["a twice encoded dot", "/sync/odata/%252e%252e/approvals", "malformed-link"],
    ["no base path, and not the list's path", "/odata/trigger?x", "link-outside-base-path"],
    ["no base path, the run endpoint", "/api/syncjobs/run(42)", "link-outside-base-path"],
    ["a base path that only starts alike", "/sync2/odata/approvals?x", "link-outside-base-path"],
    ["the base path in other letters", "/SYNC/odata/approvals?x", "link-outside-base-path"],
    ["up and out", "../../../odata/trigger", "link-outside-base-path"],
    ["up and out, absolute", "/sync/../odata/trigger", "link-outside-base-path"],
    ["a foreign host with a foreign path", "https://evil.example/collect", "link-outside-base-path"],
    ["a foreign host alone", "https://evil.example", "link-outside-base-path"],
    ["the root", "/", "link-outside-base-path"],
    ["a double slash in the path", "/sync//odata/approvals", "malformed-link"],
  ])("%s", (_, link, reason) => {
    expect(resolve(link)).toBe(reason);
    expect(resolve(link, context)).toBe(reason);
  });

  it("sends only under the base path on the configured origin, for any link", () => {
    const piece = fc.oneof(
      fc.constantFrom(
        "https:",
        "http:",
        "/",
        "//",
        "\\",
        "..",
        ".",
        "@",
        "?",
        "#",
        "%2e",
        "%2f",
        ":",
        "sync",
        "odata",
        "approvals",
      ),
      fc.constantFrom("evil.example", "svc.example", "\t", "\n", "$skip=1", "&", "[::1]", "%"),
      fc.string({ maxLength: 4 }),
    );
    const text = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(""));
    fc.assert(
      fc.property(text, fc.option(text, { nil: undefined }), (link, contextUrl) => {
        const result = resolve(link, contextUrl).replace(" (rebased)", "");
        if (/^[a-z-]+$/.test(result)) return true;
        const { origin, username, pathname } = new URL(result);
        const isUnder =
          pathname.startsWith("/sync/") && !/%2e|\\|\/\.{1,2}(?:[;/]|$)/i.test(decodeURIComponent(pathname));
        return origin === "https://svc.example" && username === "" && isUnder;
      }),
      { numRuns: 3_000 },
    );
  });
});

describe("a link to another server", () => {
  it("brings neither a request nor the token there", async () => {
    const evil = await startServer((_, response) => json(response, { value: [] }));
    const host = `127.0.0.1:${evil.port}`;
    const links = [
      `http://${host}/odata/approvals?p=2`,
      `//${host}/odata/approvals?p=2`,
      `http://${host}/collect`,
      `//${host}/`,
      `http:\\\\${host}\\odata\\approvals`,
      `/\\${host}/odata/approvals`,
      `http:${host}/odata/approvals`,
      `http:///${host}/odata/approvals`,
      `http://svc@${host}/odata/approvals`,
      `https://${host}/odata/approvals?p=2`,
      `http://2130706433:${evil.port}/odata/approvals?p=2`,
      `http://localhost:${evil.port}/odata/approvals?p=2`,
      `\thttp://${host}/odata/approvals`,
      `http://${host}`,
      `http://${host}/odata/../../odata/approvals?p=2`,
    ];
    for (const link of links) {
      for (const contextUrl of [undefined, `http://${host}/odata/$metadata`, `//${host}/`]) {
        const server = await startServer((request, response) => {
          if (request.url.includes("?")) json(response, { value: [{ p: 2 }] });
          else json(response, { "@odata.context": contextUrl, value: [{ p: 1 }], "@odata.nextLink": link });
        });
        const { pages, error } = await collect(connect(server.url).pages("GetApprovals"));
        expect(pages[0]?.items).toEqual([{ p: 1 }]);
        if (error !== undefined) expect(error).toMatchObject({ kind: "paging", sent: "no" });
        else expect(pages[1]?.items).toEqual([{ p: 2 }]);
      }
    }
    expect(evil.seen).toEqual([]);
  });
});
