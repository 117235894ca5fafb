// What every step of the bootstrap needs: to run a command, to find one on PATH, to speak, and to
// fail in one message. Never uses a shell and never writes to standard output.
import { spawn } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";

const outputCharactersMax = 4_000_000;

/** What a person can mend. The message says what is wrong and lists the ways out, one a line. */
export class Problem extends Error {
  constructor(what, waysOut) {
    super([`${what}. What helps:`, ...waysOut.map((way) => `  - ${way}`)].join("\n"));
    this.name = "Problem";
  }
}

/** Writes one line of progress to standard error. */
export function say(line) {
  process.stderr.write(`bootstrap: ${line}\n`);
}

/** Says what begins, does it, and says how long it took in seconds. */
export async function timed(what, work, speak = say) {
  speak(`${what} …`);
  const startMs = Date.now();
  const result = await work();
  speak(`done in ${((Date.now() - startMs) / 1000).toFixed(1)} s`);
  return result;
}

/**
 * Runs a command to its end, at most `timeoutMs` (10 minutes unless said) long.
 * Resolves to { code, stdout, stderr }; `code` is null when it could not start, was killed or took
 * too long.
 */
export function run(command, args, { cwd, env = process.env, timeoutMs = 600_000 } = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    const output = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"]) {
      child[name].setEncoding("utf8").on("data", (text) => {
        output[name] = (output[name] + text).slice(-outputCharactersMax);
      });
    }
    const timer = setTimeout(() => child.kill("SIGKILL"), timeoutMs);
    const finish = (code) => {
      clearTimeout(timer);
      resolve({ code, ...output });
    };
    child.on("error", (error) => {
      output.stderr += String(error.message);
      finish(null);
    });
    child.on("close", finish);
  });
}

/** The full path of an executable file on PATH, or undefined. */
export function findOnPath(name, path = process.env.PATH ?? "") {
  const names = process.platform === "win32" ? [`${name}.exe`] : [name];
  return path
    .split(delimiter)
    .filter((folder) => folder !== "")
    .flatMap((folder) => names.map((file) => join(folder, file)))
    .find(isExecutableFile);
}

function isExecutableFile(file) {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
