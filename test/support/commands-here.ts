// Commands that tests run in their own process: what they do and print is the same, without the
// start of a process.
import { loadCommand } from "../../src/cli/commands.ts";
import { runProgram, type Streams } from "../../src/cli/program.ts";
import { readSettings } from "../../src/config/settings.ts";
import { withoutKnownSecrets } from "../../src/core/secrets.ts";

/** `signal`: Ctrl-C. `onOut`, `onErr`: see each line as it comes; `onOut` makes it a terminal. */
interface Watched {
  readonly signal?: AbortSignal;
  readonly onOut?: (line: string) => void;
  readonly onErr?: (line: string) => void;
  /** The width of the terminal; unset: no limit. */
  readonly columns?: number;
  /** Answers the questions of a command; unset: no person sits there. */
  readonly ask?: (question: string) => Promise<string>;
}

/** Runs a command to its end in this process, as if its environment were `variables` alone. */
export async function runHere(
  args: readonly string[],
  variables: Readonly<Record<string, string>> = {},
  { signal = new AbortController().signal, onOut, onErr, columns, ask }: Watched = {},
) {
  const out: string[] = [];
  const err: string[] = [];
  const io: Streams = {
    out: (line) => {
      out.push(withoutKnownSecrets(line));
      onOut?.(line);
    },
    err: (line) => {
      err.push(line);
      onErr?.(line);
    },
    ...(onOut === undefined ? {} : { progress: () => {} }),
    ...(ask === undefined ? {} : { ask }),
    colours: false,
    columns,
    errColumns: columns,
    settings: readSettings(variables),
    readInput: async () => "",
    signal,
    exitCode: 0,
  };
  const code = await runProgram([...args, ...(await optionsOf(args, variables, io))], io);
  return { code, out: out.join("\n"), err: err.join("\n") };
}

/** The library reads options from this process's environment only: they go as arguments. */
async function optionsOf(
  args: readonly string[],
  variables: Readonly<Record<string, string>>,
  io: Streams,
): Promise<string[]> {
  const command = await loadCommand(args[0], io);
  const chosen = command?.commands.find((one) => one.name() === args[1]) ?? command?.commands[0] ?? command;
  return (chosen?.options ?? []).flatMap(({ envVar, long, short }) => {
    const value = variables[envVar ?? ""];
    const isGiven = args.some((arg) => arg === long || arg === short);
    return value === undefined || value === "" || long === undefined || isGiven ? [] : [long, value];
  });
}
