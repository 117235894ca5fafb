// Writes docs/reference/openapi.json from the operations of the API: `npm run docs:api`. A test
// fails when the file is stale.
import { writeFileSync } from "node:fs";
import { describeApi } from "../src/web/api/openapi.ts";

const file = new URL("../docs/reference/openapi.json", import.meta.url);
writeFileSync(file, `${JSON.stringify(describeApi(), undefined, 2)}\n`);
