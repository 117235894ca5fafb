// Where in a file the value or the key at a path stands. Called by yaml-file.ts. Follows aliases to where the value is written.
import { type Alias, isAlias, isMap, isScalar, isSeq, type Node, type Pair, type YAMLMap } from "yaml";
import type { Range } from "./source-text.ts";

/** The way from the root of a file to a value: keys and 0-based indexes. */
export type Path = readonly (string | number)[];

/** Which end of "key: value" a problem points at. */
export type Place = "key" | "value";

/** Finds ranges by path. */
export interface NodePlaces {
  /** The range of the value or key at a path; of its nearest ancestor when it is not there. */
  rangeOf(path: Path, place: Place): Range;
}

interface Step {
  readonly node: unknown;
  readonly key: unknown;
}

/** Prepares finding places below a root node. Keys are indexed on first use, so many look-ups in one big map stay cheap. */
export function createNodePlaces(root: Node | null, targets: ReadonlyMap<Alias, Node>): NodePlaces {
  const indexes = new WeakMap<YAMLMap, Map<string, Pair>>();
  const indexOf = (map: YAMLMap) => {
    const known = indexes.get(map);
    if (known !== undefined) return known;
    const index = new Map<string, Pair>();
    for (const pair of map.items) {
      if (isScalar(pair.key) && typeof pair.key.value === "string") index.set(pair.key.value, pair);
    }
    indexes.set(map, index);
    return index;
  };
  const child = (parent: unknown, part: string | number): Step | undefined => {
    if (isSeq(parent) && typeof part === "number" && part < parent.items.length) {
      return { node: parent.items[part], key: undefined };
    }
    const pair = isMap(parent) ? indexOf(parent).get(String(part)) : undefined;
    return pair === undefined ? undefined : { node: pair.value, key: pair.key };
  };
  const resolve = (node: unknown) => (isAlias(node) ? targets.get(node) : node);
  return {
    rangeOf: (path, place) => {
      let step: Step = { node: root, key: undefined };
      for (const part of path) {
        const next = child(resolve(step.node), part);
        if (next === undefined) return rangeOfStep(step, "key");
        step = next;
      }
      return rangeOfStep(step, place);
    },
  };
}

/** A key; or a value that is written on the line. A collection is pointed at by its key, or by the first key in it. */
function rangeOfStep(step: Step, place: Place): Range {
  const keyRange = isScalar(step.key) ? step.key.range : undefined;
  const node = step.node;
  const isWritten =
    (isScalar(node) || isAlias(node)) &&
    node.range !== undefined &&
    node.range !== null &&
    node.range[1] > node.range[0];
  if (place === "value" && isWritten && node.range) return [node.range[0], node.range[1]];
  if (keyRange) return [keyRange[0], keyRange[1]];
  if (isMap(node)) {
    const first = node.items[0]?.key;
    if (isScalar(first) && first.range) return [first.range[0], first.range[1]];
  }
  const range = isScalar(node) || isAlias(node) || isMap(node) || isSeq(node) ? node.range : undefined;
  return [range?.[0] ?? 0, (range?.[0] ?? 0) + 1];
}
