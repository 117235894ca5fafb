// `syncline token NAME`: makes a token for the dashboard and the API, and the line of the file that
// lets it in.
import { Command, InvalidArgumentError, Option } from "commander";
import { type Scope, scopes } from "../model/scope.ts";
import type { CommandIo } from "./command-io.ts";
import { labelOption } from "./shared-options.ts";

interface TokenOptions {
  readonly scope: Scope;
  readonly services: readonly string[];
  readonly label?: readonly string[];
  readonly until?: string;
  readonly json?: true;
}

const help = `
Prints the line for the file of \`syncline serve --web-tokens FILE\` to standard output, and the token, this once, to standard error. The file holds its hash only.
A running server reads the file again within 30 seconds: remove a line to lock its token out.
read: look. operate: also pause, resume, run, replay, discard, cancel and acknowledge. admin: also pause a service, any label or everything.

Examples:
  $ syncline token ana >> web-tokens
  $ syncline token ben --scope operate >> web-tokens
  $ syncline token reports --services main,archive --until 2027-06-30 >> web-tokens
  $ syncline token school --label team=school >> web-tokens
  $ syncline token ci --json | jq -r .token`;

/** The command `token`. */
export function tokenCommand(io: CommandIo): Command {
  return new Command("token")
    .argument("<name>", "whose token it is, as records show it", nameArgument)
    .addOption(new Option("--scope <scope>", "what it allows").choices(scopes).default("read"))
    .option("--services <names>", "only what belongs to these services, separated by commas", namesArgument, [])
    .addOption(labelOption("only the policies with this label; all of several must match"))
    .option("--until <day>", "its last day, UTC, such as 2027-06-30", dayArgument)
    .option("--json", "print both as JSON to standard output")
    .addHelpText("after", help)
    .action(async (name: string, { scope, services, label: labels, until: lastDay, json }: TokenOptions) => {
      const { createToken } = await import("../web/tokens.ts");
      const { token, line } = createToken({ name, scope, services, labels, lastDay });
      if (json) return io.out(JSON.stringify({ v: 1, token, line }));
      io.out(line);
      io.err(`the token, shown this once: ${token}`);
    });
}

function nameArgument(text: string): string {
  if (/^[\w.@-]{1,64}$/.test(text)) return text;
  throw new InvalidArgumentError("write letters, digits, _ . @ or -, at most 64");
}

function namesArgument(text: string): readonly string[] {
  const names = text.split(",").map((name) => name.trim());
  if (names.every((name) => /^[\w.-]+$/.test(name))) return names;
  throw new InvalidArgumentError("write names of services, separated by commas");
}

function dayArgument(text: string): string {
  const atMs = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  if (!Number.isNaN(atMs) && new Date(atMs).toISOString().startsWith(text)) return text;
  throw new InvalidArgumentError("write a day such as 2027-06-30");
}
