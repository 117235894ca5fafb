// Proposes a mapping from a sample of a list: which field means what, how certain that is, and what
// cannot be known. Every proposed line compiles and has run on the sample. Pure; called by
// discover-service.ts.

import type { ListName } from "../../model/feed.ts";
import {
  access,
  describeFields,
  type FieldFacts,
  givenIn,
  hasWord,
  instantOf,
  type Line,
  nameOf,
  nothing,
  type Scalar,
  tryLine,
  wordsOf,
} from "./describe-fields.ts";

/** What is proposed for one list. */
export interface ListProposal {
  readonly fields: readonly FieldFacts[];
  readonly lines: readonly Line[];
  /** The field that holds the sync job, as a clue for the other lists. */
  readonly join: string | undefined;
  /** Where new items appear, as far as the sample shows. */
  readonly grows: "at its end" | "at its front" | "unknown";
  /** What this list cannot give, one sentence each. */
  readonly limits: readonly string[];
}

/** Lists whose items belong to a sync job. Others need only an id and a label. */
const jobLists: readonly ListName[] = ["activities", "conflictDetails", "masks"];

/** Proposes a mapping for any items of a list. */
export function proposeMapping(list: ListName, items: readonly unknown[], clues: IdentityClues): ListProposal {
  const fields = describeFields(items);
  const isJobList = jobLists.includes(list);
  const join = isJobList ? findJoin(fields, clues)?.field : undefined;
  const times = findTimes(fields);
  const id = proposeId(fields, join);
  const idField = fields.find((field) => id.expression === access(field));
  const ending = proposeEnding(fields, times);
  const lines = [
    id,
    ...(isJobList ? [proposeJoin(fields, clues)] : []),
    ...(list === "activities"
      ? [proposeStart(times), ...(idField === undefined ? ending.map(withoutId) : ending)]
      : []),
    ...proposeLabel(fields, [join, idField]),
  ].map((line) => tryLine(line, list, items));
  const grows = growth(idField ?? times.start);
  return { fields, lines, join: join === undefined ? undefined : nameOf(join), grows, limits: limitsOf(list, lines) };
}

/**
 * Without an id, an item that changes looks like a second one, and the first stays open for ever.
 */
function withoutId(line: Line): Line {
  if (line.expression === undefined) return line;
  const why = "an activity without an id is not recognised once it has changed, so it would stay open for ever";
  return nothing(line.fact, why, line.expression);
}

function limitsOf(list: ListName, lines: readonly Line[]): string[] {
  const has = (fact: Line["fact"]) => lines.some((line) => line.fact === fact && line.expression !== undefined);
  const limits: string[] = [];
  if (!has("id"))
    limits.push(
      "No field identifies an item: items are known by their whole content. Equal ones count as one, and a changed one counts as new.",
    );
  if (list === "activities" && !(has("syncJobId") && has("finished")))
    limits.push(
      "A run cannot be settled by direct evidence: `settled` waits until the list has grown and is quiet again, evidence: inferred.",
    );
  else if (list === "activities" && !has("succeeded"))
    limits.push("How a run ended cannot be told: one that failed ends like one that went well.");
  if (list === "conflictDetails" && !has("syncJobId"))
    limits.push("Whose a conflict is cannot be told: those of other sync jobs count for a run that is going on.");
  return limits;
}

function growth(field: FieldFacts | undefined): ListProposal["grows"] {
  if (field === undefined || field.order === "none") return "unknown";
  return field.order === "ascending" ? "at its end" : "at its front";
}

/** A field and its score. */
interface ScoredField {
  readonly field: FieldFacts;
  readonly score: number;
}

/** What is known besides the items. */
export interface IdentityClues {
  /** Ids of sync jobs, as texts: of masks and policies. */
  readonly syncJobIds: ReadonlySet<string>;
  /** The field that joins another list of the same service to the sync job. */
  readonly joinElsewhere: string | undefined;
}

const guid = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

