// Reads a file that an option names, or standard input for `-`. Called by `api` and `import`.
import { createReadStream } from "node:fs";
import { errorCode, UsageError } from "../core/errors.ts";
import type { CommandIo } from "./command-io.ts";

const bytesMax = 1024 * 1024;

/** The text of a file, at most 1 MiB. @throws UsageError when it cannot be read. */
export async function readInputFile(option: string, path: string, io: CommandIo): Promise<string> {
  if (path === "-") return io.readInput();
  let bytes = Buffer.alloc(0);
  try {
    // `end` limits what is read, also from a pipe of unknown size.
    for await (const chunk of createReadStream(path, { end: bytesMax })) bytes = Buffer.concat([bytes, chunk]);
  } catch (error) {
    throw new UsageError(`${option}: ${path} cannot be read (${errorCode(error)}): check the path`);
  }
  if (bytes.length > bytesMax) throw new UsageError(`${option}: ${path} is over 1 MiB: split it`);
  return bytes.toString("utf8");
}
