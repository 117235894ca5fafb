// Hints for mistyped words: the allowed ones, and the nearest. Used where option texts are parsed.
import { nearestWord } from "../core/nearest-word.ts";
import { cutText } from "../core/plain-text.ts";

/** The allowed word that equals the text, or undefined. */
export function findWord<T extends string>(text: string, allowed: readonly T[]): T | undefined {
  return allowed.find((word) => word === text);
}

/** `"activte" is not a …; did you mean "activate"? Allowed: …` */
export function describeUnknownWord(text: string, what: string, allowed: readonly string[]): string {
  const nearest = nearestWord(text, allowed);
  const hint = nearest === undefined ? "" : `; did you mean "${nearest}"?`;
  return `"${cutText(text, 64)}" is not ${what}${hint === "" ? "." : hint} Allowed: ${allowed.join(", ")}`;
}
