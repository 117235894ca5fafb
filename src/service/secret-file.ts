// Reads files that secrets stand in: bounded, at once, never kept. Called by token.ts, oauth2-token.ts, tls-files.ts and sinks/webhook.ts.
import { constants } from "node:fs";
import { open } from "node:fs/promises";

/** Without the second, a pipe that nobody writes to would keep one of the four threads that all files and names of this process are read with. */
const flags = constants.O_RDONLY | constants.O_NONBLOCK;

/** The head of a file as text, at most `bytesMax` bytes; or the error code of the system that says why not. Follows links, as secrets are mounted. */
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
