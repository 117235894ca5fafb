// `syncline sinks`: the receivers of notices and what waits for them; `sinks test NAME` sends one a
// trial notice now.

import { Command } from "commander";
import type { PolicySet, SinkSettings } from "../config/policy-set.ts";
import { silentLog } from "../core/event-log.ts";
import { showInstant, toIso } from "../core/instant.ts";
import { sendTrial } from "../notify/trial.ts";
import { isStuck, type LastDigest, readLastDigests, readSinks } from "../queries/sinks.ts";
import { NoticeQueues } from "../queue/notice-queues.ts";
import { redisTimeMs } from "../store/redis.ts";
import { currentActor } from "./changes.ts";
import type { CommandIo } from "./command-io.ts";
import { checkSink } from "./doctor/outside-checks.ts";
import {
  configOption,
  findSink,
  loadPoliciesOrThrow,
  type PolicyOptions,
  redisCommand,
  refuseUnknownWord,
  type SetOptions,
  withPolicies,
} from "./shared-options.ts";
import { backlogCells, backlogHeading } from "./status-report.ts";
import { alarming, oneLine, safeJson, toTable, wideOption } from "./table.ts";

const help = `
Exit codes: 0 fine, 1 a sink has taken nothing for 15 minutes, or did not take the trial, 2 wrong use or configuration, 3 Redis is out of reach.

Examples:
  $ syncline sinks
  $ syncline sinks test ops --config policies/`;

const testHelp = `
Sends one notice of the kind "trial" at once, past queues and mute timing, as a worker would from this machine. It needs no Redis.
Exit codes: 0 the receiver took it, 1 it did not, with what to do, 2 wrong use or configuration.

Examples:
  $ syncline sinks test ops --config policies/
  $ syncline sinks test ops --config policies/ --json | jq .status`;

/** The command `sinks`. */
export function sinksCommand(io: CommandIo): Command {
  const list = redisCommand("list", "set")
    .description("each sink, where it leads, and what waits for it (the default)")
    .option("--json", "print JSON")
    .addOption(wideOption())
    .allowExcessArguments()
    .action((options: SetOptions, command: Command) => {
      refuseUnknownWord(command, ["list", "test"]);
      return showSinks(options, io);
    });
  const test = new Command("test")
    .description("send a trial notice to a sink, and say what came back")
    .argument("<name>", "the sink, by its name; `syncline sinks` lists them")
    .addOption(configOption())
    .option("--json", "print JSON")
    .addHelpText("after", testHelp)
    .action((name: string, options: Pick<PolicyOptions, "config" | "json">) => testSink(name, options, io));
  return new Command("sinks").addCommand(list, { isDefault: true }).addCommand(test).addHelpText("after", help);
}

async function showSinks(options: SetOptions, io: CommandIo): Promise<void> {
  const { sinks, nowMs, states, digests } = await withPolicies(options, io, async ({ set, store, target }) => {
    await using queues = new NoticeQueues(target, silentLog);
    const backlogs = await readSinks(set, store, queues);
    const nowMs = await redisTimeMs(store);
    const digests = await readLastDigests(set, { store, queues, nowMs });
    const sinks = [...set.sinks.values()].map((sink) => ({ name: sink.name, to: showReceiver(sink) }));
    for (const { sink: name } of backlogs) if (!set.sinks.has(name)) sinks.push({ name, to: "not configured" });
    return { sinks, nowMs, digests, states: new Map(backlogs.map((one) => [one.sink, one])) };
  });
  const stuck = [...states.values()].filter((state) => isStuck(state, nowMs));
  if (stuck.length > 0) io.exitCode = 1;
  if (options.json) {
    const all = sinks.map(({ name, to }) => ({
      ...{ sink: name, to, ...states.get(name) },
      lastDigest: toIso(lastDigestMs(name, digests)),
    }));
    return io.out(safeJson(all));
  }
  if (sinks.length === 0) return io.err("no sink is configured: `sinks` of a policy file (docs/notifications.md)");
  const rows = sinks.map(({ name, to }) => {
    const lastMs = lastDigestMs(name, digests);
    const state = states.get(name);
    const backlog = state === undefined ? ["no worker has had it yet", "", "", ""] : backlogCells(state);
    return [name, to, ...backlog, lastMs === undefined ? "" : showInstant(lastMs)];
  });
  io.out(toTable(["sink", "to", ...backlogHeading, "last digest"], rows, io));
  for (const { sink } of stuck) {
    const what = `${sink} has taken nothing for 15 minutes: \`syncline sinks test ${sink}\` says why`;
    io.out(alarming(what, io.colours));
  }
}

