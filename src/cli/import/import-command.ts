// `syncline import`: writes policies to start from: of what exists at a service, or of the CronJobs
// and crontabs that start its sync jobs today. Changes nothing.
import { basename } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { policyLimits } from "../../config/rules/policy-limits.ts";
import { parseDocuments } from "../../config/yaml/parse-yaml.ts";
import { UsageError } from "../../core/errors.ts";
import { counted } from "../../core/plain-text.ts";
import { checkCron } from "../../schedule/cron-pattern.ts";
import { escapeControls } from "../../service/error-body.ts";
import { type CommandIo, readInputFile } from "../command-io.ts";
import { connectTo, withService } from "../service-call.ts";
import {
  findService,
  loadPoliciesOrThrow,
  optionalConfigOption,
  refuseIgnoredOptions,
  serviceOption,
} from "../shared-options.ts";
import { readExisting, toPolicyFile } from "./existing.ts";
import { type ReadJobs, toPolicies } from "./job-policies.ts";
import { comment, policyName } from "./policy-text.ts";
import { readCronJobs, readCrontab } from "./scheduled-jobs.ts";

interface ImportOptions {
  readonly service?: string;
  readonly config?: string;
  readonly repository?: string;
  readonly policiesOnly?: true;
  readonly runs?: true;
  readonly cronJobs?: string;
  readonly crontab?: string;
  readonly timezone?: string;
}

const help = `
The output is a policy file of its own, with the service in it. In the folder that describes the service already, use --policies-only; with --cron-jobs and --crontab give --config, and the services are found there by their addresses.
CronJobs and crontabs: what calls run or activate by curl, wget or httpie becomes a policy. What a policy does not keep, and what is left out, is said line by line, and stands in the file as comments. Tokens are never written.
Exit codes: 0 everything was read, 1 something could not be, or a call was left out, 2 wrong use or configuration, 3 the service is out of reach.

Examples:
  $ syncline import --config policies/ --repository HR > declared.yaml && syncline validate declared.yaml
  $ syncline import --service main --config policies/ --runs --policies-only > policies/runs.yaml
  $ kubectl get cronjobs -o yaml | syncline import --cron-jobs - > policies.yaml
  $ syncline import --crontab /etc/crontab --timezone Europe/Vienna > policies.yaml`;

/** The command `import`. */
export function importCommand(io: CommandIo): Command {
  return new Command("import")
    .addOption(optionalConfigOption())
    .addOption(serviceOption())
    .option("--repository <key>", "destination repository (default: the service chooses)")
    .option("--runs", "policies that start the sync jobs, in place of declarations of what exists")
    .option("--policies-only", "leave the service out, for a folder that describes it already")
    .option("--cron-jobs <file>", "manifests of Kubernetes CronJobs in place of a service; - reads standard input")
    .option("--crontab <file>", "a crontab in place of a service; - reads standard input")
    .option("--timezone <zone>", "the zone of CronJobs and crontab lines that name none (default: UTC)", zoneArgument)
    .addHelpText("after", help)
    .action(async (options: ImportOptions, command: Command) => {
      if (options.cronJobs === undefined && options.crontab === undefined) {
        refuseIgnoredOptions(command, ["timezone"], "without --cron-jobs or --crontab");
        return importService(options, io);
      }
      refuseIgnoredOptions(command, ["repository", "runs", "policiesOnly"], "with --cron-jobs or --crontab");
      return importJobs(options, io);
    });
}

async function importService(options: ImportOptions, io: CommandIo): Promise<void> {
  const { config, repository, policiesOnly, runs } = options;
  if (config === undefined)
    throw new UsageError("say what to import: --config PATH of a service, --cron-jobs FILE or --crontab FILE");
  const { client, settings } = await connectTo(config, options.service, io);
  await withService(client, io, async (service) => {
    const found = await readExisting(service, repository, io).finally(() => io.progress?.(""));
    const form = { as: runs === true ? "run" : "apply", withSettings: policiesOnly !== true } as const;
    write(toPolicyFile({ settings, repository, ...found, ...form }), io);
    if (found.problems.length > 0) io.exitCode = 1;
  });
}

async function importJobs(options: ImportOptions, io: CommandIo): Promise<void> {
  const { config, service, timezone } = options;
  const set = config === undefined ? undefined : await loadPoliciesOrThrow(config, io);
  if (set !== undefined && service !== undefined) findService(set, service);
  if (set === undefined && service !== undefined && policyName(service, new Set()) !== service)
    throw new UsageError(`--service ${service}: a name has small letters, digits and single hyphens`);
  const read = await readJobs(options, io);
  const jobs = read.flatMap((file) => file.jobs);
  const unread = read.flatMap((file) => file.notes);
  const made = toPolicies(jobs, { set, service, timezone });
  const head = [...[...unread, ...made.general].map(comment), "apiVersion: syncline/v1"];
  const services = made.services.length === 0 ? [] : ["services:", ...made.services];
  const policies = made.count === 0 ? ["policies: []"] : ["policies:", ...made.policies];
  // On a terminal they stand in the file above, as comments.
  if (io.columns === undefined) for (const note of [...unread, ...made.notes]) io.err(escapeControls(note));
  const leftOut = read.reduce((sum, file) => sum + file.leftOut, made.leftOut);
  const rest = leftOut === 0 ? "" : `; ${leftOut} left out, as said above`;
  io.err(`${counted(made.count, "policy", "policies")} of ${counted(jobs.length, "job")}${rest}`);
  write([...head, ...services, ...policies], io);
  if (made.count === 0 || leftOut > 0) io.exitCode = 1;
}

function write(lines: readonly string[], io: CommandIo): void {
  for (const line of lines) io.out(line);
  const { fileBytesMax } = policyLimits;
  const bytes = lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0);
  if (bytes > fileBytesMax)
    io.err(`this is ${Math.ceil(bytes / 1024)} KiB, and a policy file has ${fileBytesMax / 1024}: split its policies`);
}

async function readJobs({ cronJobs, crontab }: ImportOptions, io: CommandIo): Promise<ReadJobs[]> {
  if (cronJobs === "-" && crontab === "-")
    throw new UsageError("--cron-jobs and --crontab cannot both read standard input");
  const read: ReadJobs[] = [];
  if (cronJobs !== undefined) {
    const documents = parseDocuments(await readInputFile("--cron-jobs", cronJobs, io));
    if ("problem" in documents)
      throw new UsageError(
        `--cron-jobs: ${cronJobs} is no YAML (${documents.problem}); render a chart first: helm template`,
      );
    read.push(readCronJobs(documents.values, nameOf(cronJobs, "manifests")));
  }
  if (crontab !== undefined)
    read.push(readCrontab(await readInputFile("--crontab", crontab, io), nameOf(crontab, "crontab")));
  return read;
}

function nameOf(path: string, otherwise: string): string {
  return path === "-" ? otherwise : basename(path);
}

function zoneArgument(zone: string): string {
  const problem = checkCron("0 0 * * *", zone);
  if (problem !== undefined) throw new InvalidArgumentError(problem);
  return zone;
}
