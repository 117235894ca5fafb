// What ends with a test file. Modules are loaded once for many files, so a hook of their own would
// run after the first of them only.

const ends: (() => unknown)[] = [];

/** Has this done after the hooks of the present test file, the last first. */
export function atFileEnd(end: () => unknown): void {
  ends.push(end);
}

/** Does it. Called by end-file.ts after each file. */
export async function endFile(): Promise<void> {
  for (const end of ends.splice(0).toReversed()) await end();
}
