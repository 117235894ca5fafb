// Proposes when an item began, whether it is over, and how it went, from times and from words for
// states. Pure; called by propose.ts.
import { access, type FieldFacts, hasWord, instantOf, nameOf, type Scalar, wordsOf } from "./describe-fields.ts";
import { type Line, nothing } from "./proposal.ts";

/** The meaning of a state: not over, ended well, ended badly, or ended somehow. */
type StateMeaning = "open" | "succeeded" | "failed" | "ended";

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

/** The times of an item: its start and its end, where known. */
export interface Times {
  readonly start: FieldFacts | undefined;
  readonly end: FieldFacts | undefined;
}

/** A field with few values, each with its meaning; undefined: not clear. */
interface State {
  readonly field: FieldFacts;
  readonly score: number;
  readonly meanings: ReadonlyMap<Scalar, StateMeaning | undefined>;
  /** The end times agree: empty with every open value, set with every final one, and both occur. */
  readonly isSeenInTimes: boolean;
}

const emptyShareMax = 0.05;
const inOrderShareMin = 0.99;
const updateWords = ["updated", "modified", "changed", "update"];
const startWords = ["created", "started", "start", "begin", "began"];
const endWords = ["end", "ended", "finished", "finish", "completed", "done", "closed"];

/** Finds the earliest time of all, and the time that is empty while an item is open. */
export function findTimes(fields: readonly FieldFacts[]): Times {
  const times = fields.filter((field) => field.time !== undefined && !hasWord(nameOf(field), updateWords));
  const start = times.find(
    (field) =>
      field.emptyShare <= emptyShareMax &&
      !hasWord(nameOf(field), endWords) &&
      times.every((other) => other === field || isBefore(field, other)),
  );
  if (start === undefined) return { start, end: undefined };
  const ends = times.filter(
    (field) => field !== start && field.emptyShare < 1 && !hasWord(nameOf(field), startWords) && isBefore(start, field),
  );
  const [end] = ends.toSorted((a, b) => endScore(b) - endScore(a));
  return { start, end: end !== undefined && (endScore(end) > 0 || ends.length === 1) ? end : undefined };
}

function endScore(field: FieldFacts): number {
  return (field.emptyShare > 0 ? 2 : 0) + (hasWord(nameOf(field), endWords) ? 3 : 0);
}

function isBefore(first: FieldFacts, second: FieldFacts): boolean {
  const pairs = first.values.map((value, index) => [instantOf(value), instantOf(second.values[index])] as const);
  const known = pairs.filter(([a, b]) => a !== undefined && b !== undefined);
  const right = known.filter(([a = 0, b = 0]) => a <= b);
  return known.length > 0 && right.length / known.length >= inOrderShareMin;
}

/** When an item began. */
export function proposeStart({ start, end }: Times): Line {
  if (start === undefined) return nothing("startedAt", "no time stands in every item before all others");
  const isLocal = start.time === "local";
  const isSure = !isLocal && (end !== undefined || hasWord(nameOf(start), startWords));
  const before = end === undefined ? "" : `, never after ${nameOf(end)}`;
  return {
    fact: "startedAt",
    expression: isLocal ? `${access(start)} + "Z"` : access(start),
    certainty: isSure ? "high" : "low",
    why: `a time in every item${before}${isLocal ? "; it says no zone, and UTC is a guess" : ""}`,
  };
}

/** Whether an item is over, and whether it went well. */
export function proposeEnding(fields: readonly FieldFacts[], times: Times): readonly [finished: Line, succeeded: Line] {
  const states = fields.flatMap((field) => readState(field, times.end)).toSorted((a, b) => b.score - a.score);
  const [best] = states;
  if (best !== undefined && best.score > 0) return [finishedByState(best, times), succeededByState(best)];
  return [finishedByTime(times), nothing("succeeded", "no field has values that say how it went")];
}

function finishedByTime({ end }: Times): Line {
  if (end === undefined)
    return nothing("finished", "no field has values that say it, and no time is empty while an item is open");
  const isSeen = end.emptyShare > 0;
  const why = isSeen
    ? `${nameOf(end)} is empty in some items, which then are not over`
    : `${nameOf(end)} stands in every item seen: that it is empty before the end is a guess`;
  return { fact: "finished", expression: hasEnded(end), certainty: isSeen ? "medium" : "low", why };
}

function hasEnded(end: FieldFacts): string {
  return `${access(end, { mayBeMissing: true })} != null`;
}

