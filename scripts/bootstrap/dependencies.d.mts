// The types of dependencies.mjs, for the tests.

/** One package of a lock file, as far as the comparison looks at it. */
export interface LockedPackage {
  version?: string;
  integrity?: string;
  optional?: boolean;
  os?: string[];
  cpu?: string[];
  libc?: string[];
}

/** See dependencies.mjs. */
export function firstDifference(
  locked: Record<string, LockedPackage>,
  installed: Record<string, LockedPackage>,
  machine: { os: string; cpu: string; libc: string },
): string | undefined;

/** See dependencies.mjs. */
export function dependenciesState(root: string): { fresh: boolean; why: string };
