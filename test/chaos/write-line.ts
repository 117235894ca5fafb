// Writes the lines of a replica, each whole and at once: a driver that is too busy to read holds
// the replica up, as a full pipe does, and neither ends it nor loses a line when it is killed or
// exits. Called by replica-main.ts and traps.ts, which use nothing else for standard output.
import { writeSync } from "node:fs";

const standardOutput = 1;
const fullPauseMs = 1;
const sleeping = new Int32Array(new SharedArrayBuffer(4));

/**
 * Writes one line to standard output; it has left this process when this returns. Waits, and
 * everything in this process with it, while nobody reads.
 */
export function writeLine(line: string): void {
  for (let rest = Buffer.from(`${line}\n`); rest.length > 0; ) {
    try {
      rest = rest.subarray(writeSync(standardOutput, rest));
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EAGAIN")) throw error;
      Atomics.wait(sleeping, 0, 0, fullPauseMs);
    }
  }
}
