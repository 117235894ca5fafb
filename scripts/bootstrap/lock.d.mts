// The types of lock.mjs, for the tests.

/** See lock.mjs. */
export function withLock<T>(
  directory: string,
  work: () => T | Promise<T>,
  options?: { waitMs?: number; onWait?: (pid: number) => void },
): Promise<T>;
