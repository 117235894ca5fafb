// Proposes when an item began, whether it is over, and how it went, from times and from words for
// states. Pure; called by propose.ts.
import { access, isOneOf } from "./cel-text.ts";
import { type FieldFacts, instantOf } from "./field-facts.ts";
import { type Line, nothing } from "./proposal.ts";
import { nameOf } from "./propose-identity.ts";
import { type StateMeaning, stateMeaning, wordsOf } from "./state-words.ts";

/** The times of an item: its start and its end, where known. */
export interface Times {
  readonly start: FieldFacts | undefined;
  readonly end: FieldFacts | undefined;
}

type Value = string | number | boolean;

interface State {
  readonly field: FieldFacts;
  readonly score: number;
  readonly open: readonly Value[];
  readonly succeeded: readonly Value[];
  readonly failed: readonly Value[];
  readonly ended: readonly Value[];
  readonly unclear: readonly Value[];
  /** The end times agree: empty with every open value, set with every final one, and both occur. */
  readonly isSeenInTimes: boolean;
}

const almost = 0.99;

/** Finds the earliest time of all, and the time that is empty while an item is open. */
export function findTimes(fields: readonly FieldFacts[]): Times {
  const times = fields.filter(
    (field) => field.time !== undefined && !hasWord(field, ["updated", "modified", "changed", "update"]),
  );
  const starts = times.filter(
    (field) => field.emptyShare <= 0.05 && !hasWord(field, ["finished", "ended", "end", "completed", "finish"]),
  );
  const start = starts.find((field) => times.every((other) => other === field || isBefore(field, other)));
  const ends = times.filter(
    (field) =>
      field !== start &&
      field.emptyShare < 1 &&
      start !== undefined &&
      isBefore(start, field) &&
      !hasWord(field, ["created", "started", "start", "queued"]),
  );
  const end = ends.toSorted((a, b) => endScore(b) - endScore(a))[0];
  return { start, end: end !== undefined && endScore(end) > 0 ? end : ends.length === 1 ? end : undefined };
}

/** When an item began. */
export function proposeStart({ start, end }: Times): Line {
  if (start === undefined) return nothing("startedAt", "no time stands in every item before all others");
  const isNamed = hasWord(start, ["start", "started", "begin", "began", "created"]);
  const isLocal = start.time === "iso-local";
  const expression = isLocal ? `${access(start)} + "Z"` : access(start);
  const why = `a time in every item${end === undefined ? "" : `, never after ${nameOf(end)}`}${isLocal ? "; it says no zone, and UTC is a guess" : ""}`;
  return {
    fact: "startedAt",
    expression,
    certainty: isLocal ? "low" : isNamed || end !== undefined ? "high" : "low",
    why,
  };
}

/** Whether an item is over, and whether it went well. */
export function proposeEnding(fields: readonly FieldFacts[], times: Times): readonly [finished: Line, succeeded: Line] {
  const states = fields.flatMap((field) => readState(field, times.end)).toSorted((a, b) => b.score - a.score);
  const [best] = states;
  if (best !== undefined && best.score > 0) return [finishedByState(best, times), succeededByState(best)];
  const { end } = times;
  const succeeded = nothing("succeeded", "no field has values that say how it went");
  if (end === undefined)
    return [
      nothing("finished", "no field has values that say it, and no time is empty while an item is open"),
      succeeded,
    ];
  const isSeen = end.emptyShare > 0;
  const expression = `${access(end, { mayBeMissing: true })} != null`;
  const why = isSeen
    ? `${nameOf(end)} is empty in some items, which then are not over`
    : `${nameOf(end)} stands in every item seen: that it is empty before the end is a guess`;
  return [{ fact: "finished", expression, certainty: isSeen ? "medium" : "low", why }, succeeded];
}

function finishedByState(state: State, { end }: Times): Line {
  const final = [...state.succeeded, ...state.failed, ...state.ended];
  const isByWords = final.some((value) => typeof value === "string");
  const unclear =
    state.unclear.length === 0
      ? ""
      : `; what ${state.unclear.map((value) => JSON.stringify(value)).join(", ")} means is not clear`;
  if (final.length === 0) return nothing("finished", `${nameOf(state.field)} has only values of items that go on`);
  const isOnlyValue = state.field.few?.size === 1;
  const open =
    state.open.length > 0
      ? `${state.open.map((value) => JSON.stringify(value)).join(", ")} goes on`
      : `none that goes on was seen${isOnlyValue ? ", nor any other value: what else ends an item is a guess" : ""}`;
  const why = `${isByWords ? "by its words" : "by its values"}${state.isSeenInTimes ? " and by the end times" : ""}; ${open}${unclear}`;
  const isSure = state.isSeenInTimes || (isByWords && (end === undefined || end.emptyShare === 0));
  const certainty =
    unclear !== "" || isOnlyValue ? "low" : isSure && isByWords && state.open.length > 0 ? "high" : "medium";
  const instead = end === undefined ? {} : { instead: `${access(end, { mayBeMissing: true })} != null` };
  return { fact: "finished", expression: isOneOf(state.field, final), certainty, why, ...instead };
}

