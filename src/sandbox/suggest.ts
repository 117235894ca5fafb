// Hints for mistyped words: what is allowed, and the nearest of it. Called where option texts are read.
import { nearestWord } from "../core/nearest-word.ts";

/** Finds the allowed word that equals the text, or undefined. */
export function findWord<T extends string>(text: string, allowed: readonly T[]): T | undefined {
  return allowed.find((word) => word === text);
}

/** Writes `"activte" is not a …; did you mean "activate"? Allowed: …` for a word that is not among the allowed ones. */
export function describeUnknownWord(text: string, what: string, allowed: readonly string[]): string {
  const longer = allowed.find((word) => text.length >= 3 && word.startsWith(text));
  const nearest = longer ?? nearestWord(text, allowed);
  const hint = nearest === undefined ? "" : `; did you mean "${nearest}"?`;
  return `"${text.slice(0, 64)}" is not ${what}${hint === "" ? "." : hint} Allowed: ${allowed.join(", ")}`;
}
