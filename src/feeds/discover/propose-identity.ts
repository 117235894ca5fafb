// Proposes which field identifies an item, which one holds its sync job, and which one names it.
// Pure; called by propose.ts.
import { access, type FieldFacts, givenIn, hasWord, nameOf } from "./describe-fields.ts";
import { type Line, nothing } from "./proposal.ts";

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

/** Proposes the field that identifies an item. */
export function proposeId(fields: readonly FieldFacts[], join: FieldFacts | undefined): Line {
  const unique = fields.filter((field) => field.isUnique && field.time === undefined && field !== join);
  const [best, second] = sorted(unique.map((field) => ({ field, score: idScore(field) })));
  if (best === undefined) return nothing("id", "no field is different in every item");
  if (best.score < 2) {
    const maybe = unique.map(nameOf).slice(0, 5).join(", ");
    return nothing("id", `${maybe}: different in every item seen, but nothing says that it always is`);
  }
  const isClear = best.score - (second?.score ?? 0) >= 1;
  const certainty = !isClear ? "low" : best.score >= 4 ? "high" : "medium";
  const { order, values } = best.field;
  const why = `different in all ${values.length} items${order === "none" ? "" : `, ${order}`}`;
  return { fact: "id", expression: access(best.field), certainty, why, ...(isClear ? {} : orElse(second)) };
}

function idScore({ path, types, order, values }: FieldFacts): number {
  const last = path.at(-1) ?? "";
  const areTexts = (pattern: RegExp) => values.every((value) => typeof value === "string" && pattern.test(value));
  let score = 0;
  if (hasWord(last, ["id", "guid", "uuid", "key"]) || /id$/i.test(last)) score += path.length === 1 ? 2 : 1;
  if (areTexts(guid) || (types.includes("number") && order !== "none")) score += 3;
  else if (areTexts(/^[\w.:/+=-]{6,100}$/)) score += 1;
  if (hasWord(last, ["name", "title", "path", "message", "items", "count", "size", "duration"])) score -= 2;
  return score;
}

/** The field whose values are ids of sync jobs, if any. */
export function findJoin(fields: readonly FieldFacts[], clues: IdentityClues): Scored | undefined {
  const known = clues.syncJobIds;
  const scored = fields.flatMap((field) => {
    const isKey = field.types.every((type) => ["text", "number", "empty"].includes(type));
    if (!isKey || field.time !== undefined || field.emptyShare > 0.1) return [];
    const given = givenIn(field);
    const share = given.filter((value) => known.has(String(value))).length / Math.max(given.length, 1);
    const name = nameOf(field);
    const named = /sync.?job/i.test(name) ? 2 : hasWord(name, ["job"]) ? 1 : 0;
    if (known.size === 0 ? named === 0 : share < 0.6) return [];
    const covered = Math.min(1, field.distinct / Math.max(known.size, 1));
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
    const noneKnown = "no sync job is known to compare with, and no name speaks of one";
    return nothing("syncJobId", known === 0 ? noneKnown : `no field holds the ids of the ${known} known sync jobs`);
  }
  const { field, score } = best;
  const line = { fact: "syncJobId", expression: access(field) } as const;
  if (known === 0) return { ...line, certainty: "low", why: "by its name alone: no sync job is known to compare with" };
  const others = fields.filter((one) => one !== field);
  const second = findJoin(others, clues);
  const isClear = score - (second?.score ?? 0) >= 0.5;
  const isMuch = field.distinct >= Math.min(3, known) && (score >= 2.2 || field.distinct * 2 >= known);
  const certainty = !isClear || !isMuch ? "low" : score >= 1.9 ? "high" : "medium";
  const doubts = `${isMuch ? "" : ", which may be chance"}${isClear ? "" : "; another field fits as well"}`;
  const why = `its ${field.distinct} values are ids of the ${known} known sync jobs${doubts}`;
  return { ...line, certainty, why, ...(isClear ? {} : orElse(second)) };
}

/** Proposes the text that names an item for people. */
export function proposeLabel(fields: readonly FieldFacts[], taken: readonly (FieldFacts | undefined)[]): Line[] {
  const scored = fields.flatMap((field) => {
    const texts = givenIn(field).filter((value) => typeof value === "string");
    const isText = field.types.includes("text") && field.types.every((type) => type === "text" || type === "empty");
    if (!isText || field.time !== undefined || taken.includes(field) || field.few !== undefined) return [];
    if (texts.some((text) => guid.test(text))) return [];
    const isNamed = hasWord(nameOf(field), [
      ...["name", "title", "label", "subject", "file", "document", "message", "description", "path"],
    ]);
    const isSpoken = texts.filter((text) => /[\s.]/.test(text)).length * 2 > field.values.length;
    return [{ field, score: (isNamed ? 2 : 0) + (isSpoken ? 2 : 0) }];
  });
  const [best] = sorted(scored);
  if (best === undefined || best.score < 2) return [];
  const certainty = best.score > 2 ? "medium" : "low";
  return [{ fact: "label", expression: access(best.field), certainty, why: "a text that differs from item to item" }];
}

function isContiguous(given: readonly unknown[]): boolean {
  const numbers = given.map(Number);
  return Math.max(...numbers) - Math.min(...numbers) === numbers.length - 1;
}

function sorted(scored: readonly Scored[]): Scored[] {
  return scored.toSorted((a, b) => b.score - a.score);
}

function orElse(second: Scored | undefined): { readonly instead?: string } {
  return second === undefined ? {} : { instead: access(second.field) };
}
