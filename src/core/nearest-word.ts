// "Did you mean": the likely meaning of a mistyped name, and the line that says so.

import leven from "leven";
import { cutText, someNames } from "./plain-text.ts";

const wordCharactersMax = 64;

/**
 * The allowed word nearest to a mistyped one, ignoring case; undefined when none is near. A word
 * that goes on where the mistyped one ends is the nearest.
 */
export function nearestWord(mistyped: string, allowed: Iterable<string>): string | undefined {
  if (mistyped.length > wordCharactersMax) return undefined;
  const plain = mistyped.toLowerCase();
  const distanceMax = plain.length < 4 ? 1 : plain.length < 9 ? 2 : 3;
  let best: string | undefined;
  let bestDistance = distanceMax + 1;
  for (const word of allowed) {
    if (plain.length >= 3 && word.toLowerCase().startsWith(plain)) return word;
    const distance = leven(plain, word.toLowerCase(), { maxDistance: distanceMax + 1 });
    if (distance < bestDistance) {
      best = word;
      bestDistance = distance;
    }
  }
  return best;
}

/** `did you mean x?` for a misspelt word, or else the list of what there is (at most ten). */
export function didYouMean(word: string, candidates: readonly string[]): string | undefined {
  const near = nearestWord(word, candidates);
  if (near !== undefined) return `did you mean ${near}?`;
  if (candidates.length === 0) return undefined;
  return `there is ${someNames(candidates, undefined, 10)}`;
}

/** Advice for an unknown time zone: the likely one, or how zones are named. */
export function zoneHint(mistyped: string): string {
  const near = nearestZone(mistyped);
  return near === undefined
    ? "write its English name in the tz database, such as Europe/Vienna"
    : `did you mean ${near}?`;
}

/** The one zone with almost this city. A far city is worse than none: Wien is not Kiev. */
function nearestZone(mistyped: string): string | undefined {
  if (mistyped.length > wordCharactersMax) return undefined;
  const parts = mistyped.trim().toLowerCase().replaceAll(" ", "_").split("/");
  const [region, city = ""] = [parts[0], parts.at(-1)];
  const all = Intl.supportedValuesOf("timeZone");
  const inRegion = all.filter((zone) => zone.toLowerCase().startsWith(`${region}/`));
  const distanceMax = city.length < 4 ? 0 : city.length < 8 ? 1 : 2;
  const near = (inRegion.length > 0 ? inRegion : all)
    .map((zone) => ({ zone, distance: leven(city, zone.slice(zone.lastIndexOf("/") + 1).toLowerCase()) }))
    .filter(({ distance }) => distance <= distanceMax)
    .sort((a, b) => a.distance - b.distance);
  const [best, second] = near;
  return best?.distance === second?.distance ? undefined : best?.zone;
}

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
