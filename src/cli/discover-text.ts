// Renders what `syncline discover` found: YAML to paste, with the rest as comments. Pure; called by
// discover.ts.
import type { ListName } from "../core/list-name.ts";
import { cutText } from "../core/plain-text.ts";
import type { DiscoveredList, UnreadableList } from "../feeds/discover/discover-service.ts";
import type { FieldFacts } from "../feeds/discover/field-facts.ts";
import type { Line } from "../feeds/discover/proposal.ts";

/** All that was found about a service. */
export interface Discovery {
  readonly service: string;
  readonly repository: string | undefined;
  readonly found: readonly DiscoveredList[];
  readonly unreadable: readonly UnreadableList[];
  /** How many sync jobs were known to compare with. */
  readonly syncJobIds: number;
  readonly requests: readonly { readonly what: string; readonly outcome: string }[];
  readonly retries: number;
}

const yamlName = {
  activities: "activity",
  conflictDetails: "conflict",
  approvals: "approval",
  triggers: "trigger",
  authActivities: "authActivity",
  masks: "mask",
} as const satisfies Record<ListName, string>;

const fieldsShown = 60;
const valuesShown = 12;

/**
 * The YAML, line by line: `mapping:` for `services.NAME`, or a comment that says why there is none.
 */
export function discoveryYaml({
  service,
  repository,
  found,
  unreadable,
  syncJobIds,
  requests,
  retries,
}: Discovery): string[] {
  const mapped = found.flatMap(mappingOf);
  return [
    comment(
      `syncline discover ${service}${repository === undefined ? "" : ` --repository ${repository}`}: a proposal from a sample, not a promise of the service`,
    ),
    comment(`${syncJobIds} sync jobs known from masks and policies`),
    ...found.flatMap(describeList),
    ...unreadable.map(({ list, error }) => comment(`${list}: could not be read: ${error.message}`)),
    "#",
    ...(mapped.some((line) => !line.startsWith(" ".repeat(4)) && !line.trimStart().startsWith("#"))
      ? [comment(`goes under services.${service}:`), "mapping:", ...mapped]
      : [comment("nothing can be proposed: see above"), ...mapped.filter((line) => line.trimStart().startsWith("#"))]),
    "#",
    comment(`requests made, all of them GET: ${requests.length}${retries === 0 ? "" : `, and ${retries} repeated`}`),
    ...requests.map(({ what, outcome }) => comment(`  ${what}: ${outcome}`)),
  ];
}

/** The same for machines. */
export function discoveryJson({ found, unreadable, ...rest }: Discovery): string {
  return JSON.stringify({
    ...rest,
    lists: found.map(({ list, sample, proposal, probes, shape }) => ({
      list,
      ...sample,
      grows: proposal.grows,
      shape,
      options: probes,
      fields: proposal.fields.map(({ path, types, emptyShare, isUnique, time, order, few, distinct }) => ({
        path,
        types,
        emptyShare,
        isUnique,
        time,
        order,
        distinct,
        values: few === undefined ? undefined : [...few.keys()],
      })),
      mapping: proposal.lines,
      limits: proposal.limits,
    })),
    unreadable: unreadable.map(({ list, error }) => ({ list, kind: error.kind, message: error.message })),
  });
}

function describeList({ list, sample, proposal, probes, shape }: DiscoveredList): string[] {
  const { count, pageSize, seen, items } = sample;
  const part = { whole: "all of it", ends: "from both ends", front: "from the front only: the end is too far" }[seen];
  const shown = proposal.fields.slice(0, fieldsShown);
  return [
    "#",
    comment(
      `${list}: ${items} items read, ${part}${count === undefined ? "" : `, of ${count}`}; ${pageSize === undefined ? "one page" : `${pageSize} a page`}; grows: ${proposal.grows}; shape ${shape}`,
    ),
    ...(probes === undefined
      ? []
      : [
          comment(
            `  options: ${Object.entries(probes)
              .map(([name, result]) => `${name} ${result}`)
              .join(", ")}`,
          ),
        ]),
    ...shown.map((field) => comment(`  ${describeField(field)}`)),
    ...(proposal.fields.length > shown.length
      ? [comment(`  and ${proposal.fields.length - shown.length} more fields`)]
      : []),
    ...proposal.limits.map((limit) => comment(`  NOTE: ${limit}`)),
  ];
}

function describeField({ path, types, emptyShare, few, isUnique, time, order, distinct }: FieldFacts): string {
  const facts = [types.join(" or ")];
  if (emptyShare > 0) facts.push(`empty in ${(emptyShare * 100).toFixed(emptyShare < 0.01 ? 2 : 0)} %`);
  if (time !== undefined) facts.push(`time (${time})`);
  if (isUnique) facts.push("unique");
  else
    facts.push(
      few === undefined
        ? `${distinct} values`
        : `one of ${[...few.keys()]
            .slice(0, valuesShown)
            .map((value) => cutText(JSON.stringify(value), 60))
            .join(" ")}`,
    );
  if (order !== "none") facts.push(order);
  return `${path.join(".")}: ${facts.join(", ")}`;
}

function mappingOf({ list, proposal }: DiscoveredList): string[] {
  const isAny = proposal.lines.some(({ expression }) => expression !== undefined);
  const head = isAny ? `  ${yamlName[list]}:` : `  ${comment(`${yamlName[list]}: nothing`)}`;
  return [head, ...proposal.lines.flatMap(mappingLine)];
}

function mappingLine({ fact, expression, certainty, why, instead }: Line): string[] {
  const other =
    instead === undefined
      ? []
      : [`    ${comment(`${expression === undefined ? "perhaps" : "or"} ${fact}: ${JSON.stringify(instead)}`)}`];
  if (expression === undefined) return [`    ${comment(`${fact}: not proposed: ${why}`)}`, ...other];
  return [`    ${fact}: ${JSON.stringify(expression)}  ${comment(`${certainty}: ${why}`)}`, ...other];
}

/** A comment of one line: without line breaks or control characters from a service's names. */
function comment(text: string): string {
  return `# ${cutText(text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\u2066-\u2069\u202a-\u202e]+/gu, " "), 400)}`;
}
