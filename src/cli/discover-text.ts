// Renders what `syncline discover` found: YAML to paste, with the rest as comments. Pure; called by
// discover.ts.
import type { ListName } from "../core/list-name.ts";
import { cutText } from "../core/plain-text.ts";
import { type FieldFacts, nameOf } from "../feeds/discover/describe-fields.ts";
import type { DiscoveredList, UnreadableList } from "../feeds/discover/discover-service.ts";
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

/**
 * The YAML, line by line: `mapping:` for `services.NAME`, or comments that say why there is none.
 */
export function discoveryYaml(discovery: Discovery): string[] {
  const { service, repository, found, unreadable, syncJobIds, requests, retries } = discovery;
  const asked = `syncline discover --service ${service}${repository === undefined ? "" : ` --repository ${repository}`}`;
  const isAny = found.some(({ proposal }) => proposal.lines.some(isProposed));
  return [
    comment(`${asked}: a proposal from a sample, not a promise of the service`),
    comment(`${syncJobIds} sync jobs known from masks and policies`),
    ...found.flatMap(describeList),
    ...unreadable.map(({ list, error }) => comment(`${list}: could not be read: ${error.message}`)),
    "#",
    ...(isAny ? [comment(`goes under services.${service}:`), "mapping:"] : [comment("nothing can be proposed:")]),
    ...found.flatMap(mappingOf),
    "#",
    comment(`requests made, all of them GET: ${requests.length}${retries === 0 ? "" : `, and ${retries} repeated`}`),
    ...requests.map(({ what, outcome }) => comment(`  ${what}: ${outcome}`)),
  ];
}

/** The same for machines. */
export function discoveryJson({ found, unreadable, ...rest }: Discovery): string {
  return JSON.stringify({
    v: 1,
    ...rest,
    lists: found.map(({ list, sample, proposal: { grows, fields, lines, limits } }) => ({
      list,
      ...sample,
      grows,
      fields: fields.map(({ values, isAlwaysThere, few, ...facts }) => ({ ...facts, values: few })),
      mapping: lines,
      limits,
    })),
    unreadable: unreadable.map(({ list, error }) => ({ list, kind: error.kind, message: error.message })),
  });
}

function describeList({ list, sample, proposal }: DiscoveredList): string[] {
  const { count, pageSize, seen, items } = sample;
  const part = { whole: "all of it", ends: "from both ends", front: "from the front only: the end is too far" }[seen];
  const size = `${part}${count === undefined ? "" : `, of ${count}`}`;
  const more = proposal.fields.length - fieldsShown;
  return [
    "#",
    comment(
      `${list}: ${items} items read, ${size}; ${pageSize === undefined ? "one page" : `${pageSize} a page`}; grows: ${proposal.grows}`,
    ),
    ...proposal.fields.slice(0, fieldsShown).map((field) => comment(`  ${describeField(field)}`)),
    ...(more > 0 ? [comment(`  and ${more} more fields`)] : []),
    ...proposal.limits.map((limit) => comment(`  NOTE: ${limit}`)),
  ];
}

function describeField(field: FieldFacts): string {
  const { types, emptyShare, few, isUnique, time, order, distinct } = field;
  const values = few?.map((value) => cutText(JSON.stringify(value), 60)).join(" ");
  const facts = [
    types.join(" or "),
    ...(emptyShare > 0 ? [`empty in ${(emptyShare * 100).toFixed(emptyShare < 0.01 ? 2 : 0)} %`] : []),
    ...(time === undefined ? [] : [time === "local" ? "time without a zone" : "time"]),
    isUnique ? "unique" : values === undefined ? `${distinct} values` : `one of ${values}`,
    ...(order === "none" ? [] : [order]),
  ];
  return `${nameOf(field)}: ${facts.join(", ")}`;
}

function isProposed({ expression }: Line): boolean {
  return expression !== undefined;
}

function mappingOf({ list, proposal }: DiscoveredList): string[] {
  const name = yamlName[list];
  const isAny = proposal.lines.some(isProposed);
  return [isAny ? `  ${name}:` : `  ${comment(`${name}: nothing`)}`, ...proposal.lines.flatMap(mappingLine)];
}

function mappingLine({ fact, expression, certainty, why, instead }: Line): string[] {
  const word = expression === undefined ? "perhaps" : "or";
  const other = instead === undefined ? [] : [`    ${comment(`${word} ${fact}: ${JSON.stringify(instead)}`)}`];
  if (expression === undefined) return [`    ${comment(`${fact}: not proposed: ${why}`)}`, ...other];
  return [`    ${fact}: ${JSON.stringify(expression)}  ${comment(`${certainty}: ${why}`)}`, ...other];
}

/** A comment of one line: without line breaks or control characters from a service's names. */
function comment(text: string): string {
  return `# ${cutText(text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\u2066-\u2069\u202a-\u202e]+/gu, " "), 400)}`;
}
