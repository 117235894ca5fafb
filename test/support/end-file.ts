// Ends what belongs to a test file. Loaded by vitest before each of them.
import { afterAll } from "vitest";
import { endFile } from "./file-end.ts";

afterAll(endFile);
