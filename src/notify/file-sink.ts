// The file sink: appends one line of JSON per notice. A full file becomes `path.1`, `path.2`, …,
// and the oldest is removed. It opens the file for each line, so that the file may be moved, and
// two processes may share it, unless its disk runs full. A failing disk never throws.
import { constants } from "node:fs";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import type { FileSinkSettings } from "../config/policy-set.ts";
import { toCloudEvent } from "./render-notice.ts";
import type { Sink } from "./sink.ts";

/** Reading is for the last byte, to see whether the line before it is whole. */
const openFlags = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT;
const newline = 0x0a;

/** Makes a file sink. It opens nothing yet. */
export function createFileSink(settings: FileSinkSettings): Sink {
  return {
    deliver: async (notice) => {
      try {
        await append(settings, `${toCloudEvent(notice)}\n`);
        return { type: "taken" };
      } catch (error) {
        if (!(error instanceof Error && "code" in error)) throw error;
        return { type: "later", reason: `${settings.path} cannot be written (${String(error.code)})` };
      }
    },
    close: () => {},
  };
}

async function append(settings: FileSinkSettings, line: string): Promise<void> {
  const { path, bytesMax } = settings;
  const bytes = Buffer.byteLength(line);
  {
    await using file = await open(path, openFlags, 0o640);
    const { size } = await file.stat();
    if (size === 0 || size + bytes <= bytesMax) return await write(file, line, size);
  }
  await rotate(settings);
  await using fresh = await open(path, openFlags, 0o640);
  await write(fresh, line, (await fresh.stat()).size);
}

/** Removes what a full disk left of this line, and ends a line that a killed process left open. */
async function write(file: FileHandle, line: string, size: number): Promise<void> {
  const text = (await endsInLine(file, size)) ? line : `\n${line}`;
  try {
    await file.appendFile(text);
  } catch (error) {
    await file.truncate(size).catch(() => {
      // No regular file: nothing to remove.
    });
    throw error;
  }
}

async function endsInLine(file: FileHandle, size: number): Promise<boolean> {
  if (size === 0) return true;
  const last = Buffer.alloc(1);
  await file.read(last, 0, 1, size - 1);
  return last[0] === newline;
}

/** From the oldest on, so that an interruption loses nothing. */
async function rotate({ path, filesMax }: FileSinkSettings): Promise<void> {
  if (filesMax === 1) return await rm(path, { force: true });
  for (let number = filesMax - 1; number >= 1; number -= 1) {
    const from = number === 1 ? path : `${path}.${number - 1}`;
    await rename(from, `${path}.${number}`).catch((error: unknown) => {
      if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
    });
  }
}
