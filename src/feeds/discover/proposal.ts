// The types of a proposal: what is proposed, how certain it is, and why. Shared by the proposers
// and the printers.
import type { ItemMapping } from "../../config/policy-set.ts";

/** `none`: nothing is proposed. */
type Certainty = "high" | "medium" | "low" | "none";

/** One line of a mapping. */
export interface Line {
  readonly fact: keyof ItemMapping;
  /** CEL; undefined when nothing can be proposed. */
  readonly expression: string | undefined;
  readonly certainty: Certainty;
  /** One sentence. */
  readonly why: string;
  /** CEL that may be meant instead; a person must decide. */
  readonly instead?: string;
}

/** A line that proposes nothing. */
export function nothing(fact: Line["fact"], why: string, instead?: string): Line {
  return { fact, expression: undefined, certainty: "none", why, ...(instead === undefined ? {} : { instead }) };
}
