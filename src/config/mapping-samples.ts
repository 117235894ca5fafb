// Tries the expressions of a mapping on the items of its sample file: one problem an expression.
import { readFile, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { errorCode } from "../core/errors.ts";
import { isJsonObject } from "../core/json.ts";
import type { Path } from "./problem.ts";
import { policyLimits } from "./rules/policy-limits.ts";
import type { PolicyChecks } from "./rules/policy-rules.ts";
import type { CheckedFile } from "./schema-problems.ts";

const facts = ["id", "syncJobId", "startedAt", "finished", "succeeded", "label"] as const;

type ItemTexts = Partial<Record<(typeof facts)[number] | "sample", string>>;

/** Reports what is wrong with the samples of a file's mappings. `files`: takes their paths. */
export async function checkSamples(file: CheckedFile, checks: PolicyChecks, files: string[]): Promise<void> {
  for (const [name, { mapping = {} }] of Object.entries(file.draft.services ?? {})) {
    const { syncJob: _, ...items } = mapping;
    for (const [kind, texts] of Object.entries<ItemTexts>(items)) {
      if (texts.sample === undefined) continue;
      const sample = resolve(dirname(file.yaml.file), texts.sample);
      files.push(sample);
      await checkSample(file, { ...texts, sample }, ["services", name, "mapping", kind], checks);
    }
  }
}

async function checkSample(
  file: CheckedFile,
  texts: ItemTexts & { readonly sample: string },
  path: Path,
  checks: PolicyChecks,
): Promise<void> {
  const read = await readSample(texts.sample);
  if ("wrong" in read) {
    file.report([...path, "sample"], `the sample ${read.wrong}`, { hint: read.hint });
    return;
  }
  for (const fact of facts) {
    const text = texts[fact];
    // An expression that does not parse is a problem already.
    if (text === undefined || checks.expression(text, "item") !== undefined) continue;
    const wrong = read.items.map((item) => checks.onItem(fact, text, item));
    const index = wrong.findIndex((one) => one !== undefined);
    if (index === -1) continue;
    const count = wrong.filter((one) => one !== undefined).length;
    const rest = count > 1 ? ` (and on ${count - 1} more of ${wrong.length})` : "";
    file.report([...path, fact], `${fact}: on item ${index + 1} of the sample${rest}: ${wrong[index]}`);
  }
}

type Sample = { readonly items: readonly unknown[] } | { readonly wrong: string; readonly hint?: string };

async function readSample(path: string): Promise<Sample> {
  let text: string;
  try {
    const found = await stat(path);
    if (!found.isFile()) return { wrong: "is not a regular file" };
    if (found.size > policyLimits.sampleBytesMax)
      return { wrong: `is larger than ${policyLimits.sampleBytesMax / 1024} KiB`, hint: "a few items are enough" };
    text = await readFile(path, "utf8");
  } catch (error) {
    const code = errorCode(error);
    const hint = "the path is relative to the policy file";
    return { wrong: code === "ENOENT" ? "is not there" : `cannot be read: ${code}`, hint };
  }
  try {
    return toItems(JSON.parse(text.replace(/^\uFEFF/, "")));
  } catch (error) {
    return { wrong: `is no JSON${placeIn(text, error)}` };
  }
}

function toItems(value: unknown): Sample {
  const list = isJsonObject(value) && Array.isArray(value["value"]) ? value["value"] : value;
  const items: readonly unknown[] = Array.isArray(list) ? list : [list];
  const hint = 'write one item, a list of items, or an answer of the service: {"value": [...]}';
  if (items.length === 0) return { wrong: "holds no item", hint };
  if (!items.every(isJsonObject)) return { wrong: "holds something that is no item", hint };
  return { items: items.slice(0, policyLimits.sampleItemsMax) };
}

/** The place of a JSON syntax error, as far as the parser says; never the text around it. */
function placeIn(text: string, error: unknown): string {
  const position = /position (\d+)/.exec(error instanceof Error ? error.message : "")?.[1];
  if (position === undefined) return "";
  const before = text.slice(0, Number(position)).split("\n");
  return `: line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
}
