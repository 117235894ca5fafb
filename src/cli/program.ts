// Runs one command: from arguments to exit code. Only this file touches the streams. Called by
// main.ts, which ends the process.
import { createInterface } from "node:readline/promises";
import { setFlagsFromString } from "node:v8";
import { Command, CommanderError } from "commander";
import { dropEmptyVariables, readSettings } from "../config/settings.ts";
import { systemClock } from "../core/clock.ts";
import { OutOfReachError, stackOf, UsageError } from "../core/errors.ts";
import { withoutCutSecrets, withoutKnownSecrets, withoutSecrets } from "../core/secrets.ts";
import { version } from "../core/version.ts";
import { type CommandIo, readerGone, refuseRepeats, untilStopped } from "./command-io.ts";
import { commandGroups, loadCommand } from "./commands.ts";
import { cutToWidth, wrapLines } from "./width.ts";

const inputBytesMax = 1_048_576;
const takenWithinMs = 2_000;
/** The width of a terminal that does not tell it. */
const columnsDefault = 80;
/** By how much a line that goes on stands further right. */
const hang = 2;
/** Commands that go on until they are stopped. */
const lasting = new Set(["dev", "sandbox", "serve"]);
/** Commands that print files, scripts and answers, and options for it: their lines stay whole. */
const verbatim = new Set(["api", "completion", "discover", "feed", "import", "sandbox", "schema", "serve", "token"]);
const verbatimOptions = ["--json", "--ndjson", "--markdown", "--wide"];

/** Runs the command until it ends or `stop` aborts it; returns the exit code. Never throws. */
export async function main(args: string[], stop: AbortController): Promise<number> {
  // A short command gains nothing from a larger young generation, or from threads that clear it;
  // without both it takes a third less memory.
  if (!lasting.has(commandOf(args) ?? "")) setFlagsFromString("--semi-space-growth-factor=1 --no-parallel-scavenge");
  // As behind `| head`: nothing more can be shown. Progress that no reader takes ends nothing.
  process.stdout.on("error", () => stop.abort(readerGone));
  process.stderr.on("error", () => {});
  netUnder(process.stderr);
  const exitCode = await runProgram(args, createStreams(stop.signal));
  await Promise.all([process.stdout, process.stderr].map((stream) => takenBy(stream, stop.signal)));
  return exitCode;
}

/** What `runProgram` needs: lines go out as they come, however wide. */
export type Streams = CommandIo & {
  /** The width of the terminal of standard error; unset: no limit. */
  readonly errColumns?: number | undefined;
};

/** Runs the command that the arguments name, within the width of the terminal. Never throws. */
export async function runProgram(args: readonly string[], streams: Streams): Promise<number> {
  let leftOut: readonly string[] | undefined;
  const io = withinWidth(args, streams, (columns) => {
    leftOut = [...new Set([...(leftOut ?? []), ...columns])];
  });
  const exitCode = await createProgram(args, io)
    .then((program) => program.parseAsync(args, { from: "user" }))
    .then(
      () => io.exitCode,
      (error: unknown) => explain(error, args, io),
    );
  if (leftOut !== undefined) {
    const without = leftOut.length === 0 ? "" : `, without ${leftOut.join(", ")}`;
    io.err(`cut to the width of the terminal${without}: --wide shows all`);
  }
  return exitCode;
}

/** The one place that wraps what commands say. */
function withinWidth(
  args: readonly string[],
  { errColumns, ...streams }: Streams,
  onCut: NonNullable<CommandIo["onCut"]>,
): CommandIo {
  const { out, err, progress, ask } = streams;
  const isVerbatim = verbatim.has(commandOf(args) ?? "") || verbatimOptions.some((option) => args.includes(option));
  const columns = args.includes("--wide") ? undefined : streams.columns;
  return {
    ...streams,
    columns,
    onCut,
    out: isVerbatim ? out : (line) => out(wrapLines(line, columns, hang)),
    err: (line) => err(wrapLines(line, errColumns, hang)),
    ...(progress === undefined
      ? {}
      : { progress: (text) => progress(errColumns === undefined ? text : cutToWidth(text, errColumns - 1)) }),
    ...(ask === undefined ? {} : { ask: (question) => ask(wrapLines(question, errColumns, hang)) }),
  };
}

