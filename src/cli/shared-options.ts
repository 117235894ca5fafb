// Options that several commands share, and how they find the configuration and Redis. BullMQ is
// loaded only for the commands that ask its queues: it is a third of what a short command costs.

import { Command, InvalidArgumentError, Option } from "commander";
import { loadPolicies } from "../config/load-policies.ts";
import { chainOf, type Policy, type PolicySet, type ServiceSettings, type SinkSettings } from "../config/policy-set.ts";
import { formatProblem, type Problem } from "../config/problem.ts";
import { hasHashTag, parseRedisAddress, readRedisAccess } from "../config/redis-address.ts";
import { systemClock } from "../core/clock.ts";
import { durationPattern, parseDuration } from "../core/duration.ts";
import { errorText, OutOfReachError, UsageError } from "../core/errors.ts";
import { silentLog } from "../core/event-log.ts";
import { checkExpression } from "../core/expression.ts";
import { nearestWord } from "../core/nearest-word.ts";
import { counted, someNames } from "../core/plain-text.ts";
import { isRedisOutage } from "../core/redis-outage.ts";
import { noteSecret, noteUrlPassword } from "../core/secrets.ts";
import { checkOnItem } from "../feeds/mapping.ts";
import { reasonCharactersMax } from "../model/change.ts";
import { type ListName, listNames } from "../model/feed.ts";
import { hasLabels, labelsOf, selectorOf } from "../model/label.ts";
import { compareWithRunning, type FoundSet, findRunningSet, replaceBroken } from "../queries/policy-set.ts";
import type { Producer } from "../queue/producer.ts";
import { checkCron } from "../schedule/cron-pattern.ts";
import { problemOfDeadline } from "../schedule/deadlines.ts";
import { defaultPrefix, openStore, type RedisTarget, type Store } from "../store/redis.ts";
import { type CommandIo, RepeatableOption } from "./command-io.ts";

/** The variable that stands for `--config`. */
export const configVariable = "SYNCLINE_CONFIG";

/** The checks that the loader of policies asks other rooms for. */
export const policyChecks = {
  calendar: async (text: string) =>
    (await import("../schedule/calendar-file.ts")).readCalendar(text, systemClock.nowMs()),
  cron: checkCron,
  deadline: problemOfDeadline,
  expression: checkExpression,
  onItem: checkOnItem,
};

/**
 * A command with the options that say where Redis is, and `--config` if it needs policies: `config`
 * those of a file, `set` those that run unless a file is named.
 */
export function redisCommand(name: string, needs?: "config" | "set"): Command {
  const command = new Command(name);
  if (needs === "config") command.addOption(configOption());
  if (needs === "set")
    command.addOption(optionalConfigOption("policy file or folder to look with; default: the policies that run"));
  return command.addOption(redisOption()).addOption(prefixOption());
}

/** `--config PATH`: a policy file or a folder of them. */
export function configOption(): Option {
  return optionalConfigOption().makeOptionMandatory();
}

/** `--config PATH` of a command that works without it, too. */
export function optionalConfigOption(description = "policy file, or folder of policy files"): Option {
  return variableOption("-c, --config <path>", description);
}

/** An option that the environment may set, too: `--web-host` by SYNCLINE_WEB_HOST. */
export function variableOption(flags: string, description: string): Option {
  const option = new Option(flags, description);
  return option.env(`SYNCLINE_${option.name().replaceAll("-", "_").toUpperCase()}`);
}

/** `--redis-url URL`, also from REDIS_URL. */
export function redisOption(): Option {
  return new Option("--redis-url <url>", "where Redis is; Sentinel, Cluster, TLS: docs/running.md")
    .env("REDIS_URL")
    .default("redis://127.0.0.1:6379");
}

/** Refuses options that have no effect here. `where`: `without --wait`. @throws UsageError */
export function refuseIgnoredOptions(command: Command, values: readonly string[], where: string): void {
  for (const option of command.options) {
    if (values.includes(option.attributeName()) && command.getOptionValueSource(option.attributeName()) === "cli")
      throw new UsageError(`${option.long} does nothing ${where}: leave it out`);
  }
}

