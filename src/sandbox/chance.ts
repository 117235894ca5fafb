// Repeatable chance: the same seed and words give the same number, in whatever order they are
// asked. Used by seed data, runs and faults; never calls Math.random.
import { hash } from "node:crypto";

/** A number from 0 (included) to 1 for these words, e.g. `chance("fails", 7, 3)`. */
export type Chance = (...words: readonly (string | number)[]) => number;

/** Makes the chance of one seed. */
export function createChance(seed: number): Chance {
  return (...words) => {
    const digest = hash("sha256", JSON.stringify([seed, ...words]), "buffer");
    return digest.readUIntBE(0, 6) / 2 ** 48;
  };
}

/** A UUID (version 4 in form), always the same for the same words. */
export function chanceUuid(seed: number, ...words: readonly (string | number)[]): string {
  const hex = hash("sha256", JSON.stringify(["uuid", seed, ...words]));
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** Picks one item of a list that is not empty, by a number from 0 to 1. */
export function pickBy<T>(items: readonly [T, ...T[]], number: number): T {
  return items[Math.floor(number * items.length)] ?? items[0];
}
