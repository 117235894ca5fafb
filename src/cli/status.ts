// `syncline status`: breakers and throttles of the services, policies in quarantine, lists that are
// read whole again and again, what waits for sinks, and which processes are alive.
import type { Command } from "commander";
import { showInstant } from "../core/instant.ts";
import {
  describeBreaker,
  describeMissingRoles,
  describeThrottle,
  showFeed,
  showPresence,
} from "../queries/service-words.ts";
import { isStuck, type SinkState } from "../queries/sinks.ts";
import { type ExpensiveFeed, readStatus, type Status } from "../queries/status.ts";
import { foreignOwner } from "../store/owners.ts";
import type { CommandIo, Screen } from "./command-io.ts";
import { withStore } from "./connections.ts";
import {
  choosePolicies,
  labelOption,
  type PolicyChoice,
  policySetFor,
  redisCommand,
  redisTarget,
  type SetOptions,
} from "./shared-options.ts";
import { alarming, toTable, wideOption } from "./table.ts";

const feedsShownMax = 20;

const help = `
Exit code 1 when no process with the role scheduler or worker is alive, a breaker is open, a service asked for patience, a policy is in quarantine, two owners run under this prefix, or a sink has taken nothing for 15 minutes.
A sink shows once a worker has had it; a list when it was read whole three times in a row though a page should do, or cannot be read.

Examples:
  $ syncline status
  $ syncline status --json | jq '.services[] | select(.breaker == "open")'`;

/** The command `status`. */
export function statusCommand(io: CommandIo): Command {
  return redisCommand("status", "set")
    .addOption(labelOption())
    .option("--json", "print JSON")
    .addOption(wideOption())
    .addHelpText("after", help)
    .action(async (options: SetOptions & PolicyChoice) => {
      const target = redisTarget(options, io);
      const status = await withStore(target, async (store) => {
        const set = await policySetFor(options, store, io);
        return readStatus({ ...set, policies: choosePolicies(set, options) }, store, target);
      });
      if (!isWell(status)) io.exitCode = 1;
      if (options.json) io.out(statusToJson(status));
      else for (const block of statusToText(status, io)) io.out(block);
    });
}

function quarantinedOf({ pauses }: Status) {
  return pauses.filter(({ cause }) => cause === "quarantine");
}

function isWell(status: Status): boolean {
  const { nowMs, services, sinks, processes, owners } = status;
  return (
    services.every(({ breaker, throttledUntilMs }) => breaker !== "open" && throttledUntilMs === undefined) &&
    !sinks.some((sink) => isStuck(sink, nowMs)) &&
    describeMissingRoles(processes).length + quarantinedOf(status).length + owners.others.length === 0
  );
}

function statusToJson(status: Status): string {
  const { services, sinks, feeds, processes, owners } = status;
  return JSON.stringify({ services, quarantined: quarantinedOf(status), sinks, feeds, processes, owners });
}

function statusToText(status: Status, screen: Screen): string[] {
  const { nowMs, services, sinks, feeds, processes, owners } = status;
  const lines = services.map((one) => [
    one.service,
    describeBreaker(one, nowMs),
    describeThrottle(one, nowMs),
    `${one.inFlight}`,
  ]);
  const blocks = [
    toTable(["service", "breaker", "asked for patience", "in flight"], lines, screen),
    `\nalive: ${showPresence(processes)}`,
    ...describeMissingRoles(processes).map((line) => alarming(line, screen.colours)),
  ];
  if (owners.others.length > 0)
    blocks.push(alarming(foreignOwner([owners.holder ?? "", ...owners.others]), screen.colours));
  if (feeds.length > 0) blocks.push(`\n${feedsTable(feeds, screen)}`);
  if (sinks.length > 0) blocks.push(`\n${sinksTable(sinks, screen)}`);
  const rows = quarantinedOf(status).map(({ name, sinceMs, untilMs, note }) => [
    name,
    showInstant(sinceMs),
    untilMs === null ? "" : showInstant(untilMs),
    note,
  ]);
  if (rows.length > 0) blocks.push(`\n${toTable(["in quarantine", "since", "until", "because"], rows, screen)}`);
  return blocks;
}

function feedsTable(feeds: readonly ExpensiveFeed[], screen: Screen): string {
  const rows = feeds.slice(0, feedsShownMax).map(({ feed, what }) => [showFeed(feed), what]);
  const more = feeds.length > feedsShownMax ? `\nand ${feeds.length - feedsShownMax} more; --json has all of them` : "";
  return `${toTable(["list", "costs more than it needs, or is not read"], rows, screen)}${more}`;
}

function sinksTable(sinks: readonly SinkState[], screen: Screen): string {
  const rows = sinks.map(({ sink, waiting, oldestMs, failed, dropped }) => [
    sink,
    `${waiting}`,
    oldestMs === undefined ? "" : showInstant(oldestMs),
    `${failed}`,
    `${dropped}`,
  ]);
  return toTable(["sink", "waiting", "the first since", "failed", "dropped"], rows, screen);
}
