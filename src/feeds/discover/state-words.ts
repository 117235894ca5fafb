// What words for a state usually mean; unknown words mean nothing. Pure; called by the proposers.

/** The meaning of a state: not over, ended well, ended badly, or ended somehow. */
export type StateMeaning = "open" | "succeeded" | "failed" | "ended";

const openWords =
  "running progress inprogress pending queued waiting started starting active processing scheduled new created open executing ongoing enqueued paused";
const succeededWords = "finished done completed complete succeeded success successful ok passed";
const failedWords =
  "failed failure error errors faulted aborted cancelled canceled terminated rejected timeout partial partially";

/** In this order: "completed with errors" ended badly, "waiting for completion" is not over. */
const meanings: readonly (readonly [StateMeaning, readonly string[]])[] = [
  ["open", openWords.split(" ")],
  ["failed", failedWords.split(" ")],
  ["succeeded", succeededWords.split(" ")],
  ["ended", ["ended", "closed", "stopped", "final", "finalized"]],
];

const negations = ["not", "no", "un", "never", "non", "in"];

/** The words of a value or a field's name: `ArchiveJob_isDone` → archive, job, is, done. */
export function wordsOf(text: string): string[] {
  return text
    .slice(0, 200)
    .replaceAll(/(\p{Ll}|\d)(?=\p{Lu})/gu, "$1 ")
    .toLowerCase()
    .split(/[^\p{L}]+/u)
    .filter((word) => word !== "");
}

/** The meaning of a state's text, if any: `NotStarted` is open, `not ok` nothing. */
export function stateMeaning(text: string): StateMeaning | undefined {
  const words = wordsOf(text);
  const found = meanings.filter(([, known]) => words.some((word) => known.includes(word)));
  const [meaning] = found[0] ?? [];
  return words.some((word) => negations.includes(word)) && meaning !== "open" ? undefined : meaning;
}
