// One line of a proposed mapping: what is proposed, how certain it is, why, and whether the sample
// bears it out. Pure; used by the proposers and the printers.
import type { ItemMapping } from "../../config/policy-set.ts";
import { checkExpression } from "../../core/expression.ts";
import type { ListName } from "../../core/list-name.ts";
import { createItemMapper } from "../mapping.ts";

/** One line of a mapping. `expression`: CEL; undefined when nothing can be proposed. */
export interface Line {
  readonly fact: keyof ItemMapping;
  readonly expression: string | undefined;
  readonly certainty: "high" | "medium" | "low" | "none";
  /** One sentence. */
  readonly why: string;
  /** CEL that may be meant instead; a person must decide. */
  readonly instead?: string;
}

/** In fewer items, any field may be unique or in order by chance. */
const itemsForSure = 20;
const failuresShareMax = 0.05;
const readShareMin = 0.5;

/** A line that proposes nothing. */
export function nothing(fact: Line["fact"], why: string, instead?: string): Line {
  return { fact, expression: undefined, certainty: "none", why, ...(instead === undefined ? {} : { instead }) };
}

/** Tries a line on the sample: drops it when it fails, doubts it when the items are few. */
export function tryLine(line: Line, list: ListName, items: readonly unknown[]): Line {
  const { fact, expression, why } = line;
  if (expression === undefined) return line;
  const problem = checkExpression(expression, "item");
  if (problem !== undefined) return nothing(fact, `${expression} does not compile: ${problem}`);
  const mapper = createItemMapper(list, { [fact]: expression });
  const values = items.map((item) => mapper.read(item)[fact === "startedAt" ? "startedAtMs" : fact]);
  const read = values.filter((value) => value !== undefined).length;
  const { count: failures, last } = mapper.failures();
  if (failures > items.length * failuresShareMax || read < items.length * readShareMin) {
    const because = last === "" ? "" : ` (${last})`;
    return nothing(fact, `${expression} can be read in ${read} of ${items.length} items only${because}`);
  }
  const doubts = [
    ...(failures === 0 ? [] : [`it failed on ${failures} items`]),
    ...(items.length >= itemsForSure ? [] : [`from ${items.length} item${items.length === 1 ? "" : "s"} only`]),
  ];
  return doubts.length === 0 ? line : { ...line, certainty: "low", why: [why, ...doubts].join("; ") };
}
