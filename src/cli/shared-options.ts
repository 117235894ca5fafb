// Options that several commands share, and what they mean: the configuration and Redis.
import { InvalidArgumentError, Option } from "commander";
import { loadPolicies } from "../config/load-policies.ts";
import type { Policy, PolicySet } from "../config/policy-set.ts";
import { formatProblem } from "../config/problem.ts";
import { readRedisAccess } from "../config/redis-access.ts";
import { hasHashTag, parseRedisAddress } from "../config/redis-address.ts";
import { parseDuration } from "../core/duration.ts";
import { UsageError } from "../core/errors.ts";
import { checkExpression } from "../core/expression.ts";
import { noteSecret, noteUrlPassword } from "../core/secrets.ts";
import { checkOnItem } from "../feeds/mapping.ts";
import { checkCron } from "../schedule/check-cron.ts";
import { defaultPrefix, type RedisTarget } from "../store/redis.ts";
import type { CommandIo } from "./command-io.ts";

/** What the loader asks others: cron expressions belong to schedule/, CEL to core/, what an item means to feeds/. */
export const policyChecks = {
  cron: checkCron,
  expression: checkExpression,
  onItem: checkOnItem,
};

const instantPattern = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2})$/;

/** `--config PATH`: a policy file or a folder of them. */
export function configOption(): Option {
  return optionalConfigOption().makeOptionMandatory();
}

/** The same, for a command that can do without. */
export function optionalConfigOption(): Option {
  return new Option("-c, --config <path>", "policy file, or folder of policy files").env("SYNCLINE_CONFIG");
}

/** `--redis-url URL`, also from REDIS_URL. */
export function redisOption(): Option {
  return new Option("--redis-url <url>", "where Redis is; Sentinel, Cluster, TLS: docs/redis.md")
    .env("REDIS_URL")
    .default("redis://127.0.0.1:6379");
}

/** `--prefix NAME`: what all keys in Redis start with. */
export function prefixOption(): Option {
  return new Option("--prefix <text>", "start of every key in Redis; put it in {braces} for a Redis Cluster")
    .default(defaultPrefix)
    .argParser((text) => {
      if (!/^[\w{}.-]{1,64}$/.test(text))
        throw new InvalidArgumentError("use letters, digits, _ - . and {braces}, at most 64");
      return text;
    });
}

/** An option that takes a duration such as 30s and gives milliseconds. */
export function durationOption(flags: string, description: string, byDefault: string): Option {
  return new Option(flags, description).default(parseDuration(byDefault), byDefault).argParser((text) => {
    try {
      return parseDuration(text);
    } catch {
      throw new InvalidArgumentError("write a duration such as 30s, 10m or 2h");
    }
  });
}

/** An instant that says its zone, in milliseconds UTC; undefined when the text is none. */
export function parseInstant(text: string): number | undefined {
  const instantMs = instantPattern.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(instantMs) ? undefined : instantMs;
}

/** Reads an option that is an instant. */
export function instantArgument(text: string): number {
  const instantMs = parseInstant(text);
  if (instantMs === undefined)
    throw new InvalidArgumentError("write an instant such as 2026-12-01T06:00:00Z or 2026-12-01T07:00+01:00");
  return instantMs;
}

/** Reads a whole number from 1 to `max`. */
export function countArgument(max: number): (text: string) => number {
  return (text) => {
    const count = Number(text);
    if (!Number.isInteger(count) || count < 1 || count > max)
      throw new InvalidArgumentError(`write a whole number from 1 to ${max}`);
    return count;
  };
}

/** What `redisOption` and `prefixOption` give. */
export interface RedisOptions {
  readonly redisUrl: string;
  readonly prefix: string;
}

/**
 * The Redis that the options name, with the passwords and certificates that the environment names.
 * @throws UsageError when the URL is none, a file cannot be read, or the prefix does not fit a cluster.
 */
export function redisTarget({ redisUrl, prefix }: RedisOptions, io: CommandIo): RedisTarget {
  noteUrlPassword(redisUrl);
  const { kind } = parseRedisAddress(redisUrl);
  if (kind === "cluster" && !hasHashTag(prefix))
    throw new UsageError(
      `--prefix ${prefix} has no {braces}: in a Redis Cluster all keys must share one slot; write {${prefix}}`,
    );
  const access = readRedisAccess(io.settings.variables);
  for (const secret of [access.password, access.sentinelPassword]) noteSecret(secret ?? "", "lasting");
  return { url: redisUrl, prefix, access };
}

/**
 * Loads policies for a command that needs them right.
 * @throws UsageError that shows every problem.
 */
export async function loadPoliciesOrThrow(path: string, io: CommandIo): Promise<PolicySet> {
  const result = await loadPolicies(path, { variables: io.settings.variables, checks: policyChecks });
  if (result.ok) return result.set;
  const problems = result.problems.map((problem) => formatProblem(problem, io.colours)).join("\n\n");
  throw new UsageError(
    `${path} cannot be used:\n\n${problems}\n\n${result.problems.length} problem${result.problems.length === 1 ? "" : "s"}; nothing was started`,
  );
}

/**
 * The policy of this name, and those that it follows; all policies without a name. In the order of the files.
 * @throws UsageError that names those there are.
 */
export function policiesAbout(set: PolicySet, name: string | undefined): readonly Policy[] {
  if (name === undefined) return set.policies;
  const names = new Set<string>();
  let policy: Policy | undefined = findPolicy(set, name);
  while (policy !== undefined) {
    names.add(policy.name);
    const predecessor: string | undefined = policy.after?.policy;
    policy = predecessor === undefined ? undefined : findPolicy(set, predecessor);
  }
  return set.policies.filter((one) => names.has(one.name));
}

/**
 * The policy of this name.
 * @throws UsageError that names those there are.
 */
export function findPolicy(set: PolicySet, name: string): Policy {
  const policy = set.policies.find((known) => known.name === name);
  if (policy !== undefined) return policy;
  const names = set.policies.map((known) => known.name);
  throw new UsageError(
    `there is no policy ${name}; there ${names.length === 1 ? "is" : "are"}: ${names.slice(0, 20).join(", ")}`,
  );
}