/** The command that the arguments name, also after `help`. */
function commandOf(args: readonly string[]): string | undefined {
  const [first, second] = args.filter((arg) => !arg.startsWith("-"));
  return first === "help" ? second : first;
}

/** Masks what libraries print: with DEBUG or NODE_DEBUG they print passwords and headers. */
function netUnder(stream: NodeJS.WriteStream): void {
  const write = stream.write.bind(stream);
  type Written = (error?: Error | null) => void;
  stream.write = (chunk: string | Uint8Array, encoding?: BufferEncoding | Written, written?: Written): boolean => {
    const text = withoutCutSecrets(typeof chunk === "string" ? chunk : Buffer.from(chunk).toString());
    return typeof encoding === "function" ? write(text, encoding) : write(text, encoding, written);
  };
}

/** Waits for the reader: a pipe takes 64 KiB at once, and the exit would lose the rest. */
async function takenBy(stream: NodeJS.WriteStream, stop: AbortSignal): Promise<void> {
  if (stream.writableLength === 0) return;
  const taken = new Promise<void>((resolve) => stream.write("", () => resolve()));
  // A pager may take its time; after a stop signal the wait is limited.
  await Promise.race([taken, untilStopped(stop).then(() => systemClock.sleep(takenWithinMs))]);
}

/** The program with its commands; only the one that the arguments name has its options. */
async function createProgram(args: readonly string[], io: CommandIo): Promise<Command> {
  const program = new Command("syncline")
    .description("Starts and watches the sync jobs of a Synchronization Management Service on a schedule.")
    .version(version)
    .commandsGroup("More:")
    .addHelpText(
      "after",
      "\nExit codes: 0 fine, 1 the outcome is not good, 2 wrong use or configuration, 3 Redis or the service is out of reach. A command that has more to say about them does so in its --help.",
    );
  const named = commandOf(args);
  const chosen = await loadCommand(named, io);
  for (const [heading, descriptions] of Object.entries(commandGroups))
    for (const [name, description] of Object.entries(descriptions)) {
      const command = name === named && chosen !== undefined ? chosen : new Command(name);
      program.addCommand(command.description(description).helpGroup(heading));
    }
  refuseRepeats(program);
  program.hook("preAction", (_, one) => {
    const given = one.opts();
    const idle = ["wide", "ids"].find((name) => given["json"] === true && given[name] === true);
    if (idle !== undefined) throw new UsageError(`--${idle} does nothing with --json: leave it out`);
  });
  for (const command of [program, ...program.commands, ...program.commands.flatMap((one) => one.commands)]) {
    command
      .exitOverride()
      .showHelpAfterError(usageOf(command))
      .configureOutput({
        writeOut: (text) => io.out(wrapLines(text.trimEnd(), io.columns)),
        writeErr: (text) => {
          const said = inPlainWords(text.trimEnd(), command);
          // Help has paragraphs, which have no hanging indent.
          io.err(said.startsWith("error:") ? said : wrapLines(said, io.columns));
        },
        getOutHelpWidth: () => io.columns ?? columnsDefault,
        getErrHelpWidth: () => io.columns ?? columnsDefault,
      });
  }
  return program;
}

