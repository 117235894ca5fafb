// Global set-up of the project `chart`: one helm for all its files, told to them by
// `inject("helm")`. Fetched once, then from .cache.
import type { TestProject } from "vitest/node";
import { findHelm } from "../../scripts/helm.mjs";

declare module "vitest" {
  export interface ProvidedContext {
    helm: string;
  }
}

/** Called by vitest before the first file. */
export async function setup(project: TestProject): Promise<void> {
  project.provide("helm", await findHelm({ onProgress: (line) => process.stderr.write(`${line}\n`) }));
}
