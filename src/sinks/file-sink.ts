// The file sink: one line of JSON a notice, appended. At its size the file is put aside as `path.1`, `path.2`, …, and the oldest goes.
// The file is opened for each line, so that it may be moved or removed, and two processes do no harm. Never throws for what a disk does.
import { constants } from "node:fs";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import type { FileSinkSettings } from "../config/policy-set.ts";
import { toCloudEvent } from "./bodies.ts";
import type { Sink } from "./sink.ts";

/** Read, to look at the last byte, and append. */
const openFlags = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT;
const newline = 0x0a;

/** Makes a file sink. Opens nothing yet. */
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

/** What a full disk let through of the line is taken back; what a killed process left without an end gets one. */
async function write(file: FileHandle, line: string, size: number): Promise<void> {
  const text = (await endsInLine(file, size)) ? line : `\n${line}`;
  try {
    await file.appendFile(text);
  } catch (error) {
    await file.truncate(size).catch(() => {
      // No regular file: nothing to take back.
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

/** From the oldest on, so that nothing is lost when it ends in between. */
async function rotate({ path, filesMax }: FileSinkSettings): Promise<void> {
  if (filesMax === 1) return await rm(path, { force: true });
  for (let number = filesMax - 1; number >= 1; number -= 1) {
    const from = number === 1 ? path : `${path}.${number - 1}`;
    await rename(from, `${path}.${number}`).catch((error: unknown) => {
      if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
    });
  }
}
