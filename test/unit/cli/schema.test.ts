import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { CommandIo } from "../../../src/cli/command-io.ts";
import { schemaCommand } from "../../../src/cli/schema.ts";
import { readSettings } from "../../../src/config/settings.ts";
import { folderOf } from "../config/policy-fixture.ts";

async function schema(...args: string[]) {
  const out: string[] = [];
  const err: string[] = [];
  const io: CommandIo = {
    out: (line) => out.push(line),
    err: (line) => err.push(line),
    colours: false,
    settings: readSettings({}),
    readInput: async () => "",
    signal: new AbortController().signal,
    exitCode: 0,
  };
  await schemaCommand(io).parseAsync(args, { from: "user" });
  return { out: out.join("\n"), err: err.join("\n"), exitCode: io.exitCode };
}

describe("syncline schema", () => {
  it("prints the JSON Schema, and the reference page with --docs", async () => {
    expect(JSON.parse((await schema()).out)).toMatchObject({ $schema: "http://json-schema.org/draft-07/schema#" });
    expect((await schema("--docs")).out).toContain("# Policies");
    expect((await schema("--metrics")).out).toContain("# Metrics");
  });

  it.each([[[]], [["--docs"]], [["--metrics"]]])(
    "accepts a fresh copy and refuses a stale or missing one (%j)",
    async (flags) => {
      const { out } = await schema(...flags);
      const folder = await folderOf({ fresh: `${out}\n`, stale: `${out} \n` });
      expect(await schema(...flags, "--check", join(folder, "fresh"))).toEqual({ out: "", err: "", exitCode: 0 });
      for (const name of ["stale", "missing"]) {
        const file = join(folder, name);
        const { err, exitCode } = await schema(...flags, "--check", file);
        expect(exitCode).toBe(1);
        expect(err).toBe(
          `${file} is stale. Run: npm run -s syncline schema${flags.length > 0 ? ` -- ${flags[0]}` : ""} > ${file}`,
        );
      }
    },
  );
});
