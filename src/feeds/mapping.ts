// Maps an item of the service to the facts that Syncline keeps. The fields of activities and
// conflicts are not documented (service-interface §2, Gaps): the operator's mapping names them.
// Pure, except for counting failures.
import type { ItemMapping, ServiceSettings } from "../config/policy-set.ts";
import { firstLine } from "../core/errors.ts";
import { type Expression, parseExpression } from "../core/expression.ts";
import { canonicalJson, hashText } from "../core/stable-hash.ts";
import type { ItemFacts, ListName } from "../model/feed.ts";

/** Maps the items of one list to facts. */
export interface ItemMapper {
  /** The facts of one item; undefined where the mapping has no expression, or it failed. */
  readonly read: (item: unknown) => ItemFacts;
  /** The expression that gives an item's id; empty: its content is its id. */
  readonly keyedBy: string;
  /** A hash of the mapping: with another one, seen items have other facts. */
  readonly mappedBy: string;
  /** Which facts the mapping can give. */
  readonly knows: (fact: keyof ItemMapping) => boolean;
  /** How many expressions failed so far, the last message, and its item. */
  readonly failures: () => MappingFailures;
}

/** Failures of a mapping. `item`: its id, or `#` and a hash where it has none. */
export interface MappingFailures {
  readonly count: number;
  readonly last: string;
  readonly item: string;
}

/** The documented key of each list's entities, and their names. Source: service-interface §2 */
const documented: Readonly<Partial<Record<ListName, ItemMapping>>> = {
  approvals: { id: "item.approvalId", label: 'item.?itemName.orValue("")' },
  triggers: { id: "item.triggerId" },
  authActivities: { id: "item.authAccountActivityEntityId" },
  masks: { id: "item.maskId", label: 'item.?name.orValue("")' },
};

/** From 1973 to 5138, in seconds or in milliseconds: the two ranges do not overlap. */
const secondsMin = 1e8;
const millisecondsMin = 1e11;
const millisecondsMax = 1e14;

const facts = ["id", "syncJobId", "startedAt", "finished", "succeeded", "label"] as const;

/** Makes the mapper of a list's items; without an id, a hash of the content identifies an item. */
export function createItemMapper(list: ListName, mapping: ItemMapping = {}): ItemMapper {
  const texts: ItemMapping = { ...documented[list], ...mapping };
  const expressions = new Map<keyof ItemMapping, Expression>();
  for (const fact of facts) {
    const text = texts[fact];
    if (text !== undefined) expressions.set(fact, parseExpression(text, "item"));
  }
  let count = 0;
  let last = "";
  let failedItem = "";
  /** Of the item that is read. */
  const unread: (keyof ItemMapping)[] = [];
  const note = (fact: keyof ItemMapping, why: string) => {
    count += 1;
    last = `${fact}: ${why}`;
    unread.push(fact);
  };
  const evaluate = <T>(fact: keyof ItemMapping, item: unknown, to: (value: unknown) => T | undefined) => {
    try {
      const value = expressions.get(fact)?.evaluate({ item });
      const read = to(value);
      // An empty text counts as a missing value.
      const isMissing = value === undefined || value === "";
      if (read === undefined && !isMissing && !wanted[fact].fits(value)) note(fact, tellKind(fact, value));
      return read;
    } catch (error) {
      note(fact, firstLine(error));
      return undefined;
    }
  };
  return {
    read: (item) => {
      const fingerprint = hashText(canonicalJson(item));
      unread.length = 0;
      const id = evaluate("id", item, toText) ?? `#${fingerprint}`;
      const read: ItemFacts = {
        id,
        fingerprint,
        syncJobId: evaluate("syncJobId", item, toText),
        startedAtMs: evaluate("startedAt", item, toBeginMs),
        finished: evaluate("finished", item, toFlag),
        succeeded: evaluate("succeeded", item, toFlag),
        label: evaluate("label", item, toText)?.slice(0, 200),
      };
      if (unread.length === 0) return read;
      failedItem = id;
      return { ...read, unread: [...unread] };
    },
    keyedBy: texts.id ?? "",
    mappedBy: hashText(canonicalJson(texts)),
    // Without an id, an item that ends is another item, and the one before it never ends.
    knows: (fact) => expressions.has(fact) && (fact !== "finished" || expressions.has("id")),
    failures: () => ({ count, last, item: failedItem }),
  };
}

