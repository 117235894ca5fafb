// The types of promtool.mjs, for the tests.

/**
 * Finds promtool: on PATH; or in the Debian or Ubuntu package, unpacked into .cache. Answers its
 * full path.
 * @throws Error that names the ways out when there is none.
 */
export function findPromtool(options?: { readonly cache?: string; readonly path?: string }): Promise<string>;

/**
 * Finds Prometheus in the same places.
 * @throws Error that names the ways out when there is none.
 */
export function findPrometheus(options?: { readonly cache?: string; readonly path?: string }): Promise<string>;
