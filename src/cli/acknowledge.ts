// `syncline acknowledge`: a person knows of what is wrong with a policy, and says so.
import type { Command } from "commander";
import { acknowledge, endAcknowledgement } from "../actions/acknowledge.ts";
import { UsageError } from "../core/errors.ts";
import { noteCharactersMax } from "../model/pause.ts";
import { toAcknowledged } from "../queries/policy-lines.ts";
import { byHand } from "./changes.ts";
import type { CommandIo } from "./command-io.ts";
import {
  findPolicy,
  type ReasonOption,
  reasonOption,
  redisCommand,
  refuseIgnoredOptions,
  type SetOptions,
  withPolicies,
} from "./shared-options.ts";

interface AcknowledgeOptions extends SetOptions, ReasonOption {
  readonly end?: true;
}

const help = `
The policy then stands below what is new, in \`status\` and on the pages, with who, since when and why. It ends by itself when each sync job of it that was bad has ended well (open conflicts: is settled), and when it gets worse: another sync job goes bad, a slot is missed, or a worse state. Notices go out as ever.

Examples:
  $ syncline acknowledge contracts --reason "ticket 7, the supplier mends it on Monday"
  $ syncline acknowledge contracts --end`;

/** The command `acknowledge`. */
export function acknowledgeCommand(io: CommandIo): Command {
  return redisCommand("acknowledge", "set")
    .argument("<policy>", "its name")
    .addOption(reasonOption("what is known or done about it; required but with --end", noteCharactersMax))
    .option("--end", "take the acknowledgement back")
    .option("--json", "print JSON")
    .addHelpText("after", help)
    .action(async (name: string, options: AcknowledgeOptions, command: Command) => {
      const { end, reason, json } = options;
      if (end) refuseIgnoredOptions(command, ["reason"], "with --end");
      else if (reason === undefined) throw new UsageError("--reason is required: say what is known or done about it");
      await withPolicies(options, io, async ({ set, store }) => {
        const policy = findPolicy(set, name);
        const parts = { store, by: byHand(io, options) };
        if (end) {
          const ended = await endAcknowledgement(policy, parts);
          const line = ended ? `policy ${name} is not acknowledged any more` : `policy ${name}: not acknowledged`;
          return io.out(json ? JSON.stringify({ v: 1, ended }) : line);
        }
        const made = await acknowledge(policy, parts);
        io.out(
          json
            ? JSON.stringify({ v: 1, policy: name, state: made.state, ...toAcknowledged(made) })
            : `policy ${name} (${made.state}) acknowledged: ${made.note}`,
        );
      });
    });
}
