// `syncline digest`: prints a digest as it would be sent now, or sends it by hand.
import { randomUUID } from "node:crypto";
import type { Command } from "commander";
import type { DigestSettings, PolicySet } from "../config/policy-set.ts";
import { UsageError } from "../core/errors.ts";
import { silentLog } from "../core/event-log.ts";
import { counted } from "../core/plain-text.ts";
import { selectorOf } from "../model/label.ts";
import { withContext } from "../notify/notices.ts";
import { type Digest, digestNotice, readDigest } from "../queries/digest.ts";
import { NoticeQueues } from "../queue/notice-queues.ts";
import { redisTimeMs } from "../store/redis.ts";
import type { CommandIo } from "./command-io.ts";
import {
  choosePolicies,
  findNamed,
  findSink,
  labelOption,
  redisCommand,
  redisTarget,
  refuseIgnoredOptions,
  type SetOptions,
  withPolicies,
} from "./shared-options.ts";
import { oneLine } from "./table.ts";
import { parsePast, timeForms, timezoneFor, timezoneOption } from "./time-argument.ts";

interface DigestOptions extends SetOptions {
  readonly since: string;
  readonly label: readonly string[];
  readonly by?: string;
  readonly to?: string;
  readonly timezone?: string;
}

const help = `
NAME is a digest of the policy files (notifications.digests): its label, its \`by\`, its zone. Without it: all policies.
With --to the digest goes into the queue of that sink, for a worker to deliver; the daily ones stay as they are.
Times: ${timeForms}.

Examples:
  $ syncline digest
  $ syncline digest --label team=hr --since 7d
  $ syncline digest morning --to ops`;

/** The command `digest`. */
export function digestCommand(io: CommandIo): Command {
  return redisCommand("digest", "set")
    .argument("[name]", "a digest of the policy files")
    .option("--since <time>", "the first day that counts; yesterday at the latest", "yesterday")
    .addOption(timezoneOption())
    .addOption(labelOption())
    .option("--by <label>", "one line for each value of this label")
    .option("--to <sink>", "send it to this sink, too")
    .option("--json", "print JSON")
    .addHelpText("after", help)
    .action((name: string | undefined, options: DigestOptions, chosen: Command) => {
      if (name !== undefined) refuseIgnoredOptions(chosen, ["label", "by", "timezone"], "with the name of a digest");
      return withPolicies(options, io, async ({ set, store, target }) => {
        const nowMs = await redisTimeMs(store);
        const asked =
          name === undefined ? unnamed(set, options) : findNamed("digest", name, set.notifications.digests ?? []);
        const { fromMs } = parsePast({ since: options.since }, { nowMs, timezone: asked.timezone });
        const digest = await readDigest({ set, store, target }, { ...asked, sinceMs: fromMs, nowMs });
        const { title, detail, lines } = digest;
        if (options.json) io.out(JSON.stringify({ v: 1, ...digest }));
        else io.out([title, detail, "", ...lines.map((line) => `- ${oneLine(line)}`)].join("\n"));
        if (options.to !== undefined) await send(options.to, { asked, digest, nowMs }, { set, options, io });
      });
    });
}

type DigestChoice = Pick<DigestSettings, "name" | "timezone" | "label" | "by">;

/** A digest of all policies, or of a label. @throws UsageError for a label that no policy has. */
function unnamed(set: PolicySet, { label, by, timezone }: DigestOptions): DigestChoice {
  const policies = choosePolicies(set, { label });
  const zone = timezoneFor(timezone, policies);
  return { name: "by hand", timezone: zone, label: selectorOf(label), ...(by === undefined ? {} : { by }) };
}

async function send(
  sink: string,
  { asked, digest, nowMs }: { readonly asked: DigestChoice; readonly digest: Digest; readonly nowMs: number },
  { set, options, io }: { readonly set: PolicySet; readonly options: DigestOptions; readonly io: CommandIo },
): Promise<void> {
  const { queueMax } = findSink(set, sink);
  const notice = withContext(digestNotice(digest, { ...asked, key: randomUUID(), nowMs, dueMs: undefined }), set);
  await using queues = new NoticeQueues(redisTarget(options, io), silentLog);
  const left = await queues.add(sink, [notice], queueMax);
  if (left.length > 0)
    throw new UsageError(`the queue of ${sink} is full: ${counted(queueMax, "notice waits", "notices wait")}`);
  io.err(`queued for ${sink}: \`syncline sinks\` shows what waits`);
}
