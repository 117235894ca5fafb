// Finds fields that an API does not know, which the models' own validation lets pass: each object
// becomes a typed literal, and one run of the compiler judges them all. The literals lie in
// .vitest/, which git ignores.
import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { KubeObject } from "./helm.ts";
import { typeModuleOf } from "./object-models.ts";

const root = resolve(import.meta.dirname, "../../..");

const settings = {
  compilerOptions: {
    noEmit: true,
    strict: true,
    module: "nodenext",
    target: "es2024",
    skipLibCheck: true,
    types: [],
  },
  files: ["objects.ts"],
};

/**
 * What the compiler says about these objects, one problem a line; nothing when all fields are
 * known. `name` tells runs apart.
 */
export function findTypeProblems(objects: readonly KubeObject[], name: string): Promise<string[]> {
  const folder = join(root, ".vitest", `chart-types-${name}`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(settings));
  writeFileSync(join(folder, "objects.ts"), toModule(objects));
  const tsc = join(root, "node_modules", "@typescript/native", "bin", "tsc");
  return new Promise((done, fail) => {
    execFile(process.execPath, [tsc, "-p", folder, "--pretty", "false"], { timeout: 150_000 }, (error, out, err) => {
      const problems = out.split("\n").filter((line) => line.includes("error TS"));
      if (error !== null && problems.length === 0) fail(new Error(`the compiler failed: ${err || error.message}`));
      else done(problems);
    });
  });
}

/** One line an object; the same object from several renderings only once. */
function toModule(objects: readonly KubeObject[]): string {
  const different = new Map(objects.map((object) => [JSON.stringify(object), object]));
  return [...different]
    .map(([json, object], at) => `export const o${at}: import("${typeModuleOf(object)}").I${object.kind} = ${json};`)
    .join("\n");
}
