import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isUnderBase, parseBaseUrl, toRequestUrl } from "../../../src/service/request-url.ts";

const base = parseBaseUrl("https://svc.example/sync");
const forms = { pathForm: "parentheses", identityForm: "qualified", quoteStrings: "repository" } as const;

describe("the check before the token is attached", () => {
  it.each([
    ["https://svc.example/sync/odata/trigger?x", true],
    ["https://svc.example:443/sync/odata", true],
    ["http://svc.example/sync/odata", false],
    ["https://svc.example:8443/sync/odata", false],
    ["https://svc.example.evil.example/sync/odata", false],
    ["https://evil.example/sync/odata", false],
    ["https://svc.example/sync2/odata", false],
    ["https://svc.example/sync/../odata", false],
    ["https://svc.example/odata", false],
    ["https://u@svc.example/sync/odata", false],
  ])("for %s is %s", (url, expected) => {
    expect(isUnderBase(new URL(url), base)).toBe(expected);
  });
});

describe("the URL of an identity", () => {
  it("stays one path under the base and gives the values back, whatever they hold", () => {
    const value = fc.string({ minLength: 1, unit: "grapheme" });
    fc.assert(
      fc.property(value, value, (key, repository) => {
        const url = toRequestUrl(base, { operation: "GetIdentityById", key, query: { repository } }, forms);
        const match =
          /^\/sync\/odata\/ecmidentities\/ecmsync\.userorgroup\(id=([^,()/]*),repository='([^()/]*)'\)$/.exec(
            url.pathname,
          );
        const read = decodeURIComponent(match?.[2] ?? "").replaceAll("''", "'");
        return (
          isUnderBase(url, base) &&
          url.search === "" &&
          decodeURIComponent(match?.[1] ?? "") === key &&
          read === repository
        );
      }),
    );
  });
});
