// `syncline discover`: reads samples of a service's lists and proposes what their fields mean, as
// YAML to paste with the rest as comments. Reads only, bounded.

import { Command, Option } from "commander";
import { createService } from "../app/create-service.ts";
import type { PolicySet } from "../config/policy-set.ts";
import { mappingKeys } from "../config/policy-set.ts";
import { type EventLog, silentLog } from "../core/event-log.ts";
import { cutText } from "../core/plain-text.ts";
import { type FieldFacts, type Line, nameOf } from "../feeds/discover/describe-fields.ts";
import { type DiscoveredList, discoverService, type UnreadableList } from "../feeds/discover/discover-service.ts";
import { type ListName, listNames } from "../model/feed.ts";
import type { CommandIo } from "./command-io.ts";
import { reportFailure, withService } from "./service-call.ts";
import {
  configOption,
  countArgument,
  findService,
  listArgument,
  loadPoliciesOrThrow,
  serviceOption,
} from "./shared-options.ts";

interface DiscoverFlags {
  readonly service?: string;
  readonly config: string;
  readonly repository?: string;
  readonly list: readonly ListName[];
  readonly pages: number;
  readonly json?: true;
}

const examples = `
Examples:
  $ syncline discover --config policies.yaml --repository HR
  $ syncline discover --service main -c policies.yaml --list activities --pages 5
  $ syncline discover --service main -c policies.yaml --list activities,conflictDetails,approvals --json

The output is YAML: read the comments, then put \`mapping\` under the service in the policy file. All requests are GET; --pages bounds
how many pages of each list are read from each end, and up to 30 more where only walking leads to the end.`;

/**
 * The command `discover`. Exit code 1: a list could not be read; 3: the service was unreachable.
 */
export function discoverCommand(io: CommandIo): Command {
  return new Command("discover")
    .summary("look at a service's lists and propose a mapping")
    .addOption(configOption())
    .addOption(serviceOption())
    .option("--repository <key>", "destination repository (default: the service chooses)")
    .addOption(
      new Option("--list <names>", `lists to look at, separated by commas: ${listNames.join(", ")}`)
        .default(["activities", "conflictDetails"], "activities,conflictDetails")
        .argParser((text) => text.split(",").map(listArgument)),
    )
    .option("--pages <count>", "pages from each end of a list", countArgument(20), 3)
    .option("--json", "print one JSON object")
    .addHelpText("after", examples)
    .action((flags: DiscoverFlags) => discover(flags, io));
}

async function discover(flags: DiscoverFlags, io: CommandIo): Promise<void> {
  const { config, repository } = flags;
  const set = await loadPoliciesOrThrow(config, io);
  const settings = findService(set, flags.service);
  const { name } = settings;
  let retries = 0;
  const warn: EventLog["warn"] = (event) => {
    if (event === "request.retried") retries += 1;
  };
  const { variables } = io.settings;
  const client = createService(settings, { variables, log: { ...silentLog, warn } });
  const requests: Discovery["requests"][number][] = [];
  await withService(client, io, async (service) => {
    const discovered = await discoverService({
      service,
      repository,
      lists: flags.list,
      pages: flags.pages,
      syncJobIds: syncJobsAt(set, name),
      signal: io.signal,
      note: (what, outcome) => {
        requests.push({ what, outcome });
        io.progress?.(`${what}: ${outcome}`);
      },
    });
    io.progress?.("");
    const discovery: Discovery = { service: name, repository, requests, retries, ...discovered };
    if (flags.json) io.out(discoveryJson(discovery));
    else for (const line of discoveryYaml(discovery)) io.out(line);
    for (const { error } of discovered.unreadable) reportFailure(error, io);
  });
}

function syncJobsAt({ policies }: PolicySet, service: string): string[] {
  return policies.flatMap(({ action, service: of }) =>
    of === service && "syncJobs" in action ? action.syncJobs.map(String) : [],
  );
}

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
    ...(isAny
      ? [comment(`goes under services.${service}; \`syncline schema\` prints what editors check it with:`), "mapping:"]
      : [comment("nothing can be proposed:")]),
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
  const name = mappingKeys[list];
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
