// Global set-up of the browser tests: finds a Chromium, and tells them by `inject("chromium")`.
// Fails, never skips, when there is none.
import type { TestProject } from "vitest/node";
import { type FoundChromium, findChromium } from "../../scripts/chromium.mjs";

declare module "vitest" {
  export interface ProvidedContext {
    chromium: FoundChromium;
  }
}

/** Called by vitest once a project, before its first file. */
export async function setup(project: TestProject): Promise<void> {
  project.provide("chromium", await findChromium({ onProgress: (line) => process.stderr.write(`${line}\n`) }));
}
