// `simulate` and `plan` in the test's own process: what they print, without a process for each.
import type { Command } from "commander";
import type { CommandIo } from "../../src/cli/command-io.ts";
import { planCommand } from "../../src/cli/plan.ts";
import { simulateCommand } from "../../src/cli/simulate.ts";
import { readSettings } from "../../src/config/settings.ts";

const makers: Readonly<Record<string, (io: CommandIo) => Command>> = {
  plan: planCommand,
  simulate: simulateCommand,
};

/**
 * Runs a command line (`simulate --to +1d`): what it printed, also how it refused, and its exit
 * code unless it refused.
 */
export async function commandHere(args: readonly string[], more: Partial<CommandIo> = {}) {
  const told: string[] = [];
  const tell = (line: string) => told.push(line);
  const io: CommandIo = {
    out: tell,
    err: tell,
    colours: false,
    settings: readSettings({ SYNC_TOKEN: "secret", SANDBOX_URL: "http://127.0.0.1:4711", SANDBOX_TOKEN: "secret" }),
    readInput: async () => "",
    signal: new AbortController().signal,
    exitCode: 0,
    ...more,
  };
  const [name = "", ...rest] = args;
  const command = makers[name]?.(io).exitOverride().configureOutput({ writeErr: tell });
  if (command === undefined) throw new Error(`no command ${name} here`);
  try {
    await command.parseAsync(rest, { from: "user" });
  } catch (error) {
    tell(String(error));
  }
  return { text: told.join("\n"), code: io.exitCode };
}
