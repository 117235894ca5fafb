// The shape of a list: the names and types of its items' fields, small enough to store.
// walk-feed.ts logs once when a service sends other fields. Pure.
import * as z from "zod";
import { isJsonObject } from "../core/json.ts";

const fieldSchema = z.object({
  name: z.string(),
  types: z.array(z.string()),
  /** True when each examined item had it, and there were enough items. */
  always: z.boolean(),
});

const shapeSchema = z.object({ v: z.literal(1), fields: z.array(fieldSchema) });

/** The fields by name, each with its JSON types (without null) and whether it was always there. */
export type ListShape = Readonly<z.infer<typeof shapeSchema>>;

const fieldsMax = 200;
const nameLengthMax = 200;
/** How many items must have or lack a field before that counts. */
const itemsForSure = 20;

/** The shape of these items, by their top-level fields. */
export function shapeOf(items: readonly unknown[]): ListShape {
  const fields = new Map<string, { types: Set<string>; seen: number }>();
  for (const item of items) {
    if (!isJsonObject(item)) continue;
    for (const [name, value] of Object.entries(item)) {
      if (name.startsWith("@") || name.includes("@odata.") || name.length > nameLengthMax) continue;
      if (!fields.has(name) && fields.size >= fieldsMax) continue;
      const field = fields.get(name) ?? { types: new Set<string>(), seen: 0 };
      field.seen += 1;
      if (value !== null) field.types.add(Array.isArray(value) ? "list" : typeof value);
      fields.set(name, field);
    }
  }
  const always = (seen: number) => seen === items.length && items.length >= itemsForSure;
  const rows = [...fields].sort(([a], [b]) => (a < b ? -1 : 1));
  const named = rows.map(([name, { types, seen }]) => ({ name, types: [...types].sort(), always: always(seen) }));
  return { v: 1, fields: named };
}

/** What is new in a shape, and the merged shape. Each change is reported once. */
export function compareShapes(
  known: ListShape | undefined,
  seen: ListShape,
  itemsSeen: number,
): { readonly changes: readonly string[]; readonly shape: ListShape } {
  if (known === undefined) return { changes: [], shape: seen };
  const changes: string[] = [];
  const [before, now] = [byName(known), byName(seen)];
  const fields: z.infer<typeof fieldSchema>[] = [];
  const isEnough = itemsSeen >= itemsForSure;
  for (const [name, was] of before) {
    const is = now.get(name);
    if (is === undefined && was.always && isEnough) changes.push(`${name} is gone`);
    const added = (is?.types ?? []).filter((type) => !was.types.includes(type));
    // A field that was always null shows its type only now: not new.
    if (added.length > 0 && was.types.length > 0)
      changes.push(`${name} was ${was.types.join(" or ")}, now also ${added.join(" and ")}`);
    fields.push({
      name,
      types: [...was.types, ...added].sort(),
      always: was.always && (is !== undefined || !isEnough),
    });
  }
  for (const [name, { types }] of now) {
    if (before.has(name) || fields.length >= fieldsMax) continue;
    if (before.size > 0) changes.push(`${name} is new`);
    fields.push({ name, types, always: false });
  }
  return { changes, shape: { v: 1, fields } };
}

/** A map, since a service may have a field named `constructor`. */
function byName(shape: ListShape): Map<string, z.infer<typeof fieldSchema>> {
  return new Map(shape.fields.map((field) => [field.name, field]));
}

/** Parses a stored shape; one that this version cannot read counts as none. */
export function readShape(text: string | undefined): ListShape | undefined {
  if (text === undefined) return undefined;
  try {
    return shapeSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
