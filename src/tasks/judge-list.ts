// Judges a list that a poll has read: does it meet the policy's expectation, and which items
// offend? Pure. The second half packs what a poll saw of each item, so that the next one knows what
// is new or modified.
import { hash } from "node:crypto";
import { firstLine } from "../core/errors.ts";
import type { Expression } from "../core/expression.ts";
import { counted, toPlainText } from "../core/plain-text.ts";
import type { PollExpectation } from "../feeds/poll-expectation.ts";
import type { ItemFacts } from "../model/feed.ts";
import { offendingItemsMax } from "../model/outcome.ts";
import type { PollObservation } from "../store/poll-store.ts";
import type { TaskEnding } from "./step.ts";

/** An item as the service sent it, and its facts by the mapping. */
export interface ReadItem {
  readonly item: unknown;
  readonly facts: ItemFacts;
}

/** A list as it was read; `items` is empty when only the count was read. */
export interface ListRead {
  readonly count: number;
  readonly items: readonly ReadItem[];
  /** The expression that gives an item's id. */
  readonly keyedBy: string;
}

/** The most characters of an item's label or id in an outcome. */
const nameLengthMax = 100;

/** Why nothing is new or modified. */
const nothingToCompare = "; nothing to compare with yet: no earlier poll noted the items by this `id` mapping";

/**
 * Judges a list. `last`: as the last judged poll saw it. A failing expression ends it as unknown.
 */
export function judgeList(expectation: PollExpectation, list: ListRead, last: PollObservation | undefined): TaskEnding {
  const { count } = list;
  const { expect, offending } = expectation;
  if (expect === undefined && offending === undefined)
    return { status: "succeeded", evidence: "direct", reason: "completed", detail: `${count} items`, count };
  const compare = createComparison(last?.seen, list.keyedBy);
  const novelties = list.items.map(({ facts }) => compare(facts));
  const fresh = list.items.filter((_, index) => novelties[index] === "new");
  const modified = list.items.filter((_, index) => novelties[index] === "modified");
  try {
    const suspects = expectation.blamesNew ? [...fresh, ...modified] : list.items;
    if (expect === undefined) return judgeItems(suspects, offending, count);
    const previous = last === undefined ? null : { count: BigInt(last.count), at: new Date(last.atMs) };
    const isMet = expect.evaluate({
      count: BigInt(count),
      items: bare(list.items),
      new: bare(fresh),
      modified: bare(modified),
      previous,
    });
    const isBlind = expectation.seesNew && !isComparable(last?.seen, list.keyedBy);
    const blind = isBlind ? nothingToCompare : "";
    if (isMet === true) return met(`${expect.text} holds${blind}`, count);
    if (isMet !== false) return unreadable(`${expect.text} is neither true nor false`, count);
    const ending = notMet(`${expect.text} does not hold: count is ${count}${blind}`, count);
    return blame(ending, suspects, expectation);
  } catch (error) {
    return unreadable(`${(expect ?? offending)?.text}: ${firstLine(error)}`, count);
  }
}

/** Without `expect`: no item may offend, and each must be readable. */
function judgeItems(items: readonly ReadItem[], offending: Expression | undefined, count: number): TaskEnding {
  if (offending === undefined) return met(`${count} items`, count);
  const guilty = items.filter(({ item, facts }) => {
    const offends = evaluate(offending, item, facts);
    if (typeof offends !== "boolean") throw new TypeError(`neither true nor false for item ${nameOf(facts)}`);
    return offends;
  });
  if (guilty.length === 0) return met(`${offending.text}: true for none of ${count} items`, count);
  const detail = `${offending.text}: true for ${guilty.length} of ${count} items`;
  return { ...notMet(detail, count), ...named(guilty) };
}

function evaluate(offending: Expression, item: unknown, facts: ItemFacts): unknown {
  try {
    return offending.evaluate({ item });
  } catch (error) {
    throw new TypeError(`${firstLine(error)}, for item ${nameOf(facts)}`);
  }
}

/** Adds the items that offend. Of an item that `offending` cannot read it is not known. */
function blame(ending: TaskEnding, suspects: readonly ReadItem[], expectation: PollExpectation): TaskEnding {
  const { offending, blamesNew } = expectation;
  if (offending === undefined) return blamesNew ? { ...ending, ...named(suspects) } : ending;
  const answers = suspects.map(({ item }) => answerOf(offending, item));
  const guilty = named(suspects.filter((_, index) => answers[index] === true));
  const unread = suspects.filter((_, index) => typeof answers[index] !== "boolean");
  const [first] = unread;
  if (first === undefined) return { ...ending, ...guilty };
  const what = `\`offending\` cannot be read of ${counted(unread.length, "item")}, first ${nameOf(first.facts)}`;
  return { ...ending, ...guilty, detail: `${ending.detail}; ${what}` };
}

