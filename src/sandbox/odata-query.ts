// Parses the address: keys, query options, literals. Every mistake is a Refusal with 400. Pure;
// called by exchange.ts and the handlers.
import { Refusal } from "./reply.ts";

/** The query options that a route may accept; every other `$` option is refused. */
export type QueryOption = "$select" | "$expand" | "$skip" | "$skiptoken";

/**
 * The read query: chosen properties (undefined: all), how many items to leave out, and the token of
 * a next link.
 */
export interface ODataQuery {
  readonly select: readonly string[] | undefined;
  readonly skip: number;
  readonly skipToken: string | undefined;
}

/**
 * Reads the options of a request. `$expand` is read and has nothing to expand (Assumption S6).
 * @throws Refusal 400 on an option that is not allowed here, given twice, or unreadable.
 */
export function parseQuery(parameters: URLSearchParams, allowed: readonly QueryOption[]): ODataQuery {
  for (const name of new Set(parameters.keys())) {
    if (!name.startsWith("$")) continue;
    const known = allowed.some((option) => option === name);
    if (!known) throw new Refusal(400, `The query option '${name}' is not supported here.`);
    if (parameters.getAll(name).length > 1) throw new Refusal(400, `The query option '${name}' is given twice.`);
  }
  return {
    select: parseSelect(parameters.get("$select")),
    skip: parseSkip(parameters.get("$skip")),
    skipToken: parameters.get("$skiptoken") ?? undefined,
  };
}

/**
 * Checks the chosen properties against those of the entity type.
 * @throws Refusal 400 on a property that the entity type does not have.
 */
export function checkSelect(select: readonly string[] | undefined, properties: readonly string[]): void {
  const unknown = select?.find((name) => name !== "*" && !properties.includes(name));
  if (unknown !== undefined) throw new Refusal(400, `Could not find a property named '${unknown}'.`);
}

/**
 * Selects properties of an entity, in the entity's order; all of them without a choice or with `*`.
 */
export function applySelect(
  entity: Readonly<Record<string, unknown>>,
  select: readonly string[] | undefined,
): Readonly<Record<string, unknown>> {
  if (select === undefined || select.includes("*")) return entity;
  return Object.fromEntries(Object.entries(entity).filter(([name]) => select.includes(name)));
}

/**
 * Reads a numeric key.
 * @throws Refusal 400 when it is not a whole number of at most 15 digits.
 */
export function parseKey(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new Refusal(400, `The key '${text.slice(0, 64)}' is not a number.`);
  return Number(text);
}

/**
 * Reads a text as an OData string literal (`'it''s'`) when it is quoted, and as it stands
 * otherwise.
 */
export function unquote(text: string): string {
  const quoted = /^'((?:[^']|'')*)'$/.exec(text);
  return quoted === null ? text : (quoted[1] ?? "").replaceAll("''", "'");
}

/**
 * Reads `name=value,name='it''s, fine'` into pairs; values still quoted.
 * @throws Refusal 400 on anything else, and on a name given twice.
 */
export function parseNamedArguments(text: string): ReadonlyMap<string, string> {
  const pairs = new Map<string, string>();
  let rest = text.trim();
  while (rest !== "") {
    const match = /^(\w+)\s*=\s*('(?:[^']|'')*'|[^',]*)\s*(?:,\s*|$)/.exec(rest);
    const name = match?.[1];
    if (match === null || name === undefined) throw new Refusal(400, "The arguments must be name=value, name=value.");
    if (pairs.has(name)) throw new Refusal(400, `The argument '${name}' is given twice.`);
    pairs.set(name, (match[2] ?? "").trim());
    rest = rest.slice(match[0].length);
  }
  return pairs;
}

function parseSelect(text: string | null): readonly string[] | undefined {
  if (text === null) return undefined;
  const names = text.split(",").map((name) => name.trim());
  if (names.includes("")) throw new Refusal(400, "The query option '$select' has an empty property name.");
  return names;
}

function parseSkip(text: string | null): number {
  if (text === null) return 0;
  if (!/^\d{1,9}$/.test(text)) throw new Refusal(400, "The query option '$skip' must be a whole number.");
  return Number(text);
}