/** The type of each fact; null: an item has none. Every item has an id, and is finished or not. */
const wanted: Readonly<
  Record<keyof ItemMapping, { readonly what: string; readonly fits: (value: unknown) => boolean }>
> = {
  id: { what: "a text or a number", fits: (value) => toText(value) !== undefined },
  syncJobId: { what: "a text or a number", fits: (value) => value === null || toText(value) !== undefined },
  startedAt: {
    what: "a time with its zone, or seconds or milliseconds since 1970",
    fits: (value) => value === null || toInstantMs(value) !== undefined,
  },
  finished: { what: "true or false", fits: (value) => typeof value === "boolean" },
  succeeded: { what: "true or false", fits: (value) => value === null || typeof value === "boolean" },
  label: { what: "a text or a number", fits: (value) => value === null || toText(value) !== undefined },
};

/** How a sync job shows that it is active. */
export interface ActivePredicate {
  /** The properties to select; none: the default ones. */
  readonly select: readonly string[];
  /** Whether a sync job is active, or why that cannot be told, in one line. */
  readonly read: (syncJob: unknown) => { readonly active: boolean } | { readonly wrong: string };
}

/** Makes the reader of `mapping.syncJob`. */
export function createActivePredicate({
  active: text,
  select,
}: NonNullable<ServiceSettings["syncJob"]>): ActivePredicate {
  const expression = parseExpression(text, "item");
  const read = (item: unknown) => {
    try {
      const active = expression.evaluate({ item });
      if (typeof active === "boolean") return { active };
      return { wrong: `active: gives ${kindOf(active)}, and true or false is wanted` };
    } catch (error) {
      return { wrong: `active: ${firstLine(error)}` };
    }
  };
  return { select, read };
}

/** Why an expression does not give this fact for an item, without values; undefined: it does. */
export function checkOnItem(fact: keyof ItemMapping, text: string, item: unknown): string | undefined {
  let value: unknown;
  try {
    value = parseExpression(text, "item").evaluate({ item });
  } catch (error) {
    return firstLine(error);
  }
  return wanted[fact].fits(value) ? undefined : tellKind(fact, value);
}

function tellKind(fact: keyof ItemMapping, value: unknown): string {
  return `gives ${kindOf(value)}, and ${wanted[fact].what} is wanted`;
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (value === "") return "an empty text";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "bigint") return "a number";
  const kinds: Readonly<Record<string, string>> = { string: "a text", boolean: "true or false", number: "a number" };
  return kinds[typeof value] ?? "an object";
}

function toText(value: unknown): string | undefined {
  if (typeof value === "string") return value === "" ? undefined : value.slice(0, 500);
  if (typeof value === "number" || typeof value === "bigint") return String(value);
  return undefined;
}

/** An instant: a CEL timestamp, ISO 8601 with a zone, seconds or milliseconds since 1970. */
export function toInstantMs(value: unknown): number | undefined {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? undefined : value.getTime();
  if (typeof value === "string") {
    const ms = /T.*(Z|[+-]\d{2}:?\d{2})$/i.test(value) ? Date.parse(value) : Number.NaN;
    return Number.isNaN(ms) ? undefined : ms;
  }
  if (typeof value !== "number" && typeof value !== "bigint") return undefined;
  const number = Number(value);
  if (!(number >= secondsMin && number < millisecondsMax)) return undefined;
  return number < millisecondsMin ? number * 1_000 : number;
}

/** When an activity began; undefined also for a date such as 0001-01-01: it has not begun yet. */
function toBeginMs(value: unknown): number | undefined {
  const ms = toInstantMs(value);
  return ms !== undefined && ms >= secondsMin * 1_000 && ms < millisecondsMax ? ms : undefined;
}

function toFlag(value: unknown): boolean | undefined {
  return typeof value === "boolean" ? value : undefined;
}
