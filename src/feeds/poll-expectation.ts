// A poll's expectation, parsed: what must be read, and whether it needs the last poll. Used by
// tasks/poll.ts, and by simulate/ to know a poll's cost. Pure.
import type { PollAction } from "../config/policy-set.ts";
import { type Expression, parseExpression } from "../core/expression.ts";

/** A poll's two expressions and what they need. */
export interface PollExpectation {
  /** Over the list; undefined: only `offending` counts, or nothing. */
  readonly expect: Expression | undefined;
  /** Over one item: true for one that offends. */
  readonly offending: Expression | undefined;
  /** The items must be read, not only their number. */
  readonly readsItems: boolean;
  /** The expectation uses `new` or `modified`, so the last poll's items must be known. */
  readonly seesNew: boolean;
  /** It is about changes since the last poll, so each failure is news. */
  readonly looksBack: boolean;
  /** Only new or modified items can offend: the expectation uses those and not `items`. */
  readonly blamesNew: boolean;
}

/**
 * Parses a poll's expectation.
 * @throws RangeError when an expression is invalid; the loader has refused such a file.
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
