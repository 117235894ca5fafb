import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { errorExcerpt, escapeControls, safeHeader } from "../../../src/service/error-body.ts";

const token = "eu1.Zx81fQ07LmNop2345.tail-end";

describe("what is quoted of an error answer", () => {
  it.each([
    ['{"error":{"code":"404","message":"Not Found","@Common.numericSeverity":4}}', "404: Not Found"],
    ['{"error":{"code":null,"message":"The field is required."}}', "The field is required."],
    ['{"error":{"code":"","message":{"lang":"en","value":"v3 style"}}}', "v3 style"],
    ['{"type":"about:blank","title":"Bad Request","status":400,"detail":"key"}', "Bad Request: key"],
    ['{"message":"No"}', "No"],
    ['{"error":{"message":"see https://u:p@h/x?sig=1 now"}}', "see https://h/x?[…] now"],
    ['{"error":{"message":"got Basic dXNlcjpwYXNz"}}', "got Basic […]"],
    ['{"error":{"message":"jwt eyJhbGciOiJI.eyJzdWIi.c2ln!"}}', "jwt […]!"],
    ['{"error":{"code":5,"message":["x"]}}', undefined],
    ['{"error":{"innererror":{"stacktrace":"at X"}}}', undefined],
  ])("%s → %s", (body, excerpt) => {
    expect(errorExcerpt(body, token)).toBe(excerpt);
  });

  it("hides a token as short as a word where it stands as one, and not inside of words", () => {
    const said = (message: string, short: string) => errorExcerpt(JSON.stringify({ error: { message } }), short);
    expect(said("a bad token: a", "a")).toBe("[…] bad token: […]");
    expect(said("the demonstration of demo failed", "demo")).toBe("the demonstration of […] failed");
    expect(said("token=x.y+z, x1y", "x.y+z")).toBe("token=[…], x1y");
    expect(said("xlonger-tokenx", "longer-token")).toBe("x[…]x");
  });

  it("never holds twelve characters of the token in a row, anywhere in the text", () => {
    const part = fc
      .tuple(fc.nat(18), fc.integer({ min: 12, max: 30 }))
      .map(([from, length]) => token.slice(from, from + length));
    const text = fc
      .array(fc.oneof(part, fc.string({ maxLength: 20 })), { maxLength: 30 })
      .map((parts) => parts.join(""));
    fc.assert(
      fc.property(text, (message) => {
        const excerpt = errorExcerpt(JSON.stringify({ error: { message } }), token) ?? "";
        for (let at = 0; at + 12 <= token.length; at += 1) if (excerpt.includes(token.slice(at, at + 12))) return false;
        return excerpt.length <= 200;
      }),
    );
  });

  it("never holds a control character, whatever the body", () => {
    // The library's own unit of any character builds a table of all of them first, which takes
    // seconds.
    const unit = fc.oneof(fc.nat({ max: 0x9f }), fc.nat({ max: 0x10ffff })).map((code) => String.fromCodePoint(code));
    fc.assert(fc.property(fc.string({ unit }), (text) => !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(escapeControls(text))));
  });

  it("takes a header only when it is short printable ASCII", () => {
    expect(safeHeader("abc-1", token)).toBe("abc-1");
    expect(safeHeader(`x${token}`, token)).toBe("x[…]");
    for (const bad of [undefined, "", "a\u007f", "ä", "x".repeat(101)]) expect(safeHeader(bad, token)).toBeUndefined();
  });
});
