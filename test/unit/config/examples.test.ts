import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { policyJsonSchema, policyJsonSchemaText } from "../../../src/config/json-schema.ts";
import { loadPolicies } from "../../../src/config/load-policies.ts";
import { policyReference } from "../../../src/config/policy-reference.ts";
import { formatProblem } from "../../../src/config/problem.ts";
import { checkSchema } from "../../../src/config/schema-problems.ts";
import { readYamlFile } from "../../../src/config/yaml/yaml-file.ts";
import { isJsonObject } from "../../../src/core/json.ts";
import { checkCron } from "../../../src/schedule/cron-pattern.ts";
import { checks, fileWith, folderOf, variables } from "./policy-fixture.ts";

const root = join(import.meta.dirname, "../../..");
const config = join(root, "config");
const names = (await readdir(config)).filter((name) => name.endsWith(".yaml"));
const texts = await Promise.all(names.map((name) => readFile(join(config, name), "utf8")));

describe("the example policies", () => {
  it("are those that the documentation names", () => {
    expect(names.toSorted()).toEqual([
      "apply.yaml",
      "chain.yaml",
      "demo.yaml",
      "dev.yaml",
      "first-light.yaml",
      "notify.yaml",
      "once.yaml",
      "watch-only.yaml",
      "watch.yaml",
    ]);
  });

  it.each(names)("%s loads, starts with the editor's line and fits policies.schema.json", async (name) => {
    const loaded = await loadPolicies(join(config, name), { variables, checks });
    expect(loaded.ok ? [] : loaded.problems).toEqual([]);
    const text = await readFile(join(config, name), "utf8");
    expect(text.split("\n")[0]).toBe("# yaml-language-server: $schema=../policies.schema.json");
    const schema = z.fromJSONSchema(JSON.parse(await readFile(join(root, "policies.schema.json"), "utf8")));
    expect(schema.safeParse(parse(text)).error?.issues ?? []).toEqual([]);
    expect(schema.safeParse({ ...parse(text), policy: [] }).success).toBe(false);
  });

  it("never make the loader throw, however a byte of them is changed", { timeout: 60_000 }, async () => {
    const pieces = [
      "[",
      "{",
      "- ",
      "? ",
      ": ",
      "&a ",
      "*a",
      "!!js ",
      "<<: ",
      "\t",
      "\n",
      '"',
      "'",
      "|",
      "#",
      "%",
      "\0",
      "\uFEFF",
      "${",
      "~",
      "\u{1F600}",
      "  ",
      "null",
      "-1",
    ];
    const mutation = fc.record({
      text: fc.constantFrom(...texts),
      changes: fc.array(
        fc.record({
          at: fc.double({ min: 0, max: 1, noNaN: true }),
          cut: fc.integer({ min: 0, max: 30 }),
          put: fc.constantFrom("", ...pieces),
        }),
        { minLength: 1, maxLength: 4 },
      ),
    });
    fc.assert(
      fc.property(mutation, ({ text, changes }) => {
        const mutated = changes.reduce((before, { at, cut, put }) => {
          const index = Math.floor(at * before.length);
          return before.slice(0, index) + put + before.slice(index + cut);
        }, text);
        const file = readYamlFile("p.yaml", mutated, variables);
        for (const problem of file.problems) expect(formatProblem(problem, true)).toContain("p.yaml:");
        const schema = checkSchema(file.value);
        if (schema.input === undefined) expect(schema.complaints).not.toEqual([]);
      }),
      { numRuns: 500 },
    );
  });

  it("give a result for every file that the whole loader reads", { timeout: 60_000 }, async () => {
    const folder = await folderOf({});
    const path = join(folder, "p.yaml");
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...texts),
        fc.nat(),
        fc.uint8Array({ maxLength: 6 }),
        async (text, at, bytes) => {
          const before = Buffer.from(text);
          const index = at % before.length;
          await writeFile(
            path,
            Buffer.concat([before.subarray(0, index), bytes, before.subarray(index + bytes.length)]),
          );
          const loaded = await loadPolicies(path, { variables, checks: { ...checks, cron: checkCron } });
          if (!loaded.ok) expect(loaded.problems.length).toBeGreaterThan(0);
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe("what is made from the schema", () => {
  it("policies.schema.json is fresh (npm run -s syncline schema > that file)", async () => {
    expect(await readFile(join(root, "policies.schema.json"), "utf8")).toBe(policyJsonSchemaText());
  });

  it("policies.schema.json takes a variable where a file may have one", async () => {
    const one = "  - { name: one, service: main, run: { syncJobs: [1] }, schedule: { every: 1h }, overlap: skip }";
    const schema = z.fromJSONSchema(JSON.parse(policyJsonSchemaText()));
    const isTaken = async (...changes: readonly (readonly [from: string, to: string])[]) => {
      const text = changes.reduce((file, [from, to]) => file.replace(from, () => to), fileWith(one));
      const folder = await folderOf({ "p.yaml": text });
      const loaded = await loadPolicies(folder, { variables: { TOKEN: "t", EVERY: "2h", SERVICE: "main" }, checks });
      return [loaded.ok, schema.safeParse(parse(text)).success];
    };
    const service = ["service: main", `service: "\${SERVICE}"`] as const;
    const every = ["every: 1h", `every: "\${EVERY}"`] as const;
    expect(await isTaken(service, every, ["overlap: skip", `overlap: "\${OVERLAP:-skip}"`])).toEqual([true, true]);
    expect(await isTaken(["overlap: skip", "overlap: never"])).toEqual([false, false]);
    expect(await isTaken(["every: 1h", "every: often"])).toEqual([false, false]);
    expect(await isTaken(["env: TOKEN", `env: "\${TOKEN}"`])).toEqual([false, false]);
    expect(await isTaken(["  main:", `  "\${SERVICE}":`])).toEqual([false, false]);
  });

  it("docs/policies.md is fresh (npm run -s syncline schema -- --docs > that file)", async () => {
    expect(await readFile(join(root, "docs/policies.md"), "utf8")).toBe(policyReference());
  });

  it("describes every key", () => {
    const undescribed: string[] = [];
    const visit = (schema: unknown, path: string): void => {
      if (!isJsonObject(schema)) return;
      for (const [key, value] of Object.entries(isJsonObject(schema["properties"]) ? schema["properties"] : {})) {
        if (!isJsonObject(value) || typeof value["description"] !== "string") undescribed.push(`${path}.${key}`);
        visit(value, `${path}.${key}`);
      }
      visit(schema["items"], `${path}[]`);
      visit(schema["additionalProperties"], `${path}.*`);
    };
    visit(policyJsonSchema(), "");
    expect(undescribed).toEqual([]);
  });
});
