import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseCount } from "../../../src/service/answer.ts";
import { connect, errorOf, raw, startServer } from "./test-server.ts";

const valid: readonly (readonly [string, number])[] = [
  ["42", 42],
  ["0", 0],
  ["\uFEFF42", 42],
  [" 42\r\n", 42],
  ['"42"', 42],
  ['\uFEFF"42"', 42],
  ["007", 7],
  ["9007199254740991", 9007199254740991],
  ['{"@odata.count":42}', 42],
  ['{"@odata.count":"42"}', 42],
  ['{"@count":42}', 42],
  ['{"value":42}', 42],
  ['{"value":"42"}', 42],
  ['{"@odata.context":"x","value":3}', 3],
  ['{"@odata.count":42,"value":[{}]}', 42],
  ['\uFEFF{"value":0}\n', 0],
];

const bad: readonly string[] = [
  "",
  " ",
  "\uFEFF",
  "-1",
  "-0",
  "+1",
  "4.2",
  "42.0",
  "1e3",
  "9007199254740992",
  "99999999999999999999",
  "NaN",
  "Infinity",
  "null",
  "true",
  "forty-two",
  "42 items",
  "4 2",
  "4,2",
  "0x2A",
  "[42]",
  "{}",
  "[]",
  '""',
  '"-1"',
  '"4.2"',
  '"a"',
  '" 42"',
  '{"value":-1}',
  '{"value":1.5}',
  '{"value":null}',
  '{"value":[]}',
  '{"value":{"value":1}}',
  '{"value":9007199254740993}',
  '{"@odata.count":true}',
  '{"count":42}',
  '{"value":-0}',
  '{"error":{"code":"x"}}',
  "<html>42</html>",
  "{42",
  '"42',
  "٤٢",
];

describe("a $count answer", () => {
  it.each(valid)("%j is the count %i", (text, count) => {
    expect(parseCount(text)).toBe(count);
  });

  it.each(bad)("%j is no count", (text) => {
    expect(parseCount(text)).toBeUndefined();
  });

  it("is read back whatever the number and its wrapping", () => {
    const wraps = [
      (n: number) => `${n}`,
      (n: number) => `"${n}"`,
      (n: number) => `{"value":${n}}`,
      (n: number) => `\uFEFF${n}\n`,
    ];
    fc.assert(
      fc.property(
        fc.nat({ max: Number.MAX_SAFE_INTEGER }),
        fc.constantFrom(...wraps),
        (n, wrap) => parseCount(wrap(n)) === n,
      ),
    );
  });

  it("never gives anything but a safe whole number, whatever the text", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        const count = parseCount(text);
        return count === undefined || (Number.isSafeInteger(count) && count >= 0);
      }),
    );
  });

  it("is read with any content type, and asked for with both", async () => {
    for (const type of [
      "text/plain",
      "text/plain; charset=utf-8",
      "application/json;odata.metadata=minimal",
      "application/octet-stream",
      "",
    ]) {
      for (const [body, count] of valid) {
        const server = await startServer((_, response) =>
          raw(response, body, type === "" ? {} : { "content-type": type }),
        );
        expect(await connect(server.url).count("GetApprovals", { repository: "R" })).toBe(count);
        expect(server.seen[0]?.url).toBe("/odata/approvals/$count?repository=R");
        expect(server.seen[0]?.headers.accept).toBe("application/json, text/plain;q=0.9, */*;q=0.1");
      }
    }
  });

  it("of the wrong shape is refused as contract", async () => {
    for (const body of bad) {
      const server = await startServer((_, response) => raw(response, body));
      expect(await errorOf(connect(server.url).count("GetTriggers"))).toMatchObject({
        kind: "contract",
        operation: "GetTriggers",
      });
    }
  });
});
