// Writes docs/reference/openapi.json from the operations of the API, and api.md, api.d.ts and
// api-v1.txt from it: `npm run docs:api`. A test fails when one of them is stale.
import { readFileSync, writeFileSync } from "node:fs";
import { describeApi } from "../src/web/api/openapi.ts";
import { apiLines, apiPage, apiTypes, type Description } from "./api-docs.ts";

const fileOf = (name: string) => new URL(`../docs/reference/${name}`, import.meta.url);
const description: Description = JSON.parse(JSON.stringify(describeApi()));
writeFileSync(fileOf("openapi.json"), `${JSON.stringify(description, undefined, 2)}\n`);
writeFileSync(fileOf("api.md"), apiPage(description));
writeFileSync(fileOf("api.d.ts"), apiTypes(description));
// A line stays until a person takes it out: what it says is promised.
const kept = readFileSync(fileOf("api-v1.txt"), "utf8")
  .split("\n")
  .filter((line) => line !== "");
writeFileSync(fileOf("api-v1.txt"), `${[...new Set([...kept, ...apiLines(description)])].toSorted().join("\n")}\n`);
