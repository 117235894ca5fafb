// Reads files that hold secrets: bounded and never cached.
import { constants } from "node:fs";
import { open } from "node:fs/promises";

/** Without O_NONBLOCK a pipe without a writer would block a thread that reads files and names. */
const flags = constants.O_RDONLY | constants.O_NONBLOCK;

/** The beginning of a file as text, or the system's error code. Secrets are mounted as links. */
export async function readBounded(
  path: string,
  bytesMax: number,
): Promise<{ readonly text: string } | { readonly code: string }> {
  try {
    await using file = await open(path, flags);
    const buffer = Buffer.alloc(bytesMax);
    let length = 0;
    while (length < buffer.length) {
      const { bytesRead } = await file.read(buffer, length, buffer.length - length, null);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return { text: buffer.toString("utf8", 0, length) };
  } catch (error) {
    return { code: error instanceof Error && "code" in error ? String(error.code) : "unreadable" };
  }
}
