// `syncline status`: breakers and throttles of the services, policies in quarantine, lists that are
// read whole again and again, what waits for sinks, and which processes are alive.
import { Command } from "commander";
import { isInForce, type Pause } from "../model/pause.ts";
import { type LimiterStatus, readLimiterStatus } from "../store/limiter-status.ts";
import { foreignOwner, type Owners, readOwners } from "../store/owners.ts";
import { Quarantines } from "../store/quarantines.ts";
import { openStore, type Presence, readPresence, redisTimeMs } from "../store/redis.ts";
import type { CommandIo } from "./command-io.ts";
import { type DearFeed, readDearFeeds, tellFeed } from "./dear-feeds.ts";
import { alarming, describeBreaker, describeThrottle, tellMissingRoles } from "./service-words.ts";
import {
  configOption,
  loadPoliciesOrThrow,
  prefixOption,
  type RedisOptions,
  redisOption,
  redisTarget,
} from "./shared-options.ts";
import { isStuck, readSinkStates, type SinkState } from "./sink-states.ts";
import { showInstant, toTable } from "./table.ts";

interface StatusOptions extends RedisOptions {
  readonly config: string;
  readonly json?: true;
}

interface Status {
  readonly nowMs: number;
  readonly services: readonly (LimiterStatus & { readonly service: string })[];
  readonly quarantined: readonly Pause[];
  readonly processes: Presence;
  readonly owners: Owners;
  readonly sinks: readonly SinkState[];
  readonly feeds: readonly DearFeed[];
}

const help = `
Exit code 1 when no process with the role scheduler or worker is alive, a breaker is open, a service asked for patience, a policy is in quarantine, two owners run under this prefix, or a sink has taken nothing for 15 minutes.
A sink shows once a worker has had it; a list when it was read whole three times in a row though a page should do, or cannot be read.

Examples:
  $ syncline status --config policies/
  $ syncline status --config policies/ --json | jq '.services[] | select(.breaker == "open")'`;

/** The command `status`. */
export function statusCommand(io: CommandIo): Command {
  return new Command("status")
    .description(
      "which services are down or asked for patience, which policies are in quarantine, what waits for sinks",
    )
    .addOption(configOption())
    .addOption(redisOption())
    .addOption(prefixOption())
    .option("--json", "print JSON")
    .addHelpText("after", help)
    .action(async (options: StatusOptions) => {
      const target = redisTarget(options, io);
      const set = await loadPoliciesOrThrow(options.config, io);
      const store = await openStore(target);
      try {
        const nowMs = await redisTimeMs(store);
        const services = [];
        for (const service of [...set.services.keys()].toSorted())
          services.push({ service, ...(await readLimiterStatus(store, service)) });
        const quarantined = (await new Quarantines(store).all()).filter((one) => isInForce(one, nowMs));
        const sinks = await readSinkStates(set, { target, store });
        const feeds = await readDearFeeds(set, store);
        const [processes, owners] = await Promise.all([readPresence(store), readOwners(store)]);
        show({ nowMs, services, quarantined, sinks, feeds, processes, owners }, options, io);
      } finally {
        await store.close();
      }
    });
}

function show(
  { nowMs, services, quarantined, sinks, feeds, processes, owners }: Status,
  options: StatusOptions,
  io: CommandIo,
): void {
  const isIll = services.some(({ breaker, throttledUntilMs }) => breaker === "open" || throttledUntilMs !== undefined);
  const missing = tellMissingRoles(processes);
  const hasStuck = sinks.some((sink) => isStuck(sink, nowMs));
  const isContested = owners.others.length > 0;
  io.exitCode = isIll || hasStuck || missing.length > 0 || quarantined.length > 0 || isContested ? 1 : 0;
  if (options.json) {
    io.out(JSON.stringify({ services, quarantined, sinks, feeds, processes, owners }));
    return;
  }
  const lines = services.map((one) => [
    one.service,
    describeBreaker(one, nowMs),
    describeThrottle(one, nowMs),
    `${one.inFlight}`,
  ]);
  io.out(toTable(["service", "breaker", "asked for patience", "in flight"], lines, io.colours));
  io.out(`\nalive: ${showPresence(processes)}`);
  for (const line of missing) io.out(alarming(line, io.colours));
  if (isContested) io.out(alarming(foreignOwner([owners.holder ?? "", ...owners.others]), io.colours));
  if (feeds.length > 0) io.out(`\n${tellFeeds(feeds, io.colours)}`);
  if (sinks.length > 0) io.out(`\n${tellSinks(sinks, io.colours)}`);
  if (quarantined.length === 0) return;
  const rows = quarantined.map(({ name, sinceMs, untilMs, note }) => [
    name,
    showInstant(sinceMs),
    untilMs === null ? "" : showInstant(untilMs),
    note,
  ]);
  io.out("");
  io.out(toTable(["in quarantine", "since", "until", "because"], rows, io.colours));
}

/** How many lists are shown one by one. */
const feedsShown = 20;

function tellFeeds(feeds: readonly DearFeed[], colours: boolean): string {
  const rows = feeds.slice(0, feedsShown).map(({ feed, what }) => [tellFeed(feed), what]);
  const more = feeds.length > feedsShown ? `\nand ${feeds.length - feedsShown} more; --json has all of them` : "";
  return `${toTable(["list", "costs more than it needs, or is not read"], rows, colours)}${more}`;
}

function tellSinks(sinks: readonly SinkState[], colours: boolean): string {
  const rows = sinks.map(({ sink, waiting, oldestMs, failed, dropped }) => [
    sink,
    `${waiting}`,
    oldestMs === undefined ? "" : showInstant(oldestMs),
    `${failed}`,
    `${dropped}`,
  ]);
  return toTable(["sink", "waiting", "the first since", "failed", "dropped"], rows, colours);
}

function showPresence({ schedulers, workers }: Presence): string {
  return `${schedulers} with the role scheduler, ${workers} with the role worker`;
}
