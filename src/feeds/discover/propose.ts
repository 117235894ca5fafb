// Proposes a mapping from a sample of a list: which field means what, how certain that is, and what
// cannot be known. Every proposed line compiles and has run on the sample. Pure; called by
// discover-service.ts.
import type { ItemMapping } from "../../config/policy-set.ts";
import { checkExpression } from "../../core/expression.ts";
import type { ListName } from "../../core/list-name.ts";
import { createItemReader } from "../mapping.ts";
import { access } from "./cel-text.ts";
import { describeFields, type FieldFacts } from "./field-facts.ts";
import { type Line, nothing } from "./proposal.ts";
import { findTimes, proposeEnding, proposeStart, type Times } from "./propose-ending.ts";
import {
  findJoin,
  type IdentityClues,
  nameOf,
  proposeId,
  proposeJoin,
  proposeLabel,
  withDoubt,
} from "./propose-identity.ts";

/** What is proposed for one list. */
export interface ListProposal {
  readonly list: ListName;
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
  const join = jobLists.includes(list) ? findJoin(fields, clues)?.field : undefined;
  const times = findTimes(fields);
  const id = withPair(proposeId(fields, join), join, times);
  const idField = fields.find((field) => id.expression === access(field));
  const [finished, succeeded] = proposeEnding(fields, times);
  const label = proposeLabel(fields, [join, idField]);
  const lines = [
    id,
    ...(jobLists.includes(list) ? [proposeJoin(fields, clues)] : []),
    ...(list === "activities" ? [proposeStart(times), ...withoutId(id, finished, succeeded)] : []),
    ...(label === undefined ? [] : [label]),
  ].map((line) => withDoubt(tried(line, list, items), items.length));
  return {
    list,
    fields,
    lines,
    join: join === undefined ? undefined : nameOf(join),
    grows: growth(idField ?? times.start),
    limits: limitsOf(list, lines),
  };
}

/**
 * Without an id field, two fields that never change may identify an item. A person must confirm
 * that they do not.
 */
function withPair(id: Line, join: FieldFacts | undefined, { start }: Times): Line {
  if (
    id.expression !== undefined ||
    join === undefined ||
    start === undefined ||
    join.emptyShare > 0 ||
    start.emptyShare > 0
  )
    return id;
  const pairs = new Set(join.values.map((value, index) => JSON.stringify([value, start.values[index]])));
  if (pairs.size < join.values.length) return id;
  return nothing("id", id.why, `string(${access(join)}) + "/" + string(${access(start)})`);
}

/**
 * An item that changes without an id looks like a second item, and the first one would stay open
 * for ever.
 */
function withoutId(id: Line, finished: Line, succeeded: Line): Line[] {
  if (id.expression !== undefined) return [finished, succeeded];
  return [finished, succeeded].map((line) =>
    line.expression === undefined
      ? line
      : nothing(
          line.fact,
          "an activity without an id is not recognised once it has changed, so it would stay open for ever",
          line.expression,
        ),
  );
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

/** Drops a line that does not compile, or fails on more than a few items. */
function tried(line: Line, list: ListName, items: readonly unknown[]): Line {
  if (line.expression === undefined) return line;
  const problem = checkExpression(line.expression, "item");
  if (problem !== undefined) return nothing(line.fact, `${line.expression} does not compile: ${problem}`);
  const mapping: ItemMapping = { [line.fact]: line.expression };
  const reader = createItemReader(list, mapping);
  const read = items.map((item) => reader.read(item));
  const { count, last } = reader.failures();
  const said = read.filter(
    (facts) => (line.fact === "startedAt" ? facts.startedAtMs : facts[line.fact]) !== undefined,
  ).length;
  if (count > items.length * 0.05 || said < items.length * 0.5)
    return nothing(
      line.fact,
      `${line.expression} can be read in ${said} of ${items.length} items only${last === "" ? "" : ` (${last})`}`,
    );
  return count === 0 ? line : { ...line, certainty: "low", why: `${line.why}; it failed on ${count} items` };
}

function growth(field: FieldFacts | undefined): ListProposal["grows"] {
  if (field === undefined || field.order === "none") return "unknown";
  return field.order === "ascending" ? "at its end" : "at its front";
}
