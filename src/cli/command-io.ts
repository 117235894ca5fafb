// What a command gets from program.ts: streams, settings, the stop signal; and its exit code. Also
// what both read: answers, input files, options given twice. Commands never touch `process`, so
// tests run them in their own process.

import { createReadStream } from "node:fs";
import { type Command, Option } from "commander";
import type { Settings } from "../config/settings.ts";
import { errorCode, UsageError } from "../core/errors.ts";

/** Why a command is stopped whose results are read no more, as behind `| head`. */
export const readerGone = "the reader has gone";

/** 0 fine; 1 not good; 2 wrong use or configuration; 3 Redis or the service is unreachable. */
export type ExitCode = 0 | 1 | 2 | 3;

/** What tables need to know of where they are shown. */
export interface Screen {
  /** True when standard output is a terminal that takes colours. */
  readonly colours: boolean;
  /** The width of the terminal; unset: no limit, as in a pipe and with `--wide`. */
  readonly columns?: number | undefined;
  /** Hears that cells were cut, and which columns were left out, to say so once. */
  readonly onCut?: (leftOut: readonly string[]) => void;
}

/** The world of one command. */
export interface CommandIo extends Screen {
  /** Writes one line to standard output: results only. */
  readonly out: (line: string) => void;
  /** Writes one line to standard error: progress, hints and errors. */
  readonly err: (line: string) => void;
  /** Replaces the last line on standard error; empty: removes it. Only set on a terminal. */
  readonly progress?: (text: string) => void;
  readonly settings: Settings;
  /** Resolves when the reader of standard output has read everything, or is gone. */
  readonly taken?: () => Promise<void>;
  /** Reads standard input to its end, at most 1 MiB. */
  readonly readInput: () => Promise<string>;
  /** Asks a question and waits for one line. Only set when a person sits at a terminal. */
  readonly ask?: (question: string) => Promise<string>;
  /** Aborts on the first SIGINT or SIGTERM, and with the reason `readerGone`. */
  readonly signal: AbortSignal;
  /** The exit code of main.ts. A command sets it; default 0. */
  exitCode: ExitCode;
}

/** Asks, unless --yes is given. @throws UsageError without a terminal to ask on. */
export async function isConfirmed(
  question: string,
  { yes }: { readonly yes?: true },
  { ask }: Pick<CommandIo, "ask">,
): Promise<boolean> {
  if (yes === true) return true;
  if (ask === undefined) throw new UsageError("there is no terminal to ask on: add --yes to do it without a question");
  return /^y(es)?$/i.test((await ask(`${question} (yes/no) `)).trim());
}

/** Resolves when the command is told to stop. */
export function untilStopped(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

const bytesMax = 1024 * 1024;

/** The text of a file, at most 1 MiB. @throws UsageError when it cannot be read. */
export async function readInputFile(option: string, path: string, io: CommandIo): Promise<string> {
  if (path === "-") return io.readInput();
  let bytes = Buffer.alloc(0);
  try {
    // `end` limits what is read, also from a pipe of unknown size.
    for await (const chunk of createReadStream(path, { end: bytesMax })) bytes = Buffer.concat([bytes, chunk]);
  } catch (error) {
    throw new UsageError(`${option}: ${path} cannot be read (${errorCode(error)}): check the path`);
  }
  if (bytes.length > bytesMax) throw new UsageError(`${option}: ${path} is over 1 MiB: split it`);
  return bytes.toString("utf8");
}

/** An option that may be given more than once. */
export class RepeatableOption extends Option {}

/** Makes a command refuse an option given twice: commander would drop the first value. */
export function refuseRepeats(command: Command): void {
  for (const option of command.options) {
    if (option.variadic || option instanceof RepeatableOption) continue;
    let given = 0;
    command.on(`option:${option.name()}`, () => {
      given += 1;
      if (given > 1) command.error(`error: option '${option.flags}' is given twice: once is possible`);
    });
  }
  for (const one of command.commands) refuseRepeats(one);
}
