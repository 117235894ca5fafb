// Probes which query options a list honours beyond the promised `$select` and `$expand`
// (service-interface §4.2, Gaps). One GET of one page per option, compared with the first page.
// Called by discover-service.ts.
import type { ListName } from "../../core/list-name.ts";
import { ServiceError } from "../../service/service-error.ts";
import { type FieldFacts, instantOf } from "./field-facts.ts";
import { type ListSample, pagesOf, type SampleParts, withOption } from "./sample-list.ts";

/** The options that are tried. */
const probedOptions = ["$top", "$skip", "$orderby", "$filter", "maxpagesize", "$count"] as const;

/**
 * `honoured`; `ignored`: the answer is the same as without it; `refused`: an error; `untried`: the
 * list is too short to tell.
 */
type ProbeResult = "honoured" | "ignored" | "refused" | "untried";

/** The result for each option. */
export type Probes = Readonly<Record<(typeof probedOptions)[number], ProbeResult>>;

type Judge = (items: readonly unknown[]) => boolean;

/** Tries the options on a sampled list, one after another. */
export async function probeOptions(
  list: ListName,
  {
    sample,
    fields,
    parts,
  }: { readonly sample: ListSample; readonly fields: readonly FieldFacts[]; readonly parts: SampleParts },
): Promise<Probes> {
  const { items } = sample.first;
  const second = JSON.stringify(items[1]);
  const isTold = items.length >= 2 && second !== JSON.stringify(items[0]);
  const ask = (name: string, value: string, judge: Judge) =>
    probe(list, { parts, what: `${name}=${value}`, from: withOption(sample.first.url, name, value), judge });
  const plain = fields.filter(({ path }) => path.length === 1 && /^[A-Za-z_]\w*$/.test(path[0] ?? ""));
  const order = orderProbe(plain, items.length);
  const filter = filterProbe(plain, items.length);
  return {
    $top: items.length < 2 ? "untried" : await ask("$top", "1", (got) => got.length === 1),
    $skip: isTold ? await ask("$skip", "1", (got) => JSON.stringify(got[0]) === second) : "untried",
    $orderby: order === undefined ? "untried" : await ask("$orderby", order.option, order.judge),
    $filter: filter === undefined ? "untried" : await ask("$filter", filter.option, filter.judge),
    maxpagesize:
      items.length < 2
        ? "untried"
        : await probe(list, {
            parts,
            what: "Prefer: odata.maxpagesize=1",
            from: sample.first.url,
            judge: (got) => got.length === 1,
            pageSizeWish: 1,
          }),
    $count: sample.count === undefined ? "refused" : "honoured",
  };
}

async function probe(
  list: ListName,
  {
    parts,
    what,
    judge,
    ...asked
  }: { parts: SampleParts; what: string; from: string; judge: Judge; pageSizeWish?: number },
): Promise<ProbeResult> {
  try {
    for await (const page of pagesOf(list, parts, { ...asked, pagesMax: 1 })) {
      const result = judge(page.items) ? "honoured" : "ignored";
      parts.note(`${list}, ${what}`, result);
      return result;
    }
    return "ignored";
  } catch (error) {
    if (!(error instanceof ServiceError) || error.kind === "cancelled") throw error;
    parts.note(`${list}, ${what}`, `refused (${error.status ?? error.kind})`);
    return "refused";
  }
}

/** Reverses the order of a field that has one. */
function orderProbe(fields: readonly FieldFacts[], pageItems: number): { option: string; judge: Judge } | undefined {
  const field = fields.find(({ order, values }) => order !== "none" && new Set(values.slice(0, pageItems)).size > 1);
  const [name] = field?.path ?? [];
  if (field === undefined || name === undefined) return undefined;
  const isTurned = field.order === "ascending";
  const judge: Judge = (got) => {
    const numbers = got.map((item) => numberOf(fieldOf(item, name)));
    const [first, last] = [numbers[0] ?? Number.NaN, numbers.at(-1) ?? Number.NaN];
    return isTurned ? first > last : first < last;
  };
  return { option: `${name} ${isTurned ? "desc" : "asc"}`, judge };
}

/** Filters for a value that only some items of the page have. */
function filterProbe(fields: readonly FieldFacts[], pageItems: number): { option: string; judge: Judge } | undefined {
  for (const { path, values, time, types } of fields) {
    const [name] = path;
    const here = values.slice(0, pageItems);
    const value = here[0];
    const isLiteral = typeof value === "number" || (typeof value === "string" && value.length <= 100);
    if (
      name === undefined ||
      time !== undefined ||
      types.length > 1 ||
      !isLiteral ||
      here.every((one) => one === value)
    )
      continue;
    const literal = typeof value === "number" ? String(value) : `'${value.replaceAll("'", "''")}'`;
    return {
      option: `${name} eq ${literal}`,
      judge: (got) => got.length > 0 && got.every((item) => fieldOf(item, name) === value),
    };
  }
  return undefined;
}

function fieldOf(item: unknown, name: string): unknown {
  return typeof item === "object" && item !== null ? Reflect.get(item, name) : undefined;
}

function numberOf(value: unknown): number {
  return typeof value === "number" ? value : (instantOf(value) ?? Number.NaN);
}
