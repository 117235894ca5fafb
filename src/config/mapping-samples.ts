// Tries the mapping of a list on a sample of its items, where the mapping names one: `mapping.activity.sample: activities.json`.
// Called by load-policies.ts. Never throws for what stands in a sample, and never repeats a value of it.
import { readFile, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { isJsonObject } from "../core/json.ts";
import type { PolicyChecks } from "./policy-checks.ts";
import { policyLimits } from "./policy-limits.ts";
import type { ItemMapping } from "./policy-set.ts";
import type { Problem } from "./problem.ts";
import { type View, viewOf } from "./view.ts";
import type { YamlFile } from "./yaml-file.ts";

const facts = [
  "id",
  "syncJobId",
  "startedAt",
  "finished",
  "succeeded",
  "label",
] as const satisfies readonly (keyof ItemMapping)[];

/** Everything that a file's mappings get wrong about their samples: one problem an expression, at that expression. */
export async function checkSamples(file: YamlFile, checks: PolicyChecks): Promise<readonly Problem[]> {
  const mappings = viewOf(file.value)
    .at("services")
    .entries()
    .flatMap(([, service]) => service.at("mapping").entries());
  const problems: Problem[] = [];
  for (const [, mapping] of mappings) problems.push(...(await checkSample(file, mapping, checks)));
  return problems;
}

async function checkSample(file: YamlFile, mapping: View, checks: PolicyChecks): Promise<readonly Problem[]> {
  const sample = mapping.at("sample");
  const name = sample.text();
  const isUnresolved = file.unresolved.some((path) => JSON.stringify(path) === JSON.stringify(sample.path));
  if (name === undefined || name === "" || isUnresolved) return [];
  const read = await readSample(resolve(dirname(file.file), name));
  if ("wrong" in read) return [file.problemAt(sample.path, `the sample ${read.wrong}`, { hint: read.hint })];
  return facts.flatMap((fact) => {
    const expression = mapping.at(fact);
    const text = expression.text();
    // What does not even parse has been told by rules.ts.
    if (text === undefined || text === "" || checks.expression(text, "item") !== undefined) return [];
    const wrong = read.items.map((item) => checks.onItem(fact, text, item));
    const index = wrong.findIndex((one) => one !== undefined);
    if (index === -1) return [];
    const count = wrong.filter((one) => one !== undefined).length;
    const rest = count > 1 ? ` (and on ${count - 1} more of ${wrong.length})` : "";
    return [file.problemAt(expression.path, `${fact}: on item ${index + 1} of the sample${rest}: ${wrong[index]}`)];
  });
}

type Sample = { readonly items: readonly unknown[] } | { readonly wrong: string; readonly hint?: string };

async function readSample(path: string): Promise<Sample> {
  let text: string;
  try {
    const { size, isFile } = await statOf(path);
    if (!isFile) return { wrong: "is not a regular file" };
    if (size > policyLimits.sampleBytesMax)
      return { wrong: `is larger than ${policyLimits.sampleBytesMax / 1024} KiB`, hint: "a few items are enough" };
    text = await readFile(path, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "the reason is unknown";
    const hint = "the path is relative to the policy file";
    return { wrong: code === "ENOENT" ? "is not there" : `cannot be read: ${code}`, hint };
  }
  try {
    return toItems(JSON.parse(text.replace(/^\uFEFF/, "")));
  } catch (error) {
    return { wrong: `is no JSON${placeIn(text, error)}` };
  }
}

async function statOf(path: string): Promise<{ size: number; isFile: boolean }> {
  const found = await stat(path);
  return { size: found.size, isFile: found.isFile() };
}

function toItems(value: unknown): Sample {
  const list = isJsonObject(value) && Array.isArray(value["value"]) ? value["value"] : value;
  const items: readonly unknown[] = Array.isArray(list) ? list : [list];
  const hint = 'write one item, a list of items, or an answer of the service: {"value": [...]}';
  if (items.length === 0) return { wrong: "holds no item", hint };
  if (!items.every(isJsonObject)) return { wrong: "holds something that is no item", hint };
  return { items: items.slice(0, policyLimits.sampleItemsMax) };
}

/** Where JSON ends to be JSON, as far as the parser says; never the text around it. */
function placeIn(text: string, error: unknown): string {
  const position = /position (\d+)/.exec(error instanceof Error ? error.message : "")?.[1];
  if (position === undefined) return "";
  const before = text.slice(0, Number(position)).split("\n");
  return `: line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
}