/** `--prefix NAME`, also from SYNCLINE_PREFIX: what all keys in Redis start with. */
export function prefixOption(): Option {
  return variableOption("--prefix <text>", "start of every key in Redis; put it in {braces} for a Redis Cluster")
    .default(defaultPrefix)
    .argParser((text) => {
      const problem = problemOfPrefix(text);
      if (problem !== undefined) throw new InvalidArgumentError(problem);
      return text;
    });
}

function problemOfPrefix(text: string): string | undefined {
  if (!/^[\w{}.-]{1,64}$/.test(text)) return "use letters, digits, _ - . and one pair of {braces}, 1 to 64 characters";
  // Redis Cluster hashes the text between the braces, or the whole key without a pair of them.
  if (/^[^{}]*(\{[^{}]+\}[^{}]*)?$/.test(text)) return undefined;
  return `its braces are not one pair around some text: write {${text.replaceAll(/[{}]/g, "") || "syncline"}}`;
}

/** An option that takes a duration such as 30s and gives milliseconds. */
export function durationOption(flags: string, description: string, byDefault: string): Option {
  return new Option(flags, description).default(parseDuration(byDefault), byDefault).argParser((text) => {
    if (durationPattern.test(text)) return parseDuration(text);
    throw new InvalidArgumentError("write a duration such as 30s, 10m or 2h");
  });
}

/** Parses a whole number from 1 to `max`. */
export function countArgument(max: number): (text: string) => number {
  return (text) => {
    const count = Number(text);
    if (!Number.isInteger(count) || count < 1 || count > max)
      throw new InvalidArgumentError(`write a whole number from 1 to ${max}`);
    return count;
  };
}

/** Parses the name of a list, in any case. */
export function listArgument(text: string): ListName {
  const list = listNames.find((known) => known.toLowerCase() === text.trim().toLowerCase());
  if (list === undefined) throw new InvalidArgumentError(othersThan(text, listNames, "--help"));
  return list;
}

/** Parses the id of a sync job. */
export function syncJobArgument(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError("write an id: digits only");
  return Number(text);
}

/** `--reason TEXT`: why a person acts, for the record of changes. */
export function reasonOption(description = "why; stands in the record of changes", max = reasonCharactersMax): Option {
  return new Option("--reason <text>", description).argParser((text) => {
    if (text.trim() === "" || text.length > max) throw new InvalidArgumentError(`write 1 to ${max} characters`);
    return text;
  });
}

/** The value of `--reason`. */
export interface ReasonOption {
  readonly reason?: string;
}

/** `--label NAME=VALUE`, repeatable: only policies with all of these labels. */
export function labelOption(description = "only policies with this label; all of several must match"): Option {
  return new RepeatableOption("--label <name=value>", description)
    .default([], "all")
    .argParser((text: string, before: readonly string[]) => {
      if (!/^[\w.-]+=[\w.-]+$/.test(text)) throw new InvalidArgumentError("write a name and a value such as team=hr");
      return [...before, text];
    });
}

/** The policies that the user means, in the order of the files; all where nothing is named. */
export interface PolicyChoice {
  readonly names?: readonly string[];
  readonly service?: string | undefined;
  readonly label?: readonly string[];
}

/** @throws UsageError for a name, service or label without a policy: a typo must not look well. */
export function choosePolicies(set: PolicySet, { names = [], service, label = [] }: PolicyChoice): readonly Policy[] {
  const named = names.map((name) => findPolicy(set, name));
  const wanted = new Set(named.map(({ name }) => name));
  if (service !== undefined) findService(set, service);
  const stray = named.find((policy) => service !== undefined && policy.service !== service);
  if (stray !== undefined)
    throw new UsageError(`policy ${stray.name} is of service ${stray.service}, not ${service}: leave one of them out`);
  const chosen = set.policies.filter(
    (policy) =>
      (names.length === 0 || wanted.has(policy.name)) &&
      (service === undefined || policy.service === service) &&
      hasLabels(policy, selectorOf(label)),
  );
  const [first] = label;
  if (chosen.length > 0 || first === undefined) return chosen;
  const others = othersThan(first, [...new Set(set.policies.flatMap(labelsOf))], "the policy file");
  throw new UsageError(`no such policy has the label ${label.join(" and ")}; ${others}`);
}

