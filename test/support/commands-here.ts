// Commands that tests run in their own process: what they do and print is the same, without the
// start of a process.
import { acknowledgeCommand } from "../../src/cli/acknowledge.ts";
import { apiCommand } from "../../src/cli/api.ts";
import { auditCommand } from "../../src/cli/audit.ts";
import { cancelCommand } from "../../src/cli/cancel.ts";
import { changesCommand } from "../../src/cli/changes.ts";
import type { CommandIo } from "../../src/cli/command-io.ts";
import { doctorCommand } from "../../src/cli/doctor/doctor-command.ts";
import { explainCommand } from "../../src/cli/explain.ts";
import { failedCommand } from "../../src/cli/failed.ts";
import { historyCommand } from "../../src/cli/history.ts";
import { importCommand } from "../../src/cli/import/import-command.ts";
import { pauseCommand } from "../../src/cli/pause.ts";
import { reportCommand } from "../../src/cli/report.ts";
import { resumeCommand } from "../../src/cli/resume.ts";
import { runCommand } from "../../src/cli/run-policy.ts";
import { runningCommand } from "../../src/cli/running.ts";
import { sinksCommand } from "../../src/cli/sinks.ts";
import { statusCommand } from "../../src/cli/status.ts";
import { readSettings } from "../../src/config/settings.ts";
import { UsageError } from "../../src/core/errors.ts";

const commands = {
  acknowledge: acknowledgeCommand,
  api: apiCommand,
  audit: auditCommand,
  cancel: cancelCommand,
  changes: changesCommand,
  doctor: doctorCommand,
  explain: explainCommand,
  failed: failedCommand,
  history: historyCommand,
  import: importCommand,
  pause: pauseCommand,
  report: reportCommand,
  resume: resumeCommand,
  run: runCommand,
  running: runningCommand,
  sinks: sinksCommand,
  status: statusCommand,
};

/** `signal`: Ctrl-C. `onOut`, `onErr`: see each line as it comes; `onOut` makes it a terminal. */
interface Watched {
  readonly signal?: AbortSignal;
  readonly onOut?: (line: string) => void;
  readonly onErr?: (line: string) => void;
}

/** Runs a command in this process; the arguments say which Redis. */
export async function runHere(
  [name = "", ...args]: readonly string[],
  variables: Readonly<Record<string, string>>,
  { signal = new AbortController().signal, onOut, onErr }: Watched = {},
) {
  const make = Object.entries(commands).find(([known]) => known === name)?.[1];
  if (make === undefined) throw new Error(`${name} does not run here`);
  const out: string[] = [];
  const err: string[] = [];
  const io: CommandIo = {
    out: (line) => {
      out.push(line);
      onOut?.(line);
    },
    err: (line) => {
      err.push(line);
      onErr?.(line);
    },
    ...(onOut === undefined ? {} : { progress: () => {} }),
    colours: false,
    settings: readSettings(variables),
    readInput: async () => "",
    signal,
    exitCode: 0,
  };
  try {
    await make(io).exitOverride().parseAsync(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    err.push(`error: ${error.message}`);
    io.exitCode = 2;
  }
  return { code: io.exitCode, out: out.join("\n"), err: err.join("\n") };
}
