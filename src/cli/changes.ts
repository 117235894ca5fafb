// `syncline changes`: who changed what by hand, when and why, newest first.
import { Command } from "commander";
import { Changes, changesMax } from "../store/changes.ts";
import { openStore } from "../store/redis.ts";
import type { CommandIo } from "./command-io.ts";
import { countArgument, prefixOption, type RedisOptions, redisOption, redisTarget } from "./shared-options.ts";
import { showInstant, toTable } from "./table.ts";

interface ChangesOptions extends RedisOptions {
  readonly limit: number;
  readonly json?: true;
}

/** The command `changes`. */
export function changesCommand(io: CommandIo): Command {
  return new Command("changes")
    .description("what was changed by hand: who, when, what and why, newest first")
    .addOption(redisOption())
    .addOption(prefixOption())
    .option("-n, --limit <count>", "how many", countArgument(changesMax), 20)
    .option("--json", "print a JSON array, with what stood before and after")
    .addHelpText("after", "\nExamples:\n  $ syncline changes\n  $ syncline changes --json | jq '.[0].after'")
    .action(async (options: ChangesOptions) => {
      const store = await openStore(redisTarget(options, io));
      try {
        const found = await new Changes(store).newest(options.limit + 1);
        const changes = found.slice(0, options.limit);
        if (options.json) io.out(JSON.stringify(changes));
        else if (changes.length === 0) io.err("nothing was changed by hand yet");
        else {
          const rows = changes.map(({ at, actor, what, subject, reason }) => [
            showInstant(Date.parse(at)),
            actor,
            what,
            subject,
            reason ?? "",
          ]);
          io.out(toTable(["at", "by", "what", "subject", "reason"], rows, io.colours));
        }
        if (found.length > options.limit) io.err(`only the newest ${options.limit}: --limit shows more`);
      } finally {
        await store.close();
      }
    });
}
