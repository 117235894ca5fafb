// Writes CEL over fields with any names. Pure; called by the proposers, which compile the result
// afterwards.
import type { FieldFacts } from "./field-facts.ts";

const reserved = new Set(
  "as break const continue else false for function if import in let loop namespace null package return true var void while".split(
    " ",
  ),
);

/** The expression for a field: plain where every item has it, else null where it is missing. */
export function access(field: FieldFacts, { mayBeMissing = !field.isAlwaysThere } = {}): string {
  const steps = field.path.map((name) => step(name, mayBeMissing)).join("");
  return `item${steps}${mayBeMissing ? ".orValue(null)" : ""}`;
}

/** The expression that a field has one of these values. */
export function isOneOf(field: FieldFacts, values: readonly (string | number | boolean)[]): string {
  const texts = values.map((value) => JSON.stringify(value));
  return texts.length === 1 ? `${access(field)} == ${texts[0]}` : `${access(field)} in [${texts.join(", ")}]`;
}

function step(name: string, mayBeMissing: boolean): string {
  const optional = mayBeMissing ? "?" : "";
  const isPlain = /^[A-Za-z_]\w*$/.test(name) && !reserved.has(name);
  return isPlain ? `.${optional}${name}` : `[${optional}${JSON.stringify(name)}]`;
}