/** The values of the options that most commands share. */
export interface RedisOptions {
  readonly redisUrl: string;
  readonly prefix: string;
  readonly json?: true;
}

/** The same, for a command that needs policies. */
export interface PolicyOptions extends RedisOptions {
  readonly config: string;
}

/**
 * The Redis in the options, with passwords and certificates from the environment.
 * @throws UsageError when one of them cannot be used.
 */
export function redisTarget({ redisUrl, prefix }: RedisOptions, io: CommandIo): RedisTarget {
  noteUrlPassword(redisUrl);
  const { kind, tls } = parseRedisAddress(redisUrl);
  if (kind === "cluster" && !hasHashTag(prefix))
    throw new UsageError(
      `--prefix ${prefix} has no {braces}: in a Redis Cluster all keys must share one slot; write {${prefix}}`,
    );
  const access = readRedisAccess(io.settings.variables);
  if (!tls && (access.ca ?? access.cert) !== undefined)
    throw new UsageError(
      "REDIS_CA_FILE and REDIS_CERT_FILE do nothing where the address of Redis does not speak TLS: begin it with rediss, or unset them",
    );
  for (const secret of [access.password, access.sentinelPassword]) noteSecret(secret ?? "", "lasting");
  return { url: redisUrl, prefix, access };
}

/** The options of a command that takes the policies that run unless a file is named. */
export interface SetOptions extends RedisOptions {
  readonly config?: string;
}

/**
 * The policies to look with: those of `--config`, or those that run, which Redis keeps. What the
 * user must know of them goes to stderr. It holds no secrets, so never start requests with it.
 * @throws UsageError without either, or for a file with problems.
 */
export async function policySetFor({ config, prefix }: SetOptions, store: Store, io: CommandIo): Promise<PolicySet> {
  const found = config === undefined ? await findRunningSet(store) : await setOfFile(config, store, io);
  if (found === undefined)
    throw new UsageError(
      `no policies are known under the prefix ${prefix}: no \`syncline serve\` has run there. Name the policy files with --config, or check --prefix and --redis-url`,
    );
  if (found.note !== undefined) io.err(found.note);
  return found.set;
}

async function setOfFile(path: string, store: Store, io: CommandIo): Promise<FoundSet> {
  const loaded = await loadPoliciesOf(path, io);
  if (loaded.ok) return compareWithRunning(path, loaded.set, store);
  const replace = () => replaceBroken(path, counted(loaded.problems.length, "problem"), store);
  const instead = isNamedByHand(path, io) ? undefined : await replace();
  return instead ?? refuseProblems(path, loaded.problems, io);
}

/**
 * Whether the user named the files by `--config`. Where the environment names them, as in a pod,
 * the command is about what runs.
 */
export function isNamedByHand(path: string, io: CommandIo): boolean {
  return path !== io.settings.variables[configVariable];
}

/** Loads policies, with their problems. */
export function loadPoliciesOf(path: string, io: CommandIo): ReturnType<typeof loadPolicies> {
  return loadPolicies(path, { variables: io.settings.variables, checks: policyChecks });
}

/** Loads policies. @throws UsageError that shows every problem. */
export async function loadPoliciesOrThrow(path: string, io: CommandIo): Promise<PolicySet> {
  const result = await loadPoliciesOf(path, io);
  return result.ok ? result.set : refuseProblems(path, result.problems, io);
}

function refuseProblems(path: string, found: readonly Problem[], io: CommandIo): never {
  const problems = found.map((problem) => formatProblem(problem, io.colours)).join("\n\n");
  const count = counted(found.length, "problem");
  throw new UsageError(`${path} cannot be used:\n\n${problems}\n\n${count}; nothing was done`);
}

/**
 * The policies of these names and those that they follow, in the order of the files; without names
 * all. @throws UsageError for an unknown name.
 */
