// Reads a policy file that is in order for a tenth of what a tree with places costs. Called by
// yaml-file.ts. What it refuses, parse-yaml.ts reads, and says what is wrong, and where.
import { CORE_SCHEMA, constructFromEvents, defineMappingTag, EVENT_ID, type Event, mapTag, parseEvents } from "js-yaml";
import { isJsonObject } from "../../core/json.ts";
import { policyLimits } from "../rules/policy-limits.ts";

/** What stands in a file. */
export interface PlainYaml {
  /** Undefined when there is more in it than values: variables, anchors, tags. */
  readonly value: Readonly<Record<string, unknown>> | undefined;
  /** Where the blocks in its lists begin: offsets by their paths as JSON. */
  readonly starts: ReadonlyMap<string, number>;
}

/** A key that is no short text is a mistake, or a number, which would lose how it is written. */
const wordKeys = defineMappingTag("tag:yaml.org,2002:map", {
  ...mapTag,
  addPair: (map, key, value) =>
    typeof key === "string" && /^(?!<<$|__proto__$).{1,100}$/.test(key)
      ? mapTag.addPair(map, key, value)
      : "a key must be a plain word",
});

const schema = CORE_SCHEMA.withTags(wordKeys);

/** What the two do not read alike: tabs, old line ends, byte order marks, directives, `...`. */
const readDifferently = /\t|\r(?!\n)|\uFEFF|^(?:%|\.\.\.)/m;
/** Nor a number that is too large: a text for the one, infinite for the other. */
const tooLarge = /\d[eE]\+?\d{3,}(?![\w-])(?<=(?<![\w-])[-+.\d]+[eE]\+?\d+)/;

/** Reads a text; undefined when it is no single block of keys, or is not in order. */
export function readPlainYaml(text: string): PlainYaml | undefined {
  if (readDifferently.test(text) || tooLarge.test(text)) return undefined;
  try {
    const events = parseEvents(text, { maxDepth: policyLimits.nestingMax });
    const starts = startsOf(events, text);
    if (text.includes("${") || !events.every(isPlain)) return { value: undefined, starts };
    const [value, second] = constructFromEvents(events, { source: text, schema });
    return isJsonObject(value) && second === undefined ? { value, starts } : undefined;
  } catch {
    // The first error ends it. The other parser finds them all, with words for each.
    return undefined;
  }
}

function isPlain(event: Event): boolean {
  if (event.type === EVENT_ID.DOCUMENT || event.type === EVENT_ID.POP) return true;
  return event.type !== EVENT_ID.ALIAS && event.anchorStart < 0 && event.tagStart < 0;
}

/** Each block begins with its first key. */
function startsOf(events: readonly Event[], text: string): ReadonlyMap<string, number> {
  const starts = new Map<string, number>();
  // Open are the document, the block of keys that is the file, one of its lists.
  let [open, index, key] = [0, 0, ""];
  for (const [at, event] of events.entries()) {
    const next = events[at + 1];
    if (open === 2 && event.type === EVENT_ID.SCALAR) key = text.slice(event.valueStart, event.valueEnd);
    if (open === 2) index = event.type === EVENT_ID.SEQUENCE ? 0 : Number.NaN;
    if (open === 3 && event.type === EVENT_ID.MAPPING && next?.type === EVENT_ID.SCALAR)
      starts.set(JSON.stringify([key, index]), next.valueStart);
    if (open === 3) index += 1;
    if (event.type === EVENT_ID.POP) open -= 1;
    else if (event.type !== EVENT_ID.SCALAR && event.type !== EVENT_ID.ALIAS) open += 1;
  }
  return starts;
}