/** Proposes the field that identifies an item. */
function proposeId(fields: readonly FieldFacts[], join: FieldFacts | undefined): Line {
  const unique = fields.filter((field) => field.isUnique && field.time === undefined && field !== join);
  const [best, second] = sorted(unique.map((field) => ({ field, score: idScore(field) })));
  if (best === undefined) return nothing("id", "no field is different in every item");
  if (best.score < 2) {
    const maybe = unique.map(nameOf).slice(0, 5).join(", ");
    return nothing("id", `${maybe}: different in every item seen, but nothing says that it always is`);
  }
  const isClear = best.score - (second?.score ?? 0) >= 1;
  const certainty = !isClear ? "low" : best.score >= 4 ? "high" : "medium";
  const { order, values } = best.field;
  const why = `different in all ${values.length} items${order === "none" ? "" : `, ${order}`}`;
  return { fact: "id", expression: access(best.field), certainty, why, ...(isClear ? {} : orElse(second)) };
}

function idScore({ path, types, order, values }: FieldFacts): number {
  const last = path.at(-1) ?? "";
  const areTexts = (pattern: RegExp) => values.every((value) => typeof value === "string" && pattern.test(value));
  let score = 0;
  if (hasWord(last, ["id", "guid", "uuid", "key"]) || /id$/i.test(last)) score += path.length === 1 ? 2 : 1;
  if (areTexts(guid) || (types.includes("number") && order !== "none")) score += 3;
  else if (areTexts(/^[\w.:/+=-]{6,100}$/)) score += 1;
  if (hasWord(last, ["name", "title", "path", "message", "items", "count", "size", "duration"])) score -= 2;
  return score;
}

/** The field whose values are ids of sync jobs, if any. */
function findJoin(fields: readonly FieldFacts[], clues: IdentityClues): ScoredField | undefined {
  const known = clues.syncJobIds;
  const scored = fields.flatMap((field) => {
    const isKey = field.types.every((type) => ["text", "number", "empty"].includes(type));
    if (!isKey || field.time !== undefined || field.emptyShare > 0.1) return [];
    const given = givenIn(field);
    const share = given.filter((value) => known.has(String(value))).length / Math.max(given.length, 1);
    const name = nameOf(field);
    const named = /sync.?job/i.test(name) ? 2 : hasWord(name, ["job"]) ? 1 : 0;
    if (known.size === 0 ? named === 0 : share < 0.6) return [];
    const covered = Math.min(1, field.distinct / Math.max(known.size, 1));
    const isCounter = field.isUnique && field.order !== "none" && isContiguous(given);
    return [{ field, score: share + named + covered + (name === clues.joinElsewhere ? 2 : 0) - (isCounter ? 1 : 0) }];
  });
  return sorted(scored)[0];
}

/** Proposes the field that holds the item's sync job. */
function proposeJoin(fields: readonly FieldFacts[], clues: IdentityClues): Line {
  const best = findJoin(fields, clues);
  const known = clues.syncJobIds.size;
  if (best === undefined) {
    const noneKnown = "no sync job is known to compare with, and no name speaks of one";
    return nothing("syncJobId", known === 0 ? noneKnown : `no field holds the ids of the ${known} known sync jobs`);
  }
  const { field, score } = best;
  const line = { fact: "syncJobId", expression: access(field) } as const;
  if (known === 0) return { ...line, certainty: "low", why: "by its name alone: no sync job is known to compare with" };
  const others = fields.filter((one) => one !== field);
  const second = findJoin(others, clues);
  const isClear = score - (second?.score ?? 0) >= 0.5;
  const isMuch = field.distinct >= Math.min(3, known) && (score >= 2.2 || field.distinct * 2 >= known);
  const certainty = !isClear || !isMuch ? "low" : score >= 1.9 ? "high" : "medium";
  const doubts = `${isMuch ? "" : ", which may be chance"}${isClear ? "" : "; another field fits as well"}`;
  const why = `its ${field.distinct} values are ids of the ${known} known sync jobs${doubts}`;
  return { ...line, certainty, why, ...(isClear ? {} : orElse(second)) };
}

