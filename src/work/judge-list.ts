// Judges a list that a poll has read: does what the policy expects hold, and what offends? Pure. Called by poll.ts.
import { type Expression, firstLine } from "../core/expression.ts";
import { toPlainText } from "../core/plain-text.ts";
import type { PollExpectation } from "../feeds/poll-expectation.ts";
import type { PollSight } from "../store/poll-memories.ts";
import type { ItemFacts } from "../tasks/feed.ts";
import { offendingItemsMax } from "../tasks/outcome.ts";
import { createSightings } from "./seen-digests.ts";
import type { Ending } from "./step.ts";

/** An item as the service sent it, and what the mapping makes of it. */
export interface ReadItem {
  readonly item: unknown;
  readonly facts: ItemFacts;
}

/** A list as it was read; `items` is empty when only the count was. */
export interface ListRead {
  readonly count: number;
  readonly items: readonly ReadItem[];
}

/** The most characters of an item's label or id in an outcome. */
const nameLengthMax = 100;

/** Judges; `last`: what the last judged poll saw. The ending is `succeeded`, `failed`, or `unknown` when an expression fails. */
export function judgeList(expectation: PollExpectation, list: ListRead, last: PollSight | undefined): Ending {
  const { count } = list;
  const { expect, offending } = expectation;
  if (expect === undefined && offending === undefined)
    return { status: "succeeded", evidence: "direct", reason: "completed", detail: `${count} items`, count };
  const tell = createSightings(last?.seen);
  const sightings = list.items.map(({ facts }) => tell(facts));
  const fresh = list.items.filter((_, index) => sightings[index] === "new");
  const modified = list.items.filter((_, index) => sightings[index] === "modified");
  try {
    const suspects = expectation.blamesNew ? [...fresh, ...modified] : list.items;
    if (expect === undefined) return judgeItems(suspects, offending, count);
    const previous = last === undefined ? null : { count: BigInt(last.count), at: new Date(last.atMs) };
    const met = expect.evaluate({
      count: BigInt(count),
      items: bare(list.items),
      new: bare(fresh),
      modified: bare(modified),
      previous,
    });
    if (met === true) return held(`${expect.text} holds`, count);
    if (met !== false) return unreadable(`${expect.text} is neither true nor false`, count);
    const guilty = blame(suspects, expectation);
    return { ...broken(`${expect.text} does not hold: count is ${count}`, count), ...guilty };
  } catch (error) {
    return unreadable(`${(expect ?? offending)?.text}: ${firstLine(error)}`, count);
  }
}

/** Without `expect`: no item may offend, and each must be readable. */
function judgeItems(items: readonly ReadItem[], offending: Expression | undefined, count: number): Ending {
  if (offending === undefined) return held(`${count} items`, count);
  const guilty = items.filter(({ item, facts }) => {
    const offends = evaluate(offending, item, facts);
    if (typeof offends !== "boolean") throw new TypeError(`neither true nor false for item ${nameOf(facts)}`);
    return offends;
  });
  if (guilty.length === 0) return held(`${offending.text}: true for none of ${count} items`, count);
  const detail = `${offending.text}: true for ${guilty.length} of ${count} items`;
  return { ...broken(detail, count), ...named(guilty) };
}

function evaluate(offending: Expression, item: unknown, facts: ItemFacts): unknown {
  try {
    return offending.evaluate({ item });
  } catch (error) {
    throw new TypeError(`${firstLine(error)}, for item ${nameOf(facts)}`);
  }
}

/** The expectation does not hold: who is to blame? An item that `offending` cannot read is not. */
function blame(suspects: readonly ReadItem[], { offending, blamesNew }: PollExpectation): Partial<Ending> {
  if (offending === undefined) return blamesNew ? named(suspects) : {};
  const offends = ({ item }: ReadItem) => {
    try {
      return offending.evaluate({ item }) === true;
    } catch {
      return false;
    }
  };
  return named(suspects.filter(offends));
}

function named(guilty: readonly ReadItem[]): Pick<Ending, "offending" | "offendingItems"> {
  return {
    offending: guilty.length,
    offendingItems: guilty.slice(0, offendingItemsMax).map(({ facts }) => nameOf(facts)),
  };
}

/** What an outcome calls an item: nothing but what the mapping says, never a secret, and on one line whatever the service sends. */
function nameOf({ label, id }: ItemFacts): string {
  const short = (text: string) => toPlainText(text, nameLengthMax);
  return label === undefined ? short(id) : `${short(label)} (${short(id)})`;
}

function bare(items: readonly ReadItem[]): readonly unknown[] {
  return items.map(({ item }) => item);
}

function held(detail: string, count: number): Ending {
  return { status: "succeeded", evidence: "direct", reason: "expectation-met", detail, count };
}

function broken(detail: string, count: number): Ending {
  return { status: "failed", evidence: "direct", reason: "expectation-not-met", detail, count };
}

function unreadable(detail: string, count: number): Ending {
  return { status: "unknown", evidence: "none", reason: "expectation-unreadable", detail, count };
}
