// `syncline changes`: who changed what by hand, when and why; and who gives a command.
import { hostname, userInfo } from "node:os";
import type { Command } from "commander";
import type { By } from "../actions/record-change.ts";
import { showInstant } from "../core/instant.ts";
import { type Change, describeReason } from "../model/change.ts";
import { Changes, changesMax } from "../store/changes.ts";
import type { CommandIo, Screen } from "./command-io.ts";
import { withStore } from "./connections.ts";
import { countArgument, type ReasonOption, type RedisOptions, redisCommand, redisTarget } from "./shared-options.ts";
import { toTable, wideOption } from "./table.ts";

interface ChangesOptions extends RedisOptions {
  readonly limit: number;
}

/** The command `changes`. */
export function changesCommand(io: CommandIo): Command {
  return redisCommand("changes")
    .option("-n, --limit <count>", "how many", countArgument(changesMax), 20)
    .option("--json", "print a JSON array, with what stood before and after")
    .addOption(wideOption())
    .addHelpText("after", "\nExamples:\n  $ syncline changes\n  $ syncline changes --json | jq '.[0].after'")
    .action(async (options: ChangesOptions) => {
      const { limit, json } = options;
      const found = await withStore(redisTarget(options, io), (store) => new Changes(store).newest(limit + 1));
      const changes = found.slice(0, limit);
      if (json) io.out(JSON.stringify(changes));
      else if (changes.length === 0) io.err("nothing was changed by hand yet");
      else io.out(changesTable(changes, io));
      if (found.length > limit) io.err(`only the newest ${limit}: --limit shows more`);
    });
}

function changesTable(changes: readonly Change[], screen: Screen): string {
  const rows = changes.map((change) => {
    const { at, actor, what, subject } = change;
    return [showInstant(Date.parse(at)), actor, what, subject, describeReason(change)];
  });
  return toTable(["at", "by", "what", "subject", "reason"], rows, screen);
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