/** When a sink got the last of its digests; one that is too old to be known counts, too. */
function lastDigestMs(name: string, digests: readonly LastDigest[]): number | undefined {
  const own = digests.filter(({ to }) =>
    to.some(({ sink, state }) => sink === name && (state === "delivered" || state === "past")),
  );
  return own.length === 0 ? undefined : Math.max(...own.map(({ atMs }) => atMs));
}

/** Where a sink leads, without the parts of its URL that may be a secret. */
function showReceiver({ to }: SinkSettings): string {
  if (to.kind === "file") return `file ${to.path}`;
  if (to.kind === "webhook") return `webhook (${to.format}) at ${new URL(to.url).host}`;
  const [first, ...more] = to.to;
  return `e-mail to ${first}${more.length === 0 ? "" : ` and ${more.length} more`} by ${to.host}:${to.port}`;
}

async function testSink(name: string, options: Pick<PolicyOptions, "config" | "json">, io: CommandIo): Promise<void> {
  const set = await loadPoliciesOrThrow(options.config, io);
  const sink = findSink(set, name);
  if (!isUsed(set, sink)) io.err(`note: no policy notifies ${name}: add it under \`notify\` or \`defaults.notify\``);
  const to = showReceiver(sink);
  const problems = (await checkSink(sink, io.signal)).filter(({ level }) => level === "problem");
  const [problem] = problems;
  if (problem !== undefined) {
    io.exitCode = 1;
    const { what: reason, cure } = problem;
    if (options.json) return io.out(safeJson({ v: 1, sink: name, to, taken: false, reason, cure }));
    io.out(`nothing was sent to ${name}, ${to}`);
    for (const { what, cure } of problems) io.out(`${alarming(oneLine(what), io.colours)}\n→ ${oneLine(cure ?? "")}`);
    return;
  }
  const trial = await sendTrial(sink, { set, actor: currentActor(), signal: io.signal });
  const { notice: sent, receipt, durationMs, cure } = trial;
  const taken = receipt.type === "taken";
  if (!taken) io.exitCode = 1;
  const { status, said } = receipt.type === "stopped" ? {} : receipt;
  const refusedFor = receipt.type === "taken" ? receipt.refusedFor : undefined;
  const reason = "reason" in receipt ? receipt.reason : undefined;
  const result = { v: 1, sink: name, to, taken, status, durationMs, said, refusedFor, reason, cure, sent };
  if (options.json) return io.out(safeJson(result));
  io.out(`sent to ${name}, ${to}: ${sent.title}`);
  if (said !== undefined) io.out(`the receiver says: ${said}`);
  for (const refused of refusedFor ?? []) io.out(alarming(`not for ${oneLine(refused)}`, io.colours));
  const answer = status === undefined ? "written" : `answered with status ${status}`;
  if (taken) return io.out(`taken: ${answer} after ${durationMs} ms`);
  const why = `not taken: ${oneLine(reason ?? "stopped")} after ${durationMs} ms`;
  io.out(`${alarming(why, io.colours)}\n→ ${cure}`);
}

function isUsed({ policies, notifications }: PolicySet, { name, items }: SinkSettings): boolean {
  if (notifications.digests?.some(({ to }) => to.includes(name))) return true;
  return items !== undefined || policies.some(({ notify = [] }) => notify.some(({ sink }) => sink === name));
}
