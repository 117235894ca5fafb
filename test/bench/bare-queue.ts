// The queue of a bare worker, named the same in the process that adds and in the one that works.
// Used by the benchmark of starts.

/** `bare-fresh-starts`. */
export function bareQueue(contender: string): string {
  return `${contender}-starts`;
}
