// A temporary folder that goes with its test.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A folder that goes away after the test. */
export function folderForTest(): string {
  const folder = mkdtempSync(join(tmpdir(), "syncline-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
