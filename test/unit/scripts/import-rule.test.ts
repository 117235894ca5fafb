// The import rule bites: a checker that cannot read TypeScript would find every file innocent.
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";

const root = resolve(import.meta.dirname, "../../..");

it("finds a forbidden import in TypeScript, also one of a type", async () => {
  const folder = mkdtempSync(join(tmpdir(), "syncline-imports-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const files = {
    "package.json": "{}",
    "tsconfig.json": '{ "compilerOptions": { "module": "nodenext" } }',
    "src/config/settings.ts": "export type Settings = { readonly url: string };\n",
    "src/core/clock.ts": 'import type { Settings } from "../config/settings.ts";\nexport type Clock = Settings;\n',
  };
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  const checker = join(root, "node_modules/dependency-cruiser/bin/dependency-cruiser.mjs");
  const args = [checker, "--config", join(root, ".dependency-cruiser.mjs"), "src"];

  const run = promisify(execFile)(process.execPath, args, { cwd: folder });

  await expect(run).rejects.toMatchObject({
    stdout: expect.stringContaining("one-way-core: src/core/clock.ts → src/config/settings.ts"),
  });
});
