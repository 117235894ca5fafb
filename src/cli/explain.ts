// `syncline explain POLICY [TIME]`: why it ran then, why it did not, or why later.
import { Command } from "commander";
import type { Policy } from "../config/policy-set.ts";
import { UsageError } from "../core/errors.ts";
import { silentLog } from "../core/event-log.ts";
import { Producer } from "../queue/producer.ts";
import { parseWallTime } from "../schedule/local-time.ts";
import { type AskedTime, slotsAround, slotsUpTo } from "../schedule/slots-around.ts";
import { ChainBook } from "../store/chain-book.ts";
import { readGateStatus } from "../store/gate-status.ts";
import { History } from "../store/history.ts";
import { Leases } from "../store/leases.ts";
import { Pauses } from "../store/pauses.ts";
import { openStore, redisTimeMs } from "../store/redis.ts";
import { SlotLedger } from "../store/slot-ledger.ts";
import { StartJournal } from "../store/start-journal.ts";
import type { CommandIo } from "./command-io.ts";
import { storyText } from "./explain-text.ts";
import {
  configOption,
  findPolicy,
  loadPoliciesOrThrow,
  parseInstant,
  prefixOption,
  type RedisOptions,
  redisOption,
  redisTarget,
} from "./shared-options.ts";
import { tellStory } from "./slot-story.ts";

interface ExplainOptions extends RedisOptions {
  readonly config: string;
  readonly json?: true;
}

const help = `
TIME is an instant (2026-12-01T01:30:00Z) or a time on the wall in the policy's zone (2026-12-01T02:30); without it, the newest
slot. Tells what became of the slot at that time, of its tasks, and what they wait for; or why there is no slot at that time.

Examples:
  $ syncline explain contracts-nightly --config policies/
  $ syncline explain contracts-nightly 2027-03-28T02:30 --config policies/`;

/** Makes the command. */
export function explainCommand(io: CommandIo): Command {
  return new Command("explain")
    .description("why a policy ran at a time, why it did not, or why later")
    .argument("<policy>", "its name")
    .argument("[time]", "an instant, or a time on the wall in its zone")
    .addOption(configOption())
    .addOption(redisOption())
    .addOption(prefixOption())
    .option("--json", "print JSON")
    .addHelpText("after", help)
    .action(async (name: string, time: string | undefined, options: ExplainOptions) => {
      const redis = redisTarget(options, io);
      const policy = findPolicy(await loadPoliciesOrThrow(options.config, io), name);
      if (policy.schedule === undefined && policy.after === undefined)
        throw new UsageError(`${name} has no schedule: it runs by hand only; see syncline history ${name}`);
      const asked = time === undefined ? undefined : askedTime(time, policy);
      const store = await openStore(redis);
      const producer = new Producer(redis, silentLog);
      try {
        const nowMs = await redisTimeMs(store);
        const around = asked === undefined ? slotsUpTo(policy, nowMs) : slotsAround(policy, asked);
        const places = {
          history: new History(store),
          journal: new StartJournal(store),
          ledger: new SlotLedger(store),
          leases: new Leases(store),
          pauses: new Pauses(store),
          chains: new ChainBook(store),
          gate: (service: string) => readGateStatus(store, service),
          producer,
        };
        const story = await tellStory(policy, { asked: time ?? null, around, nowMs }, places);
        io.out(options.json ? JSON.stringify(story) : storyText(story, policy.closed.timezone));
      } finally {
        await producer.close();
        await store.close();
      }
    });
}

function askedTime(text: string, policy: Policy): AskedTime {
  const widthMs = /\d{2}:\d{2}:\d{2}/.test(text) ? 1_000 : 60_000;
  const instantMs = parseInstant(text);
  if (instantMs !== undefined) {
    const startMs = Math.floor(instantMs / 1_000) * 1_000;
    return { text, widthMs, instants: [startMs], nearMs: startMs };
  }
  const wall = parseWallTime(text, policy.closed.timezone);
  if (wall !== undefined) return { text, widthMs, ...wall };
  throw new UsageError(
    `${text} is no time: write 2026-12-01T01:30:00Z, or 2026-12-01T02:30 for ${policy.closed.timezone}`,
  );
}