function succeededByState(state: State): Line {
  if (state.succeeded.length === 0) {
    const final = [...state.failed, ...state.ended].map((value) => JSON.stringify(value)).join(", ");
    return nothing("succeeded", `which of ${final || "its values"} is good cannot be told: add it by hand`);
  }
  const isBothSeen = state.failed.length > 0;
  const why = isBothSeen
    ? `by its words; ${state.failed.map((value) => JSON.stringify(value)).join(", ")} is not`
    : "by its words; none that went badly was seen";
  return {
    fact: "succeeded",
    expression: isOneOf(state.field, state.succeeded),
    certainty: isBothSeen ? "high" : state.field.few?.size === 1 ? "low" : "medium",
    why,
  };
}

function readState(field: FieldFacts, end: FieldFacts | undefined): State[] {
  const { few } = field;
  if (few === undefined || field.emptyShare > 0.05 || field.types.length > 1 || field.time !== undefined) return [];
  const byTime = new Map<Value, boolean | undefined>([...few.keys()].map((value) => [value, endOf(field, value, end)]));
  const areSplit = [...byTime.values()].every((isOver) => isOver !== undefined) && new Set(byTime.values()).size === 2;
  const meanings = new Map<Value, StateMeaning | undefined>();
  for (const value of few.keys()) {
    const said =
      typeof value === "string"
        ? stateMeaning(value)
        : typeof value === "boolean"
          ? flagMeaning(field, value)
          : undefined;
    const seen: StateMeaning | undefined = areSplit ? (byTime.get(value) === true ? "ended" : "open") : undefined;
    // Words and times disagree: the meaning is not clear.
    const isOdds = said !== undefined && seen !== undefined && (said === "open") !== (seen === "open");
    meanings.set(value, isOdds ? undefined : (said ?? seen));
  }
  const of = (meaning: StateMeaning | undefined) =>
    [...meanings].flatMap(([value, known]) => (known === meaning ? [value] : []));
  const clear = [...meanings.values()].filter((meaning) => meaning !== undefined).length;
  if (clear === 0) return [];
  const named = hasWord(field, ["state", "status", "result", "outcome", "phase"]) ? 1 : 0;
  const score =
    (3 * clear) / few.size + named + (areSplit ? 3 : 0) - (typeof few.keys().next().value === "boolean" ? 1 : 0);
  return [
    {
      field,
      score,
      open: of("open"),
      succeeded: of("succeeded"),
      failed: of("failed"),
      ended: of("ended"),
      unclear: of(undefined),
      isSeenInTimes: areSplit,
    },
  ];
}

/** The meaning of a boolean by its field's name: `isFinished`, `failed`. */
function flagMeaning(field: FieldFacts, value: boolean): StateMeaning | undefined {
  const meaning = stateMeaning(wordsOf(field.path.at(-1) ?? "").join(" "));
  if (meaning === undefined) return undefined;
  if (meaning === "open") return value ? "open" : "ended";
  if (meaning === "failed") return value ? "failed" : undefined;
  return value ? meaning : "open";
}

/**
 * Whether items with this value have an end time: all (true), none (false), or some (undefined).
 */
function endOf(field: FieldFacts, value: Value, end: FieldFacts | undefined): boolean | undefined {
  if (end === undefined) return undefined;
  const ends = field.values.flatMap((one, index) => (one === value ? [end.values[index] ?? null] : []));
  if (ends.every((one) => one !== null)) return true;
  return ends.every((one) => one === null) ? false : undefined;
}

function isBefore(first: FieldFacts, second: FieldFacts): boolean {
  let [pairs, right] = [0, 0];
  first.values.forEach((value, index) => {
    const [a, b] = [instantOf(value), instantOf(second.values[index])];
    if (a === undefined || b === undefined) return;
    pairs += 1;
    if (a <= b) right += 1;
  });
  return pairs > 0 && right / pairs >= almost;
}

function endScore(field: FieldFacts): number {
  return (
    (field.emptyShare > 0 ? 2 : 0) +
    (hasWord(field, ["end", "ended", "finished", "finish", "completed", "done", "closed"]) ? 3 : 0)
  );
}

function hasWord(field: FieldFacts, words: readonly string[]): boolean {
  return wordsOf(nameOf(field)).some((word) => words.includes(word));
}