function finishedByState(state: State, { end }: Times): Line {
  const { field, isSeenInTimes } = state;
  const final = valuesOf(state, "succeeded", "failed", "ended");
  const [open, unclear] = [valuesOf(state, "open"), valuesOf(state, undefined)];
  if (final.length === 0) return nothing("finished", `${nameOf(field)} has only values of items that go on`);
  const isByWords = final.some((value) => typeof value === "string");
  const isOnlyValue = field.few?.length === 1;
  const noOther = isOnlyValue ? ", nor any other value: what else ends an item is a guess" : "";
  const why = [
    `${isByWords ? "by its words" : "by its values"}${isSeenInTimes ? " and by the end times" : ""}`,
    open.length > 0 ? `${listed(open)} goes on` : `none that goes on was seen${noOther}`,
    ...(unclear.length === 0 ? [] : [`what ${listed(unclear)} means is not clear`]),
  ].join("; ");
  const isSure = isByWords && open.length > 0 && (isSeenInTimes || end === undefined || end.emptyShare === 0);
  const certainty = unclear.length > 0 || isOnlyValue ? "low" : isSure ? "high" : "medium";
  const instead = end === undefined ? {} : { instead: hasEnded(end) };
  return { fact: "finished", expression: isOneOf(field, final), certainty, why, ...instead };
}

function succeededByState(state: State): Line {
  const [succeeded, failed] = [valuesOf(state, "succeeded"), valuesOf(state, "failed")];
  if (succeeded.length === 0) {
    const final = listed([...failed, ...valuesOf(state, "ended")]) || "its values";
    return nothing("succeeded", `which of ${final} is good cannot be told: add it by hand`);
  }
  const why = failed.length > 0 ? `${listed(failed)} is not` : "none that went badly was seen";
  const certainty = failed.length > 0 ? "high" : state.field.few?.length === 1 ? "low" : "medium";
  return { fact: "succeeded", expression: isOneOf(state.field, succeeded), certainty, why: `by its words; ${why}` };
}

function readState(field: FieldFacts, end: FieldFacts | undefined): State[] {
  const { few, types, emptyShare, time } = field;
  if (few === undefined || emptyShare > emptyShareMax || types.length > 1 || time !== undefined) return [];
  const byTime = new Map(few.map((value) => [value, endOf(field, value, end)]));
  const isSeenInTimes = !new Set(byTime.values()).has(undefined) && new Set(byTime.values()).size === 2;
  const meanings = new Map(
    few.map((value) => {
      const said = meaningOf(field, value);
      const seen: StateMeaning | undefined = !isSeenInTimes ? undefined : byTime.get(value) ? "ended" : "open";
      // Words and times disagree: the meaning is not clear.
      const isOdds = said !== undefined && seen !== undefined && (said === "open") !== (seen === "open");
      return [value, isOdds ? undefined : (said ?? seen)];
    }),
  );
  const clear = [...meanings.values()].filter((meaning) => meaning !== undefined).length;
  if (clear === 0) return [];
  const named = hasWord(nameOf(field), ["state", "status", "result", "outcome", "phase"]) ? 1 : 0;
  const score = (3 * clear) / few.length + named + (isSeenInTimes ? 3 : 0) - (types.includes("flag") ? 1 : 0);
  return [{ field, score, meanings, isSeenInTimes }];
}

/** By the words of a text, or for a flag by its field's name: `isFinished`, `failed`. */
function meaningOf({ path }: FieldFacts, value: Scalar): StateMeaning | undefined {
  if (typeof value === "string") return stateMeaning(value);
  const meaning = typeof value === "boolean" ? stateMeaning(wordsOf(path.at(-1) ?? "").join(" ")) : undefined;
  if (meaning === undefined || value === true) return meaning;
  if (meaning === "failed") return undefined;
  return meaning === "open" ? "ended" : "open";
}

/** Whether items with this value have an end: all (true), none (false), or some (undefined). */
function endOf(field: FieldFacts, value: Scalar, end: FieldFacts | undefined): boolean | undefined {
  const ends = field.values.flatMap((one, index) => (one === value ? [end?.values[index] ?? null] : []));
  if (end === undefined) return undefined;
  if (ends.every((one) => one !== null)) return true;
  return ends.every((one) => one === null) ? false : undefined;
}

function valuesOf({ meanings }: State, ...wanted: readonly (StateMeaning | undefined)[]): Scalar[] {
  return wanted.flatMap((meaning) => [...meanings].flatMap(([value, known]) => (known === meaning ? [value] : [])));
}

function isOneOf(field: FieldFacts, values: readonly Scalar[]): string {
  const texts = values.map((value) => JSON.stringify(value));
  return texts.length === 1 ? `${access(field)} == ${texts[0]}` : `${access(field)} in [${texts.join(", ")}]`;
}

function listed(values: readonly Scalar[]): string {
  return values.map((value) => JSON.stringify(value)).join(", ");
}

/** The meaning of a state's text, if any: `NotStarted` is open, `not ok` nothing. */
function stateMeaning(text: string): StateMeaning | undefined {
  const words = wordsOf(text);
  const found = meanings.filter(([, known]) => words.some((word) => known.includes(word)));
  const [meaning] = found[0] ?? [];
  return words.some((word) => negations.includes(word)) && meaning !== "open" ? undefined : meaning;
}
