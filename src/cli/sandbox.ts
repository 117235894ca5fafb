// `syncline sandbox`: runs the built-in service until it is stopped. Prints one JSON line when it
// is ready.

import { pid } from "node:process";
import { Command } from "commander";
import { durationPattern, parseDuration } from "../core/duration.ts";
import { stackOf, UsageError } from "../core/errors.ts";
import { defined } from "../core/json.ts";
import { describeUnknownWord, findWord } from "../core/nearest-word.ts";
import { type Fault, faultKinds, faultsMax, parseFault } from "../sandbox/faults.ts";
import {
  listOrders,
  nextLinkStyles,
  parseFieldNames,
  type SandboxOptions,
  shapeNames,
  tokenStyles,
} from "../sandbox/options.ts";
import { startSandbox } from "../sandbox/sandbox.ts";
import { type CommandIo, RepeatableOption, untilStopped } from "./command-io.ts";

/** The parsed option values. */
interface Flags
  extends Omit<
    SandboxOptions,
    "runMs" | "clock" | "onBug" | "repositories" | "faults" | "nextLinkStyle" | "tokenStyle"
  > {
  readonly runTime?: readonly [number, number];
  readonly repositories?: readonly string[];
  readonly fault?: readonly Fault[];
  readonly nextLinks?: NonNullable<SandboxOptions["nextLinkStyle"]>;
  readonly nextTokens?: NonNullable<SandboxOptions["tokenStyle"]>;
  readonly fields?: NonNullable<SandboxOptions["fieldNames"]>;
}

/** The command `sandbox`. It runs until it is told to stop. */
export function sandboxCommand(io: CommandIo): Command {
  const command = new Command("sandbox")
    .option("--port <n>", "port; 0 takes a free one (default 0)", wholeNumber("--port"))
    .option("--host <address>", "address to listen on (default 127.0.0.1)")
    .option("--base-path <path>", "path before /odata and /api, such as /sync")
    .option("--token <token>", "the bearer token (default: a random one)")
    .option("--limited-token <token>", "a token without rights: the operations of §5.2 answer it 401")
    .option("--jobs <n>", "sync jobs, with the ids 1 to n (default 20)", wholeNumber("--jobs"))
    .option("--activities <n>", "synchronization activities at the start (default 250)", wholeNumber("--activities"))
    .option("--seed <n>", "the same seed gives the same data and chance (default 1)", wholeNumber("--seed"))
    .option("--run-time <range>", "how long a run takes (default 1s..4s)", readRunTime)
    .option("--repositories <keys>", "repository keys; with one, every key names it (default HR)", (text) =>
      text.split(","),
    )
    .option("--page-size <n>", "items on a page (default 100)", wholeNumber("--page-size"))
    .option(
      "--shape <name>",
      `fields of activities and conflicts: ${shapeNames.join(", ")}`,
      word("--shape", shapeNames),
    )
    .option("--fields <pairs>", "other field names, such as activityId=a,state=b", parseFieldNames)
    .option(
      "--next-links <style>",
      `links to the next page: ${nextLinkStyles.join(", ")}`,
      word("--next-links", nextLinkStyles),
    )
    .option(
      "--next-tokens <style>",
      `tokens in these links: ${tokenStyles.join(", ")}`,
      word("--next-tokens", tokenStyles),
    )
    .option("--order <order>", `order of the lists: ${listOrders.join(", ")}`, word("--order", listOrders))
    .option("--empty-last-page", "every full page has a link, so that a list may end with an empty page")
    .option("--approvals-block", "a run that left an approval goes on until the approval is gone")
    .option("--missing-status <status>", "400 or 404 where no 404 is documented (default 400)", readMissingStatus)
    .addOption(
      new RepeatableOption(
        "--fault <fault>",
        `KIND[,op=NAME][,every=N]…, repeatable; ${faultKinds.join(", ")}`,
      ).argParser(addFault),
    );
  return command.action(async (flags: Flags) => {
    const sandbox = await startSandbox(toOptions(flags, io));
    const { jobs, seed } = sandbox.settings;
    const { baseUrl, token } = sandbox;
    io.out(JSON.stringify({ event: "sandbox.ready", baseUrl, token, jobs, seed, pid }));
    await untilStopped(io.signal);
    await sandbox.stop();
  });
}

function toOptions(flags: Flags, io: CommandIo): SandboxOptions {
  const { runTime, fault, nextLinks, nextTokens, fields, ...same } = flags;
  return {
    ...same,
    ...defined({ runMs: runTime, faults: fault, nextLinkStyle: nextLinks, tokenStyle: nextTokens, fieldNames: fields }),
    onBug: (error) => io.err(`sandbox: a bug: ${stackOf(error)}`),
  };
}

function wholeNumber(option: string): (text: string) => number {
  return (text) => {
    if (/^\d{1,10}$/.test(text)) return Number(text);
    throw new UsageError(`${option}: "${text}" is not a whole number`);
  };
}

function word<T extends string>(option: string, allowed: readonly T[]): (text: string) => T {
  return (text) => {
    const found = findWord(text, allowed);
    if (found === undefined) throw new UsageError(`${option}: ${describeUnknownWord(text, "known", allowed)}`);
    return found;
  };
}

function readMissingStatus(text: string): 400 | 404 {
  if (text === "400") return 400;
  if (text === "404") return 404;
  throw new UsageError(`--missing-status: "${text}" is neither 400 nor 404`);
}

function readRunTime(text: string): readonly [number, number] {
  const [shortest = "", longest = shortest, ...rest] = text.split("..");
  if (rest.length === 0 && durationPattern.test(shortest) && durationPattern.test(longest))
    return [parseDuration(shortest), parseDuration(longest)];
  throw new UsageError(`--run-time: "${text}" is not a range of durations; write 1s..4s, or 500ms`);
}

function addFault(text: string, earlier: readonly Fault[] = []): readonly Fault[] {
  if (earlier.length >= faultsMax) throw new UsageError(`--fault: at most ${faultsMax} faults`);
  return [...earlier, parseFault(text)];
}
