// From an item as the service sent it to the facts that Syncline keeps. Pure, except for counting what a mapping could not read.
// Nothing about the fields of activities and conflicts is known (service-interface §2, Gaps): the operator's mapping says it.
import type { ItemMapping } from "../config/policy-set.ts";
import { type Expression, parseExpression } from "../core/expression.ts";
import type { ListName } from "../core/list-name.ts";
import { canonicalJson, hashText } from "../core/stable-hash.ts";
import type { ItemFacts } from "../tasks/feed.ts";

/** Reads items of one list. */
export interface ItemReader {
  /** The facts of one item; undefined where the mapping says nothing or could not be read. */
  readonly read: (item: unknown) => ItemFacts;
  /** Which facts the mapping can give at all. */
  readonly knows: (fact: keyof ItemMapping) => boolean;
  /** How many expressions failed so far, and the last message. */
  readonly failures: () => { readonly count: number; readonly last: string };
}

/** The key of each list's entities, and what an approval is called, where the interface names it. Source: service-interface §2 */
const documented: Readonly<Partial<Record<ListName, ItemMapping>>> = {
  approvals: { id: "item.approvalId", label: "item.itemName" },
  triggers: { id: "item.triggerId" },
  authActivities: { id: "item.authAccountActivityEntityId" },
  masks: { id: "item.maskId" },
};

/** From 1973 to 5138, whether in seconds or in milliseconds: the two ranges do not meet. */
const secondsMin = 1e8;
const millisecondsMin = 1e11;
const millisecondsMax = 1e14;

/** Makes the reader of a list's items. Without a mapped or documented id, an item is known by a hash of its content. */
export function createItemReader(list: ListName, mapping: ItemMapping = {}): ItemReader {
  const texts: ItemMapping = { ...documented[list], ...mapping };
  const expressions = new Map<keyof ItemMapping, Expression>();
  for (const fact of ["id", "syncJobId", "startedAt", "finished", "succeeded", "label"] as const) {
    const text = texts[fact];
    if (text !== undefined) expressions.set(fact, parseExpression(text, "item"));
  }
  let count = 0;
  let last = "";
  const evaluate = (fact: keyof ItemMapping, item: unknown): unknown => {
    try {
      return expressions.get(fact)?.evaluate({ item });
    } catch (error) {
      count += 1;
      last = `${fact}: ${error instanceof Error ? (error.message.split("\n", 1)[0] ?? "") : String(error)}`;
      return undefined;
    }
  };
  return {
    read: (item) => {
      const fingerprint = hashText(canonicalJson(item));
      return {
        id: toText(evaluate("id", item)) ?? `#${fingerprint}`,
        fingerprint,
        syncJobId: toText(evaluate("syncJobId", item)),
        startedAtMs: toInstantMs(evaluate("startedAt", item)),
        finished: toFlag(evaluate("finished", item)),
        succeeded: toFlag(evaluate("succeeded", item)),
        label: toText(evaluate("label", item))?.slice(0, 200),
      };
    },
    knows: (fact) => expressions.has(fact),
    failures: () => ({ count, last }),
  };
}

function toText(value: unknown): string | undefined {
  if (typeof value === "string") return value === "" ? undefined : value.slice(0, 500);
  if (typeof value === "number" || typeof value === "bigint") return String(value);
  return undefined;
}

/** An instant: a CEL timestamp, an ISO 8601 text with its zone, or seconds or milliseconds since 1970. A text without a zone is none. */
function toInstantMs(value: unknown): number | undefined {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? undefined : value.getTime();
  if (typeof value === "string")
    return /T.*(Z|[+-]\d{2}:?\d{2})$/i.test(value) ? Date.parse(value) || undefined : undefined;
  if (typeof value !== "number" && typeof value !== "bigint") return undefined;
  const number = Number(value);
  if (!(number >= secondsMin && number < millisecondsMax)) return undefined;
  return number < millisecondsMin ? number * 1_000 : number;
}

function toFlag(value: unknown): boolean | undefined {
  return typeof value === "boolean" ? value : undefined;
}
