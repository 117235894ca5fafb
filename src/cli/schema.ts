// `syncline schema`: prints the JSON Schema of policy files, or a reference page; `--check` reports
// a stale copy. It writes no file: the shell does.
import { readFile } from "node:fs/promises";
import { Command, Option } from "commander";
import { policyJsonSchemaText } from "../config/json-schema.ts";
import { policyReference } from "../config/policy-reference.ts";
import { errorText, UsageError } from "../core/errors.ts";
import { metricReference } from "../ops/metric-table.ts";
import type { CommandIo } from "./command-io.ts";

interface SchemaOptions {
  readonly docs?: boolean;
  readonly metrics?: boolean;
  readonly check?: string;
}

/** The command `schema`. Exit code 1 when the file of `--check` is stale. */
export function schemaCommand(io: CommandIo): Command {
  return new Command("schema")
    .option("--docs", "print the reference page (Markdown) instead")
    .addOption(new Option("--metrics", "print the reference page of the metrics instead").conflicts("docs"))
    .option("--check <file>", "print nothing; exit with 1 when the file differs from what would be printed")
    .action(async (options: SchemaOptions) => {
      const { make, flag } = options.metrics ? pages.metrics : options.docs ? pages.docs : pages.schema;
      if (options.check === undefined) return io.out(make().trimEnd());
      if ((await readCopy(options.check)) === make()) return;
      io.err(`${options.check} is stale. Run: npm run -s syncline schema${flag} > ${options.check}`);
      io.exitCode = 1;
    });
}

const pages = {
  schema: { make: policyJsonSchemaText, flag: "" },
  docs: { make: policyReference, flag: " -- --docs" },
  metrics: { make: metricReference, flag: " -- --metrics" },
};

/** @throws UsageError when the file exists and cannot be read. A missing file is stale. */
async function readCopy(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw new UsageError(`${file} cannot be read: ${errorText(error)}`);
  }
}