export function policiesAbout(set: PolicySet, wanted: readonly string[]): readonly Policy[] {
  if (wanted.length === 0) return set.policies;
  const byName = new Map(set.policies.map((policy) => [policy.name, policy]));
  const meant = new Set(wanted.flatMap((name) => chainOf(findPolicy(set, name), byName)));
  return set.policies.filter((policy) => meant.has(policy));
}

/** The policy of this name. @throws UsageError that names the known ones. */
export function findPolicy(set: PolicySet, name: string): Policy {
  return findNamed("policy", name, set.policies, "`syncline plan`");
}

/** The sink of this name. @throws UsageError that names the known ones. */
export function findSink({ sinks }: PolicySet, name: string): SinkSettings {
  return findNamed("sink", name, [...sinks.values()]);
}

/** The item of this name. `all`: what shows every name. @throws UsageError that names the known. */
export function findNamed<Item extends { readonly name: string }>(
  what: string,
  name: string,
  items: readonly Item[],
  all = "the policy file",
): Item {
  const found = items.find((item) => item.name === name);
  if (found !== undefined) return found;
  const names = items.map((item) => item.name);
  throw new UsageError(`there is no ${what} ${name || '""'}; ${othersThan(name, names, all)}`);
}

/** `--service NAME` of a command about one service. */
export function serviceOption(): Option {
  return new Option("--service <name>", "name of the service; not needed when there is only one");
}

/** The service of this name, or the only one. @throws UsageError that names the known ones. */
export function findService({ services }: PolicySet, name: string | undefined): ServiceSettings {
  if (name !== undefined) return findNamed("service", name, [...services.values()]);
  const [first, second] = services.values();
  if (first !== undefined && second === undefined) return first;
  throw new UsageError(`say which service: --service NAME; ${othersThan("", [...services.keys()], "the policy file")}`);
}

/** Refuses what is no subcommand where one is the default. @throws UsageError */
export function refuseUnknownWord({ args: [word], parent }: Command, known: readonly string[]): void {
  if (word !== undefined) throw new UsageError(`${parent?.name()} has no ${word}; ${othersThan(word, known, "")}`);
}

/** Suggests names for an unknown one. `all`: the command that shows the rest. */
export function othersThan(name: string, known: readonly string[], all: string): string {
  if (known.length === 0) return `there is none${all === "" ? "" : ` in ${all}`}`;
  const near = nearestWord(name, known);
  const meant = near === undefined ? "" : `did you mean ${near}? `;
  return `${meant}there ${known.length === 1 ? "is" : "are"}: ${someNames(known, all)}`;
}

/** What a command about policies works with. */
interface Found {
  readonly set: PolicySet;
  readonly store: Store;
  readonly target: RedisTarget;
}

/** Runs `use` with Redis and the policies to look with. @throws as `withStore`, `policySetFor`. */
export async function withPolicies<T>(
  options: SetOptions,
  io: CommandIo,
  use: (found: Found) => Promise<T>,
): Promise<T> {
  const target = redisTarget(options, io);
  return withStore(target, async (store) => use({ set: await policySetFor(options, store, io), store, target }));
}

/** Runs `use` with a connected Redis. @throws OutOfReachError without one, or when it is lost. */
export async function withStore<T>(target: RedisTarget, use: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore(target);
  try {
    return await use(store).catch(explainOutage);
  } finally {
    await store.close();
  }
}

/** An outage in the middle of a command is no bug. @throws OutOfReachError, or another error. */
function explainOutage(error: unknown): never {
  if (!isRedisOutage(error)) throw error;
  throw new OutOfReachError(
    `Redis stopped answering (${errorText(error)}): what this command was to change may be done or not. Look before you repeat it.`,
  );
}

/** Runs `use` with the task queues. @throws OutOfReachError when Redis is lost. */
export async function withProducer<T>(target: RedisTarget, use: (producer: Producer) => Promise<T>): Promise<T> {
  const queue = await import("../queue/producer.ts");
  const producer = new queue.Producer(target, silentLog);
  try {
    return await use(producer).catch(explainOutage);
  } finally {
    await producer.close();
  }
}
