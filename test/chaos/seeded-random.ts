// Luck that can be repeated: the same seed gives the same draws on every machine. Used to make up
// fault scripts.

/** A source of draws. */
export interface SeededRandom {
  /** A whole number from `min` to `max`, both included. */
  integer(min: number, max: number): number;
  /** True with this probability, 0 to 1. */
  chance(probability: number): boolean;
  /** One of these; there must be one at least. */
  pick<Item>(items: readonly Item[]): Item;
  /** One of these keys, each as often as its weight says. */
  weighted<Key extends string>(weights: Readonly<Record<Key, number>>): Key;
}

/**
 * Makes the draws of a seed (mulberry32, after a round of mixing so that neighbouring seeds do not
 * look alike).
 */
export function createRandom(seed: number): SeededRandom {
  let state = Math.imul(seed ^ (seed >>> 16), 0x45d9f3b) >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const integer = (min: number, max: number) => min + Math.floor(next() * (max - min + 1));
  const pick = <Item>(items: readonly Item[]): Item => {
    const item = items[integer(0, items.length - 1)];
    if (item === undefined) throw new Error("nothing to pick from");
    return item;
  };
  return {
    integer,
    pick,
    chance: (probability) => next() < probability,
    weighted: (weights) => {
      const keys = Object.keys(weights) as (keyof typeof weights)[];
      return pick(keys.flatMap((key) => Array.from({ length: weights[key] }, () => key)));
    },
  };
}
