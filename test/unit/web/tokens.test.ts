import { expect, it } from "vitest";
import { UsageError } from "../../../src/core/errors.ts";
import { createToken, hashOfToken, parseTokens } from "../../../src/web/tokens.ts";

it("reads back the line of each token that is made", () => {
  const made = [
    createToken({ name: "ana@desk", scope: "read", services: [] }),
    createToken({ name: "ci", scope: "read", services: ["main", "a.b"], lastDay: "2027-06-30" }),
    createToken({ name: "b", scope: "read", services: [], lastDay: "2027-06-30" }),
    createToken({ name: "c", scope: "read", services: [], labels: ["team=hr", "stage=prod"] }),
    createToken({ name: "d", scope: "read", services: ["main"], labels: ["team=hr"], lastDay: "2027-06-30" }),
  ];
  const tokens = parseTokens(`# a comment\n\n${made.map(({ line }) => line).join("\r\n")}\n`, "f");
  const found = made.map(({ token }) => tokens.get(hashOfToken(token)));
  expect(found).toMatchObject([
    { name: "ana@desk", services: undefined, expiresMs: undefined },
    { name: "ci", services: new Set(["main", "a.b"]), expiresMs: Date.parse("2027-07-01") },
    { name: "b", services: undefined, labels: undefined },
    { name: "c", services: undefined, labels: "stage=prod,team=hr" },
    { name: "d", services: new Set(["main"]), labels: "team=hr", expiresMs: Date.parse("2027-07-01") },
  ]);
  expect(made.every(({ token, line }) => !line.includes(token))).toBe(true);
});

it("refuses lines that are none, with file and line", () => {
  const hash = "0".repeat(64);
  for (const line of [
    "ana",
    `ana:root:${hash}`,
    `ana:read:${hash.slice(1)}`,
    `ana:read:${hash}:2027-13-01`,
    `ana:read:${hash}:2027-02-31`,
    `:read:${hash}`,
    `ana:read:team=:${hash}`,
    `ana:read:team=hr,stage:${hash}`,
    `ana:read:team=hr:main:${hash}`,
  ])
    expect(() => parseTokens(`\n${line}`, "f")).toThrow(UsageError);
  expect(() => parseTokens(`ana:read:${hash}\nbob:read:${hash}`, "tokens")).toThrow("tokens:2");
});