/** The errors of the library, with what to do: it knows the options and arguments, and not why. */
function inPlainWords(text: string, command: Command): string {
  const { registeredArguments: places } = command;
  return text
    .replace(" is invalid. ", " is invalid: ")
    .replace(/command-argument value ('.*?') is invalid for argument '(\w+)'[:.]/s, "$2 $1:")
    .replace(/too many arguments for 'api'.*/, (said) => `${said} An id goes by --key, a repository by --repository.`)
    .replace(/missing required argument '(\w+)'/, (_, name: string) => {
      return `say which ${name}: ${places.find((one) => one.name() === name)?.description}`;
    })
    .replace(/required option '(.*?)' not specified/, (_, flags: string) => {
      const { description, envVar } = command.options.find((one) => one.flags === flags) ?? {};
      return `${flags} is required: ${description}${envVar === undefined ? "" : `; or set ${envVar}`}`;
    })
    .replace(/unknown option '--(?:limit|count)'/, (unknown) => {
      const most = command.options.find(({ short }) => short === "-n");
      return most === undefined ? unknown : `${unknown}: write ${most.long}`;
    })
    .replace(/unknown command '(replay|discard)'.*/s, (_, name: string) => {
      return `unknown command '${name}': write syncline failed ${name}`;
    })
    .replace(/unknown option '--repository'/, (unknown) => {
      const hasLabels = command.options.some(({ long }) => long === "--label");
      return hasLabels ? `${unknown}: give its policies a label, and write --label NAME=VALUE` : unknown;
    })
    .replace(/unknown option '--policy'/, (unknown) => {
      const [place] = places;
      return place?.name().startsWith("polic") ? `${unknown}: write ${nameOf(command)} POLICY` : unknown;
    });
}

/** What stands below an error: how the command is used, and where more is said. */
function usageOf(command: Command): string {
  const name = nameOf(command);
  return `usage: ${name} ${command.usage()}\n${name} --help shows what is possible`;
}

/** `syncline failed list`. */
function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`;
}

function explain(error: unknown, args: readonly string[], io: CommandIo): number {
  // commander has printed its message already; help and version come this way too, with code 0.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (error instanceof UsageError || error instanceof OutOfReachError) {
    // Where Redis is may have been said by the option.
    const isOption = args.some((arg) => arg.startsWith("--redis-url"));
    io.err(`error: ${isOption ? error.message.replaceAll("REDIS_URL", "--redis-url") : error.message}`);
    return error instanceof UsageError ? 2 : 3;
  }
  io.err(describeBug(error));
  return 1;
}

/** Only the stack: libraries attach requests, commands and answers to errors. */
export function describeBug(error: unknown): string {
  return withoutSecrets(`bug: ${stackOf(error)}`);
}

function createStreams(signal: AbortSignal): Streams {
  dropEmptyVariables();
  const settings = readSettings();
  const isTerminal = process.stdout.isTTY === true;
  return {
    out: (line) => process.stdout.write(`${withoutKnownSecrets(line)}\n`),
    err: (line) => process.stderr.write(`${line}\n`),
    ...(process.stderr.isTTY === true ? { progress: (text) => process.stderr.write(`\r\u001b[K${text}`) } : {}),
    colours: isTerminal && !settings.noColor,
    columns: isTerminal ? process.stdout.columns || columnsDefault : undefined,
    errColumns: process.stderr.isTTY === true ? process.stderr.columns || columnsDefault : undefined,
    settings,
    taken: () => takenBy(process.stdout, signal),
    readInput,
    ...(process.stdin.isTTY === true && process.stderr.isTTY === true
      ? { ask: (question) => ask(question, signal) }
      : {}),
    signal,
    exitCode: 0,
  };
}

async function ask(question: string, signal: AbortSignal): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  // readline keeps Control-C and the end of the input to itself; both are no answer.
  const left = new AbortController();
  terminal.once("SIGINT", () => left.abort());
  terminal.once("close", () => left.abort());
  try {
    return await terminal.question(question, { signal: AbortSignal.any([signal, left.signal]) });
  } catch {
    return "";
  } finally {
    terminal.close();
  }
}

async function readInput(): Promise<string> {
  let text = "";
  for await (const chunk of process.stdin.setEncoding("utf8")) {
    text += chunk;
    if (text.length > inputBytesMax) throw new UsageError("standard input holds more than 1 MiB");
  }
  return text;
}