/** Proposes the text that names an item for people. */
function proposeLabel(fields: readonly FieldFacts[], taken: readonly (FieldFacts | undefined)[]): Line[] {
  const scored = fields.flatMap((field) => {
    const texts = givenIn(field).filter((value) => typeof value === "string");
    const isText = field.types.includes("text") && field.types.every((type) => type === "text" || type === "empty");
    if (!isText || field.time !== undefined || taken.includes(field) || field.few !== undefined) return [];
    if (texts.some((text) => guid.test(text))) return [];
    const isNamed = hasWord(nameOf(field), [
      ...["name", "title", "label", "subject", "file", "document", "message", "description", "path"],
    ]);
    const isSpoken = texts.filter((text) => /[\s.]/.test(text)).length * 2 > field.values.length;
    return [{ field, score: (isNamed ? 2 : 0) + (isSpoken ? 2 : 0) }];
  });
  const [best] = sorted(scored);
  if (best === undefined || best.score < 2) return [];
  const certainty = best.score > 2 ? "medium" : "low";
  return [{ fact: "label", expression: access(best.field), certainty, why: "a text that differs from item to item" }];
}

function isContiguous(given: readonly unknown[]): boolean {
  const numbers = given.map(Number);
  return Math.max(...numbers) - Math.min(...numbers) === numbers.length - 1;
}

function sorted(scored: readonly ScoredField[]): ScoredField[] {
  return scored.toSorted((a, b) => b.score - a.score);
}

function orElse(second: ScoredField | undefined): { readonly instead?: string } {
  return second === undefined ? {} : { instead: access(second.field) };
}

/** The meaning of a state: not over, ended well, ended badly, or ended somehow. */
type StateMeaning = "open" | "succeeded" | "failed" | "ended";

const openWords =
  "running progress inprogress pending queued waiting started starting active processing scheduled new created open executing ongoing enqueued paused";
const resultWords = "succeeded success successful ok passed";
const succeededWords = `finished done completed complete ${resultWords}`;
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
interface Times {
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
function findTimes(fields: readonly FieldFacts[]): Times {
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
function proposeStart({ start, end }: Times): Line {
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
function proposeEnding(fields: readonly FieldFacts[], times: Times): readonly [finished: Line, succeeded: Line] {
  const states = fields
    .flatMap((field) => readState(field, times.end))
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score);
  const [best] = states;
  if (best === undefined)
    return [finishedByTime(times), nothing("succeeded", "no field has values that say how it went")];
  if (isResult(best.field)) return endingByResult(best, times);
  const result = states.find(({ field }) => isResult(field));
  const saysHow = valuesOf(best, "failed").length > 0 ? best : (result ?? best);
  return [finishedByState(best, times), succeededByState(saysHow)];
}

/** `success` is false also while an item goes on: only an end time tells that from a failure. */
function endingByResult(state: State, times: Times): readonly [finished: Line, succeeded: Line] {
  const succeeded = succeededByState(state);
  if (times.end !== undefined) return [finishedByTime(times), succeeded];
  const why = `${nameOf(state.field)} says how an item went, and not whether it is over`;
  return [nothing("finished", why), nothing("succeeded", why, succeeded.expression)];
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
  const doubt = isResult(field) ? 2 : types.includes("flag") ? 1 : 0;
  const score = (3 * clear) / few.length + named + (isSeenInTimes ? 3 : 0) - doubt;
  return [{ field, score, meanings, isSeenInTimes }];
}

/** Whether it is a flag named after a result, such as `success`, and not after an end. */
function isResult({ path, types }: FieldFacts): boolean {
  return types.includes("flag") && hasWord(path.at(-1) ?? "", `${resultWords} ${failedWords}`.split(" "));
}

/** By the words of a text, or for a flag by its field's name: `isFinished`, `failed`. */
function meaningOf(field: FieldFacts, value: Scalar): StateMeaning | undefined {
  if (typeof value === "string") return stateMeaning(value);
  const meaning = typeof value === "boolean" ? stateMeaning(wordsOf(field.path.at(-1) ?? "").join(" ")) : undefined;
  if (meaning === undefined || value === true) return meaning;
  if (meaning === "failed") return undefined;
  if (meaning === "open") return "ended";
  return isResult(field) ? "failed" : "open";
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
