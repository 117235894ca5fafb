// "Did you mean": what a mistyped word was probably meant to be. Used wherever people write names: policies, options, operations.
import leven from "leven";

const wordCharactersMax = 64;

/** The allowed word nearest to a mistyped one, ignoring case; undefined when none is near. */
export function nearestWord(mistyped: string, allowed: Iterable<string>): string | undefined {
  if (mistyped.length > wordCharactersMax) return undefined;
  const plain = mistyped.toLowerCase();
  const distanceMax = plain.length < 4 ? 1 : plain.length < 9 ? 2 : 3;
  let best: string | undefined;
  let bestDistance = distanceMax + 1;
  for (const word of allowed) {
    const distance = leven(plain, word.toLowerCase(), { maxDistance: distanceMax + 1 });
    if (distance < bestDistance) {
      best = word;
      bestDistance = distance;
    }
  }
  return best;
}
