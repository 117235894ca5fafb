// Proposes a mapping from a sample of a list: which field means what, how certain that is, and what
// cannot be known. Every proposed line compiles and has run on the sample. Pure; called by
// discover-service.ts.
import type { ListName } from "../../core/list-name.ts";
import { access, describeFields, type FieldFacts, nameOf } from "./describe-fields.ts";
import { type Line, nothing, tryLine } from "./proposal.ts";
import { findTimes, proposeEnding, proposeStart } from "./propose-ending.ts";
import { findJoin, type IdentityClues, proposeId, proposeJoin, proposeLabel } from "./propose-identity.ts";

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
