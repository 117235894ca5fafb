// `syncline changes`: who changed what by hand, when and why; and who gives a command.
import { hostname, userInfo } from "node:os";
import type { Command } from "commander";
import type { By } from "../actions/record-change.ts";
import type { PolicySet } from "../config/policy-set.ts";
import { showClock, showInstant } from "../core/instant.ts";
import { type Change, changesMax, describeReason } from "../model/change.ts";
import { parseTaskId } from "../model/task.ts";
import { findRunningSet } from "../queries/policy-set.ts";
import { isChangeAbout } from "../queries/records.ts";
import { subjectWords } from "../queries/task-words.ts";
import { Changes } from "../store/changes.ts";
import type { Store } from "../store/redis.ts";
import type { CommandIo, Screen } from "./command-io.ts";
import {
  choosePolicies,
  countArgument,
  policySetFor,
  type ReasonOption,
  redisCommand,
  redisTarget,
  type SetOptions,
  withStore,
} from "./shared-options.ts";
import { toTable, wideOption } from "./table.ts";

interface ChangesOptions extends SetOptions {
  readonly limit: number;
}

const help = `
With names: what was changed about these policies, their tasks, services and labels, or about all.

Examples:
  $ syncline changes contracts-nightly
  $ syncline changes --json | jq '.[0].after'`;

/** What is found of named policies may be less than what was done. */
const noneKept = `no change that is kept names this: the newest ${changesMax} are kept, and one of over 100 tasks names 100`;

/** The command `changes`. */
export function changesCommand(io: CommandIo): Command {
  return redisCommand("changes", "set")
    .argument("[policies...]", "only what concerns these policies")
    .option("-n, --limit <count>", "how many", countArgument(changesMax), 20)
    .option("--json", "print a JSON array, with what stood before and after")
    .addOption(wideOption())
    .addHelpText("after", help)
    .action(async (names: readonly string[], options: ChangesOptions) => {
      const { limit, json } = options;
      const { found, set } = await withStore(redisTarget(options, io), async (store) => {
        const newest = await new Changes(store).newest(names.length === 0 ? limit + 1 : changesMax);
        if (names.length === 0) return { found: newest, set: await zonesFor(options, store, io) };
        const set = await policySetFor(options, store, io);
        const policies = choosePolicies(set, { names });
        const isMeant = (change: Change) => policies.some((policy) => isChangeAbout(change, policy));
        return { found: newest.filter(isMeant), set };
      });
      const changes = found.slice(0, limit);
      if (json) io.out(JSON.stringify(changes));
      else if (changes.length === 0) io.err(names.length === 0 ? "nothing was changed by hand yet" : noneKept);
      else io.out(changesTable(changes, set, io));
      if (found.length > limit) io.err(`only the newest ${limit}: --limit shows more`);
    });
}

/** The policies whose clocks changes are told by, also where none is known. */
async function zonesFor(options: ChangesOptions, store: Store, io: CommandIo) {
  if (options.json) return undefined;
  return options.config === undefined ? (await findRunningSet(store))?.set : policySetFor(options, store, io);
}

function changesTable(changes: readonly Change[], set: PolicySet | undefined, screen: Screen): string {
  const policies = set?.policies ?? [];
  const localOf = ({ at, subject }: Change) => {
    const name = /^policy (.+)$/.exec(subject)?.[1] ?? parseTaskId(subject.replace(/^task /, ""))?.policy;
    const { timezone = "UTC" } = policies.find((policy) => policy.name === name) ?? {};
    return timezone === "UTC" ? "" : showClock(Date.parse(at), timezone, Date.parse(at));
  };
  const isLocal = changes.some((change) => localOf(change) !== "");
  const rows = changes.map((change) => {
    const { at, actor, what, subject } = change;
    const words = subjectWords(subject, Date.parse(at), policies);
    return [
      showInstant(Date.parse(at)),
      ...(isLocal ? [localOf(change)] : []),
      actor,
      what,
      words,
      describeReason(change),
    ];
  });
  const heading = ["at", ...(isLocal ? ["local"] : []), "by", "what", "subject", "reason"];
  return toTable(heading, rows, screen, { leaveOut: ["local"] });
}

/** The person who gives the command, and why. */
export function byHand(io: CommandIo, { reason }: ReasonOption): By {
  return { actor: currentActor(), reason: reason ?? null, warn: io.err };
}

/** `user@host`. */
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
