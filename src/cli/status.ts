// `syncline status`: which services are well, asked to be left alone or down, which policies are in quarantine, what waits for sinks, and who is alive.
import { Command } from "commander";
import { type GateStatus, readGateStatus } from "../store/gate-status.ts";
import { type Presence, readPresence } from "../store/presence.ts";
import { Quarantines } from "../store/quarantines.ts";
import { openStore, redisTimeMs } from "../store/redis.ts";
import { isInForce, type Pause } from "../tasks/pause.ts";
import type { CommandIo } from "./command-io.ts";
import { tellBreaker, tellThrottle } from "./service-words.ts";
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
  readonly services: readonly (GateStatus & { readonly service: string })[];
  readonly quarantined: readonly Pause[];
  readonly processes: Presence;
  readonly sinks: readonly SinkState[];
}

const help = `
Exit code 1 when a breaker is open, a service asked for patience, a policy is in quarantine, or a sink has taken nothing for 15 minutes.
A sink shows once a worker has had it.

Examples:
  $ syncline status --config policies/
  $ syncline status --config policies/ --json | jq '.services[] | select(.breaker == "open")'`;

/** Makes the command. */
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
          services.push({ service, ...(await readGateStatus(store, service)) });
        const quarantined = (await new Quarantines(store).all()).filter((one) => isInForce(one, nowMs));
        const sinks = await readSinkStates(set, { target, store });
        show({ nowMs, services, quarantined, sinks, processes: await readPresence(store) }, options, io);
      } finally {
        await store.close();
      }
    });
}

function show({ nowMs, services, quarantined, sinks, processes }: Status, options: StatusOptions, io: CommandIo): void {
  const isIll = services.some(({ breaker, throttledUntilMs }) => breaker === "open" || throttledUntilMs !== undefined);
  const hasStuck = sinks.some((sink) => isStuck(sink, nowMs));
  io.exitCode = isIll || hasStuck || quarantined.length > 0 ? 1 : 0;
  if (options.json) {
    io.out(JSON.stringify({ services, quarantined, sinks, processes }));
    return;
  }
  const lines = services.map((one) => [
    one.service,
    tellBreaker(one, nowMs),
    tellThrottle(one, nowMs),
    `${one.inFlight}`,
  ]);
  io.out(toTable(["service", "breaker", "asked for patience", "in flight"], lines, io.colours));
  io.out(`\nalive: ${showPresence(processes)}`);
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

function showPresence({ schedulers, workers, unnamed }: Presence): string {
  const older = unnamed === 0 ? "" : `, ${unnamed} of an older version`;
  return `${schedulers} with the role scheduler, ${workers} with the role worker${older}`;
}
