// `syncline discover`: reads samples of a service's lists and proposes what their fields
// mean. Reads only, bounded.

import { Command, InvalidArgumentError, Option } from "commander";
import { createService } from "../app/create-service.ts";
import type { PolicySet } from "../config/policy-set.ts";
import { type EventLog, silentLog } from "../core/event-log.ts";
import { type ListName, listNames } from "../core/list-name.ts";
import { discoverService } from "../feeds/discover/discover-service.ts";
import { ServiceError } from "../service/client.ts";
import { explainServiceError } from "./api-error.ts";
import type { CommandIo } from "./command-io.ts";
import { type Discovery, discoveryJson, discoveryYaml } from "./discover-text.ts";
import { configOption, countArgument, findService, loadPoliciesOrThrow, serviceOption } from "./shared-options.ts";

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
        .argParser(listArgument),
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
  const service = createService(settings, { variables, log: { ...silentLog, warn } });
  const requests: Discovery["requests"][number][] = [];
  try {
    const discovered = await discoverService({
      service,
      repository,
      lists: flags.list,
      pages: flags.pages,
      syncJobIds: syncJobsOf(set, name),
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
    for (const { error } of discovered.unreadable) fail(error, io);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    fail(error, io);
  } finally {
    service.close();
  }
}

function fail(error: ServiceError, io: CommandIo): void {
  const { lines, exitCode } = explainServiceError(error);
  for (const line of lines) io.err(line);
  io.exitCode = exitCode;
}

/** The sync jobs that policies of this service name. */
function syncJobsOf({ policies }: PolicySet, service: string): string[] {
  return policies.flatMap(({ action, service: of }) =>
    of === service && "syncJobs" in action ? action.syncJobs.map(String) : [],
  );
}

function listArgument(text: string): ListName[] {
  return text.split(",").map((part) => {
    const list = listNames.find((known) => known.toLowerCase() === part.trim().toLowerCase());
    if (list === undefined) throw new InvalidArgumentError(`the lists are ${listNames.join(", ")}`);
    return list;
  });
}
