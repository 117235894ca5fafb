// The subject of `pause` and `resume`: one policy, one service, or all. It is checked, so that a
// typo does not pause nothing.
import { hostname, userInfo } from "node:os";
import { type Command, Option } from "commander";
import type { PolicySet } from "../config/policy-set.ts";
import { UsageError } from "../core/errors.ts";
import { nearestWord } from "../core/nearest-word.ts";
import type { PauseSubject } from "../model/pause.ts";
import type { SlotLedger } from "../store/slot-ledger.ts";
import { prefixOption, redisOption } from "./shared-options.ts";

/** The options that name a subject, apart from the policy's name. */
export interface SubjectOptions {
  readonly service?: string;
  readonly all?: true;
  readonly config?: string;
}

/** Adds the options that name a subject, the configuration to check it against, and Redis. */
export function withSubjectOptions(command: Command): Command {
  return command
    .option("--service <name>", "every policy of this service")
    .option("--all", "every policy")
    .addOption(new Option("-c, --config <path>", "policy file or folder that has the name").env("SYNCLINE_CONFIG"))
    .addOption(redisOption())
    .addOption(prefixOption());
}

/**
 * The one subject that was named.
 * @throws UsageError when there is none, or more than one.
 */
export function subjectOf(policy: string | undefined, { service, all }: SubjectOptions): PauseSubject {
  const subjects: PauseSubject[] = [];
  if (policy !== undefined) subjects.push({ scope: "policy", name: policy });
  if (service !== undefined) subjects.push({ scope: "service", name: service });
  if (all === true) subjects.push({ scope: "all", name: "" });
  const [subject] = subjects;
  if (subject === undefined || subjects.length > 1)
    throw new UsageError("name one of POLICY, --service NAME and --all");
  return subject;
}

/**
 * Checks a name: against the configuration when there is one, otherwise a policy's against what
 * schedulers plan.
 * @throws UsageError when there is no such policy or service.
 */
export async function checkSubject(
  { scope, name }: PauseSubject,
  { set, ledger }: { readonly set: PolicySet | undefined; readonly ledger: SlotLedger },
): Promise<void> {
  if (scope === "all" || (scope === "service" && set === undefined)) return;
  const configured = scope === "service" ? set?.services.keys() : set?.policies.map((policy) => policy.name);
  const known = [...(configured ?? (await ledger.policies()))];
  if (known.includes(name)) return;
  const near = nearestWord(name, known);
  const hint = near === undefined ? "" : `; did you mean ${near}?`;
  const where = set === undefined ? "no scheduler plans it here; check with --config" : "in the configuration";
  throw new UsageError(`there is no ${scope} ${name} (${where})${hint}`);
}

/** A subject in words. */
export function showSubject({ scope, name }: PauseSubject): string {
  return scope === "all" ? "all policies" : `${scope} ${name}`;
}

/** The person who gives the command: `user@host`. */
export function currentActor(): string {
  return `${currentUser()}@${hostname()}`;
}

function currentUser(): string {
  try {
    return userInfo().username;
  } catch {
    // In a container the user id need not have a name.
    return "unknown";
  }
}
