// What words for a state usually mean; unknown words mean nothing. Pure; called by
// propose-ending.ts.

/** The meaning of a state: not over, ended well, ended badly, or ended somehow. */
export type StateMeaning = "open" | "succeeded" | "failed" | "ended";

const meanings: readonly (readonly [StateMeaning, readonly string[]])[] = [
  [
    "open",
    "running progress inprogress pending queued waiting started starting active processing scheduled new created open executing ongoing enqueued paused".split(
      " ",
    ),
  ],
  ["succeeded", "finished done completed complete succeeded success successful ok passed".split(" ")],
  [
    "failed",
    "failed failure error errors faulted aborted cancelled canceled terminated rejected timeout partial partially".split(
      " ",
    ),
  ],
  ["ended", "ended closed stopped final finalized".split(" ")],
];

const negations = new Set(["not", "no", "un", "never", "non", "in"]);

/** The words of a value or a field's name: `ArchiveJob_isDone` → archive, job, is, done. */
export function wordsOf(text: string): string[] {
  return text
    .slice(0, 200)
    .replaceAll(/(\p{Ll}|\d)(?=\p{Lu})/gu, "$1 ")
    .toLowerCase()
    .split(/[^\p{L}]+/u)
    .filter((word) => word !== "");
}

/**
 * The meaning of a state's text; undefined without a known word, or with contradicting ones:
 * `NotStarted` is open, `not ok` nothing.
 */
export function stateMeaning(text: string): StateMeaning | undefined {
  const words = wordsOf(text);
  const found = new Set(
    meanings.filter(([, known]) => words.some((word) => known.includes(word))).map(([meaning]) => meaning),
  );
  if (words.some((word) => negations.has(word))) return found.has("open") ? "open" : undefined;
  // "Completed with errors" did not end well; "waiting for completion" is not over.
  for (const meaning of ["open", "failed", "succeeded", "ended"] as const) if (found.has(meaning)) return meaning;
  return undefined;
}
