// Proposes which field identifies an item, which one holds its sync job, and which one names it.
// Pure; called by propose.ts.
import { access } from "./cel-text.ts";
import type { FieldFacts } from "./field-facts.ts";
import { type Line, nothing } from "./proposal.ts";
import { wordsOf } from "./state-words.ts";

/** A field and its score. */
interface Scored {
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
/** In fewer items, any field may be unique or in order by chance. */
const itemsForSure = 20;

/** The path of a field as people write it. */
export function nameOf(field: FieldFacts): string {
  return field.path.join(".");
}

/** Proposes the field that identifies an item. */
export function proposeId(fields: readonly FieldFacts[], join: FieldFacts | undefined): Line {
  const unique = fields.filter((field) => field.isUnique && field.time === undefined && field !== join);
  const [best, second] = sorted(unique.map((field) => ({ field, score: idScore(field) })));
  if (best === undefined || best.score < 2) {
    const maybe = unique.map(nameOf).slice(0, 5).join(", ");
    return nothing(
      "id",
      maybe === ""
        ? "no field is different in every item"
        : `${maybe}: different in every item seen, but nothing says that it always is`,
    );
  }
  const items = best.field.values.length;
  const isClear = best.score - (second?.score ?? 0) >= 1;
  const certainty = !isClear ? "low" : best.score >= 4 ? "high" : "medium";
  const why = `different in all ${items} items${best.field.order === "none" ? "" : `, ${best.field.order}`}`;
  return { fact: "id", expression: access(best.field), certainty, why, ...other(second, best) };
}

function idScore(field: FieldFacts): number {
  const last = field.path.at(-1) ?? "";
  const words = wordsOf(last);
  const isNumber = field.types.includes("number");
  let score = 0;
  if (words.some((word) => ["id", "guid", "uuid", "key"].includes(word)) || /id$/i.test(last))
    score += field.path.length === 1 ? 2 : 1;
  if (field.values.every((value) => typeof value === "string" && guid.test(value))) score += 3;
  else if (isNumber && field.order !== "none") score += 3;
  else if (!isNumber && field.values.every((value) => typeof value === "string" && /^[\w.:/+=-]{6,100}$/.test(value)))
    score += 1;
  if (words.some((word) => ["name", "title", "path", "message", "items", "count", "size", "duration"].includes(word)))
    score -= 2;
  return score;
}

/** The field whose values are ids of sync jobs, if any. */
export function findJoin(fields: readonly FieldFacts[], clues: IdentityClues): Scored | undefined {
  const scored = fields.flatMap((field) => {
    if (
      field.time !== undefined ||
      field.emptyShare > 0.1 ||
      field.types.some((type) => !["text", "number", "empty"].includes(type))
    )
      return [];
    const given = field.values.filter((value) => value !== null && value !== undefined);
    const share = given.filter((value) => clues.syncJobIds.has(String(value))).length / Math.max(given.length, 1);
    const name = nameOf(field);
    const named = /sync.?job/i.test(name) ? 2 : wordsOf(name).includes("job") ? 1 : 0;
    if (clues.syncJobIds.size === 0 ? named === 0 : share < 0.6) return [];
    const covered = Math.min(1, field.distinct / Math.max(clues.syncJobIds.size, 1));
    const isCounter = field.isUnique && field.order !== "none" && isContiguous(given);
    return [{ field, score: share + named + covered + (name === clues.joinElsewhere ? 2 : 0) - (isCounter ? 1 : 0) }];
  });
  return sorted(scored)[0];
}

/** Proposes the field that holds the item's sync job. */
export function proposeJoin(fields: readonly FieldFacts[], clues: IdentityClues): Line {
  const best = findJoin(fields, clues);
  const known = clues.syncJobIds.size;
  if (best === undefined) {
    const why =
      known === 0
        ? "no sync job is known to compare with, and no name speaks of one"
        : `no field holds the ids of the ${known} known sync jobs`;
    return nothing("syncJobId", why);
  }
  const second = findJoin(
    fields.filter((field) => field !== best.field),
    clues,
  );
  const expression = access(best.field);
  if (known === 0)
    return {
      fact: "syncJobId",
      expression,
      certainty: "low",
      why: "by its name alone: no sync job is known to compare with",
    };
  const isClear = best.score - (second?.score ?? 0) >= 0.5;
  const isMuch = best.field.distinct >= Math.min(3, known) && (best.score >= 2.2 || best.field.distinct * 2 >= known);
  const certainty = !isClear || !isMuch ? "low" : best.score >= 1.9 ? "high" : "medium";
  const why = `its ${best.field.distinct} values are ids of the ${known} known sync jobs${isMuch ? "" : ", which may be chance"}${isClear ? "" : "; another field fits as well"}`;
  return { fact: "syncJobId", expression, certainty, why, ...(isClear ? {} : other(second, best)) };
}

/** Lowers the certainty: with so few items it may be chance. */
export function withDoubt(line: Line, items: number): Line {
  if (items >= itemsForSure || line.expression === undefined) return line;
  return { ...line, certainty: "low", why: `${line.why}; from ${items} item${items === 1 ? "" : "s"} only` };
}

/** Proposes the text that names an item for people. */
export function proposeLabel(
  fields: readonly FieldFacts[],
  taken: readonly (FieldFacts | undefined)[],
): Line | undefined {
  const scored = fields.flatMap((field) => {
    const isText = field.types.every((type) => type === "text" || type === "empty") && field.types.includes("text");
    if (!isText || field.time !== undefined || taken.includes(field) || field.few !== undefined) return [];
    if (field.values.some((value) => typeof value === "string" && guid.test(value))) return [];
    const isNamed = wordsOf(nameOf(field)).some((word) =>
      ["name", "title", "label", "subject", "file", "document", "message", "description", "path"].includes(word),
    );
    const isSpoken =
      field.values.filter((value) => typeof value === "string" && /[\s.]/.test(value)).length * 2 > field.values.length;
    return [{ field, score: (isNamed ? 2 : 0) + (isSpoken ? 2 : 0) }];
  });
  const [best] = sorted(scored);
  if (best === undefined || best.score < 2) return undefined;
  return {
    fact: "label",
    expression: access(best.field),
    certainty: best.score > 2 ? "medium" : "low",
    why: "a text that differs from item to item",
  };
}

function isContiguous(given: readonly unknown[]): boolean {
  const numbers = given.map(Number);
  return Math.max(...numbers) - Math.min(...numbers) === numbers.length - 1;
}

function sorted(scored: readonly Scored[]): Scored[] {
  return scored.toSorted((a, b) => b.score - a.score);
}

function other(second: Scored | undefined, best: Scored): { readonly instead?: string } {
  return second === undefined || best.score - second.score >= 1 ? {} : { instead: access(second.field) };
}
