// What a command gets from program.ts and gives back: streams, settings, the signal to stop, and the exit code.
// Commands never touch `process`, so tests run them in this process.
import type { Settings } from "../config/settings.ts";

/** 0 fine; 1 the outcome is not good; 2 wrong use or configuration; 3 Redis or the service is out of reach. */
export type ExitCode = 0 | 1 | 2 | 3;

/** The world of one command. */
export interface CommandIo {
  /** Writes one line to standard output: results only. */
  readonly out: (line: string) => void;
  /** Writes one line to standard error: progress, hints and errors. */
  readonly err: (line: string) => void;
  /** Shows one line on standard error in place of the last one; an empty text takes it away. Only there when that is a terminal. */
  readonly progress?: (text: string) => void;
  /** True when standard output is a terminal that takes colours. */
  readonly colours: boolean;
  readonly settings: Settings;
  /** Resolves when the reader of standard output has taken what was written, or is gone. Only there when standard output is a stream. */
  readonly taken?: () => Promise<void>;
  /** Reads standard input to its end, at most 1 MiB. */
  readonly readInput: () => Promise<string>;
  /** Asks a question and waits for one line. Only there when somebody sits at a terminal. */
  readonly ask?: (question: string) => Promise<string>;
  /** Aborts on the first SIGINT or SIGTERM. */
  readonly signal: AbortSignal;
  /** What main.ts exits with. A command sets it; 0 unless set. */
  exitCode: ExitCode;
}
