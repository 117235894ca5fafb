// Global set-up of the test projects that start `syncline` processes: one bundle of the program for
// all of them, which support/processes.ts starts.
import { fileURLToPath } from "node:url";
import { bundle } from "./support/bundle.ts";

/** Called by vitest once a project, before its first file. */
export async function setup(): Promise<void> {
  process.env["TEST_BUNDLE"] ??= await bundle(fileURLToPath(new URL("../src/main.ts", import.meta.url)), "main");
}
