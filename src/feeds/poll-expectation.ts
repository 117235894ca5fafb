// What a poll expects of its list, parsed: which of it must be read, and whether it looks back at the last poll. Pure.
// Called by work/poll.ts, and by simulate/, which must know what a poll costs.
import type { PollAction } from "../config/policy-set.ts";
import { type Expression, parseExpression } from "../core/expression.ts";

/** A poll's two expressions and what they need. */
export interface PollExpectation {
  /** Over the list; undefined: whatever `offending` says, or nothing. */
  readonly expect: Expression | undefined;
  /** Over one item: true for one that offends. */
  readonly offending: Expression | undefined;
  /** The items must be read, not only their number. */
  readonly readsItems: boolean;
  /** What the last poll saw must be known: the expectation speaks of `new` or `modified`. */
  readonly seesNew: boolean;
  /** It is about what happened since the last poll, so each time that it does not hold is news. */
  readonly looksBack: boolean;
  /** What may offend is only what is new or modified: it speaks of that and not of `items`. */
  readonly blamesNew: boolean;
}

/**
 * Parses a poll's expectation.
 * @throws RangeError when an expression is wrong; the loader has refused such a file.
 */
export function parseExpectation({ expect, offending }: Pick<PollAction, "expect" | "offending">): PollExpectation {
  const list = expect === undefined ? undefined : parseExpression(expect, "list");
  const uses = (variable: string) => list?.uses(variable) ?? false;
  const seesNew = uses("new") || uses("modified");
  return {
    expect: list,
    offending: offending === undefined ? undefined : parseExpression(offending, "item"),
    readsItems: seesNew || uses("items") || offending !== undefined,
    seesNew,
    looksBack: seesNew || uses("previous"),
    blamesNew: seesNew && !uses("items"),
  };
}
