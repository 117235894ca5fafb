import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { describeApi } from "../../../src/web/api/openapi.ts";

it("is what docs/reference/openapi.json says; if not: npm run docs:api", () => {
  const file = new URL("../../../docs/reference/openapi.json", import.meta.url);
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual(describeApi());
});
