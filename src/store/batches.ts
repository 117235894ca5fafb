// Cuts lists as Redis takes and answers them: into batches, so that no command blocks it for long,
// and into pairs.

/** Cuts a list into batches of at most `size` items. */
export function* batchesOf<Item>(items: readonly Item[], size = 500): Generator<readonly Item[], void, void> {
  for (let start = 0; start < items.length; start += size) yield items.slice(start, start + size);
}

/** The pairs of a flat list: name and value in turn. */
export function pairsOf(flat: readonly string[]): [string, string][] {
  return [...batchesOf(flat, 2)].map(([name = "", value = ""]) => [name, value]);
}
