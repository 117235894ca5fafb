// Ends what belongs to a test file, and gives back what its tests replaced. Loaded by vitest before
// each of them.
import { afterAll, vi } from "vitest";
import { endFile } from "./file-end.ts";

afterAll(async () => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  await endFile();
});
