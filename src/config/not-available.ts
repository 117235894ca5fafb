// What the format has and this version of Syncline does not do yet. A later version deletes rows here and nothing else.
// Called by load-policies.ts and by the reference in docs/policies.md.
import type { Path } from "./node-places.ts";
import { type View, viewOf } from "./view.ts";

/** The version that the messages name: major and minor of package.json. */
export const availableVersion = "0.1";

/** A key, or one value of a key, that is refused. */
export interface NotAvailable {
  /** The way to the key: `*` stands for any name or index. */
  readonly path: string;
  /** Only this value is refused. */
  readonly value?: string;
  /** What to do, after "remove it, or ". */
  readonly instead: string;
}

/** The one list of what is refused. */
export const notAvailable: readonly NotAvailable[] = [
  { path: "policies.*.delete", instead: "delete the sync job with `syncline api`" },
  { path: "policies.*.notify", instead: "watch the log and the metrics for outcomes" },
  { path: "defaults.notify", instead: "watch the log and the metrics for outcomes" },
  { path: "sinks", instead: "watch the log and the metrics for outcomes" },
];

/** A refusal of something that stands in a file. */
export interface Refusal {
  readonly path: Path;
  readonly message: string;
  readonly hint: string;
}

/** Everything in a file's values that this version does not do. */
export function findNotAvailable(value: unknown): readonly Refusal[] {
  return notAvailable.flatMap((row) =>
    matches(viewOf(value), row.path.split("."))
      .filter((view) => view.isPresent && (row.value === undefined || view.text() === row.value))
      .map((view) => {
        const what = row.value === undefined ? `"${view.path.at(-1)}"` : `"${view.path.at(-1)}: ${row.value}"`;
        return {
          path: view.path,
          message: `${what} is not available in this version of Syncline (${availableVersion})`,
          hint: `remove it, or ${row.instead}`,
        };
      }),
  );
}

function matches(view: View, parts: readonly string[]): readonly View[] {
  const [part, ...rest] = parts;
  if (part === undefined) return [view];
  const below = part === "*" ? [...view.items(), ...view.entries().map(([, value]) => value)] : [view.at(part)];
  return below.flatMap((item) => matches(item, rest));
}
