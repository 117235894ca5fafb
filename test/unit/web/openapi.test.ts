import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { apiLines, apiPage, apiTypes, brokenLines, type Description } from "../../../scripts/api-docs.ts";
import { describeApi } from "../../../src/web/api/openapi.ts";

const read = (name: string) => readFileSync(new URL(`../../../docs/reference/${name}`, import.meta.url), "utf8");
const description: Description = JSON.parse(JSON.stringify(describeApi()));
const kept = read("api-v1.txt").trim().split("\n");

it("is what the files of docs/reference say; if not: npm run docs:api", () => {
  expect(JSON.parse(read("openapi.json"))).toEqual(description);
  expect(read("api.md")).toBe(apiPage(description));
  expect(read("api.d.ts")).toBe(apiTypes(description));
});

it("loses nothing of /api/v1, and demands nothing new; else bring it back", () => {
  expect(brokenLines(kept, apiLines(description))).toEqual([]);
  // New things are promised, too: npm run docs:api.
  expect(apiLines(description).filter((line) => !kept.includes(line))).toEqual([]);
});

it("tells what goes: a field, word, parameter, operation; and what is demanded", () => {
  const lines = apiLines(description);
  const without = (line: string) => lines.filter((one) => one !== line);
  for (const line of [
    "Policy.health: string",
    "listPolicies query health = failing",
    "listPolicies query limit: integer optional",
    "getCaller: GET /api/v1/me",
  ])
    expect([line, brokenLines(lines, without(line))]).toEqual([line, [`gone: ${line}`]]);
  expect(brokenLines(lines, [...lines, "pause body.ticket: string required"])).toEqual([
    "new, and required: pause body.ticket: string required",
  ]);
  expect(brokenLines(lines, [...lines, "newThing body.ticket: string required", "Policy.more: string"])).toEqual([]);
});