function answerOf(offending: Expression, item: unknown): unknown {
  try {
    return offending.evaluate({ item });
  } catch {
    return undefined;
  }
}

function named(guilty: readonly ReadItem[]): Pick<TaskEnding, "offending" | "offendingItems"> {
  return {
    offending: guilty.length,
    offendingItems: guilty.slice(0, offendingItemsMax).map(({ facts }) => nameOf(facts)),
  };
}

/** The name of an item: only what the mapping says, never a secret, always one line. */
function nameOf({ label, id }: ItemFacts): string {
  const short = (text: string) => toPlainText(text, nameLengthMax);
  return label === undefined ? short(id) : `${short(label)} (${short(id)})`;
}

function bare(items: readonly ReadItem[]): readonly unknown[] {
  return items.map(({ item }) => item);
}

function met(detail: string, count: number): TaskEnding {
  return { status: "succeeded", evidence: "direct", reason: "expectation-met", detail, count };
}

function notMet(detail: string, count: number): TaskEnding {
  return { status: "failed", evidence: "direct", reason: "expectation-not-met", detail, count };
}

function unreadable(detail: string, count: number): TaskEnding {
  return { status: "unknown", evidence: "none", reason: "expectation-unreadable", detail, count };
}

/** The part of an item that is packed; the fingerprint is hexadecimal. */
type PackedItem = Pick<ItemFacts, "id" | "fingerprint">;

/** An item compared with the last poll. */
type Comparison = "new" | "modified" | "same";

const idBytes = 8;
const contentBytes = 4;
const keyBytes = 4;
const itemBytes = idBytes + contentBytes;

/**
 * Packs the items of a list for the note of a poll. `keyedBy` gives their ids; `slipped`: items
 * packed before that the list lacks by chance.
 */
export function packSeen(items: readonly PackedItem[], keyedBy: string, slipped: Iterable<string> = []): Buffer {
  const packed = items.flatMap(({ id, fingerprint }) => [idDigest(id), contentDigest(fingerprint)]);
  const kept = [...slipped].map((one) => Buffer.from(one, "latin1"));
  return Buffer.concat([...packed, ...kept, keyDigest(keyedBy)]);
}

/**
 * Compares items with what was packed. Without a packed list (a first poll), and with one whose ids
 * another expression gave, all are the same.
 */
export function createComparison(packed: Buffer | undefined, keyedBy: string): (item: PackedItem) => Comparison {
  const known = unpackSeen(packed, keyedBy);
  if (known === undefined) return () => "same";
  return ({ id, fingerprint }) => {
    const content = known.get(idDigest(id).toString("latin1"));
    if (content === undefined) return "new";
    return content === contentDigest(fingerprint).toString("latin1") ? "same" : "modified";
  };
}

/** The packed items that are not in the list, each as it was packed. */
export function missingFrom(packed: Buffer | undefined, { items, keyedBy }: ListRead): Set<string> {
  const missing = new Map(unpackSeen(packed, keyedBy));
  for (const { facts } of items) missing.delete(idDigest(facts.id).toString("latin1"));
  return new Set([...missing].map(([id, content]) => id + content));
}

/** Whether the ids of a packed list are of this expression. */
function isComparable(packed: Buffer | undefined, keyedBy: string): packed is Buffer {
  if (packed === undefined) return false;
  return packed.subarray(packed.length - (packed.length % itemBytes)).equals(keyDigest(keyedBy));
}

/** The contents by id; undefined: none are comparable. */
function unpackSeen(packed: Buffer | undefined, keyedBy: string): Map<string, string> | undefined {
  if (!isComparable(packed, keyedBy)) return undefined;
  const known = new Map<string, string>();
  for (let at = 0; at + itemBytes <= packed.length; at += itemBytes) {
    known.set(packed.toString("latin1", at, at + idBytes), packed.toString("latin1", at + idBytes, at + itemBytes));
  }
  return known;
}

function idDigest(id: string): Buffer {
  return hash("sha256", id, "buffer").subarray(0, idBytes);
}

function keyDigest(keyedBy: string): Buffer {
  return idDigest(keyedBy).subarray(0, keyBytes);
}

function contentDigest(fingerprint: string): Buffer {
  return Buffer.from(fingerprint.slice(0, 2 * contentBytes).padStart(2 * contentBytes, "0"), "hex");
}
