// Loads the policies of a file or a folder: read, parse, check, normalise. It reports every problem
// at once, in the order of the files, and never throws for the content of a file. Called by the
// commands; the hot reload (watch-policies.ts) reads by itself and checks here.
import { readFile, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { nextTurn } from "../core/clock.ts";
import { isJsonObject } from "../core/json.ts";
import { mergeDefaults } from "./merge-defaults.ts";
import { type CheckedFile, normalisePolicies } from "./normalise.ts";
import type { ItemMapping, PolicySet } from "./policy-set.ts";
import { type Problem, problemOfFile, sortProblems } from "./problem.ts";
import { type FileTexts, readPolicyFiles } from "./read-policy-files.ts";
import { checkCrossRules } from "./rules/cross-rules.ts";
import { checkLoad, servicesOf } from "./rules/load-product.ts";
import type { PolicyChecks } from "./rules/policy-checks.ts";
import { policyLimits } from "./rules/policy-limits.ts";
import { checkRules, type Report } from "./rules/policy-rules.ts";
import { checkSchema, type SchemaResult } from "./schema-problems.ts";
import { viewOf, type YamlView } from "./yaml/view.ts";
import { type Path, readYamlFile, type Variables, type YamlFile } from "./yaml/yaml-file.ts";

const facts = [
  "id",
  "syncJobId",
  "startedAt",
  "finished",
  "succeeded",
  "label",
] as const satisfies readonly (keyof ItemMapping)[];

/** What loading needs beside the path. */
export interface LoadOptions {
  /** For `${NAME}` and `token: { env: NAME }`. */
  readonly variables: Variables;
  readonly checks: PolicyChecks;
}

/**
 * All policies, or everything that is wrong with them (at most 1,000 problems and one line about
 * the rest).
 */
export type LoadedPolicies =
  | { readonly ok: true; readonly set: PolicySet }
  | { readonly ok: false; readonly problems: readonly Problem[]; readonly files: readonly string[] };

/**
 * Loads a policy file, or every *.yaml and *.yml of a folder as one set. A folder or file that
 * cannot be read is a problem with line 0.
 */
export async function loadPolicies(path: string, options: LoadOptions): Promise<LoadedPolicies> {
  return checkPolicyFiles(path, await readPolicyFiles(path), options);
}

/** The same for files that are read already. `path`: where they came from. */
export async function checkPolicyFiles(path: string, read: FileTexts, options: LoadOptions): Promise<LoadedPolicies> {
  const { texts, files, problems } = read;
  const yamlFiles: YamlFile[] = [];
  for (const { file, text } of texts) {
    // Thousands of policies take a second or more: let a running process do other work in between.
    await nextTurn();
    yamlFiles.push(readYamlFile(file, text, options.variables));
  }
  const defaults = mergeDefaults(yamlFiles.map((file) => viewOf(file.value)));
  const all: Problem[] = [...problems];
  const checked: CheckedFile[] = [];
  for (const file of yamlFiles) {
    await nextTurn();
    const result = checkFile(file, defaults, options);
    all.push(...result.problems, ...(await checkSamples(file, options.checks)));
    if (result.checked !== undefined) checked.push(result.checked);
  }
  all.push(...checkCrossRules(yamlFiles, problems.length === 0));
  const services = servicesOf(yamlFiles);
  for (const file of yamlFiles) {
    await nextTurn();
    all.push(...checkLoad(file, services));
  }
  if (all.length > 0) return { ok: false, problems: capped(sortProblems(all), path), files };
  return { ok: true, set: normalisePolicies(checked) };
}

/** Checks one file by itself (with the merged defaults of all files). */
function checkFile(
  file: YamlFile,
  defaults: YamlView,
  options: LoadOptions,
): { problems: readonly Problem[]; checked: CheckedFile | undefined } {
  if (file.value === undefined) return { problems: file.problems, checked: undefined };
  const problems: Problem[] = [];
  // A value that could not be filled in has a problem already; a second one would only confuse.
  const quiet = new Set(file.unresolved.map((path) => JSON.stringify(path)));
  const report: Report = (path, message, placing) => {
    if (!isWithinAny(path, quiet)) problems.push(file.problemAt(path, message, placing));
  };
  const schema = checkSchema(file.value);
  reportComplaints(schema, report);
  checkRules({ ...options, file: viewOf(file.value), defaults, report });
  const checked = schema.ok
    ? { file: file.file, input: schema.input, lineOfPolicy: (index: number) => file.lineOf(["policies", index]) }
    : undefined;
  return { problems: [...file.problems, ...problems], checked };
}

function reportComplaints(schema: SchemaResult, report: Report): void {
  if (schema.ok) return;
  for (const { path, message, hint, place } of schema.complaints) report(path, message, { hint, place });
}

/**
 * Whether a path, or a path above it, is in the set. It asks once a level, which is cheap for
 * thousands of paths.
 */
function isWithinAny(path: Path, written: ReadonlySet<string>): boolean {
  if (written.size === 0) return false;
  for (let length = 0; length <= path.length; length += 1) {
    if (written.has(JSON.stringify(path.slice(0, length)))) return true;
  }
  return false;
}

function capped(problems: readonly Problem[], path: string): readonly Problem[] {
  const most = policyLimits.problemsMax;
  if (problems.length <= most) return problems;
  return [
    ...problems.slice(0, most),
    problemOfFile(path, `and ${problems.length - most} more problems that are not listed`),
  ];
}

/** The problems of a file's mappings with their samples: one an expression. */
async function checkSamples(file: YamlFile, checks: PolicyChecks): Promise<readonly Problem[]> {
  const mappings = viewOf(file.value)
    .at("services")
    .entries()
    .flatMap(([, service]) => service.at("mapping").entries());
  const problems: Problem[] = [];
  for (const [, mapping] of mappings) problems.push(...(await checkSample(file, mapping, checks)));
  return problems;
}

async function checkSample(file: YamlFile, mapping: YamlView, checks: PolicyChecks): Promise<readonly Problem[]> {
  const sample = mapping.at("sample");
  const name = sample.text();
  const isUnresolved = file.unresolved.some((path) => JSON.stringify(path) === JSON.stringify(sample.path));
  if (name === undefined || name === "" || isUnresolved) return [];
  const read = await readSample(resolve(dirname(file.file), name));
  if ("wrong" in read) return [file.problemAt(sample.path, `the sample ${read.wrong}`, { hint: read.hint })];
  return facts.flatMap((fact) => {
    const expression = mapping.at(fact);
    const text = expression.text();
    // An expression that does not parse is reported by policy-rules.ts.
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

/** The place of a JSON syntax error, as far as the parser says; never the text around it. */
function placeIn(text: string, error: unknown): string {
  const position = /position (\d+)/.exec(error instanceof Error ? error.message : "")?.[1];
  if (position === undefined) return "";
  const before = text.slice(0, Number(position)).split("\n");
  return `: line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
}
