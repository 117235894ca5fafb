// `syncline failed list | replay | discard`: tasks that ended badly and notices that a sink did not take, and what to do with them.
import { Command, InvalidArgumentError, Option } from "commander";
import { UsageError } from "../core/errors.ts";
import { silentLog } from "../core/event-log.ts";
import { NoticeQueues } from "../queue/notice-queues.ts";
import { Producer } from "../queue/producer.ts";
import { openStore, type Store } from "../store/redis.ts";
import { SinkBook } from "../store/sink-book.ts";
import { reasonCharactersMax } from "../tasks/change.ts";
import type { CommandIo } from "./command-io.ts";
import { type ActionResult, discard, replay } from "./failed-actions.ts";
import { describeFailed, type FailedItem, readFailed, selectFailed } from "./failed-items.ts";
import { recordChange } from "./record-change.ts";
import {
  countArgument,
  loadPoliciesOrThrow,
  prefixOption,
  type RedisOptions,
  redisOption,
  redisTarget,
} from "./shared-options.ts";
import { showInstant, showStatus, toTable } from "./table.ts";

interface ListOptions extends RedisOptions {
  readonly policy?: string;
  readonly sink?: string;
  readonly mended?: true;
  readonly limit: number;
  readonly json?: true;
}

interface ActionOptions extends RedisOptions {
  readonly policy?: string;
  readonly sink?: string;
  readonly all?: true;
  readonly reason: string;
  readonly mended?: true;
  readonly force?: true;
  readonly yes?: true;
  readonly config?: string;
  readonly json?: true;
}

const recordedMax = 100;

const help = `
Failed tasks are outcomes of the history: failed, not-started, missed, timed-out, unknown. Deliveries are notices that a sink refused or
that were tried for too long. Both stay until somebody deals with them, or they grow too old (docs/sinks.md).

Examples:
  $ syncline failed list
  $ syncline failed replay contracts-nightly__run__42__1795228200 --config policies/ --reason "disk was full"
  $ syncline failed replay --sink ops --reason "receiver is back" --yes
  $ syncline failed discard --policy old-policy --reason "retired" --yes`;

/** Makes the command. */
export function failedCommand(io: CommandIo): Command {
  const list = new Command("list")
    .description("what failed, the newest first; --policy and --sink show their own")
    .option("--policy <name>", "tasks of this policy")
    .option("--sink <name>", "notices for this sink")
    .option("--mended", "also tasks whose policy has ended well for the same sync job since")
    .option("-n, --limit <count>", "how many", countArgument(30_000), 50)
    .action((options: ListOptions) => inHouse(options, io, (house) => showList(house, options, io)));
  const actions = [
    action("replay", "do it over: tasks by new tasks by hand, notices as they are", io)
      .addOption(new Option("-c, --config <path>", "policy file or folder; needed for tasks").env("SYNCLINE_CONFIG"))
      .option("--force", "also tasks that may be at work still (unknown, timed-out): they may start twice"),
    action("discard", "take it off the list; outcomes stay in the history", io),
  ];
  const failed = new Command("failed").description("tasks and notices that failed").addHelpText("after", help);
  for (const command of [list, ...actions]) {
    failed.addCommand(command.addOption(redisOption()).addOption(prefixOption()).option("--json", "print JSON"));
  }
  return failed;
}

function action(name: "replay" | "discard", description: string, io: CommandIo): Command {
  return new Command(name)
    .description(description)
    .argument("[ids...]", "of tasks and notices, as the list shows them")
    .option("--policy <name>", "all tasks of this policy; with --sink, its notices there")
    .option("--sink <name>", "all notices for this sink")
    .option("--all", "everything on the list")
    .option("--mended", "of a group also tasks whose policy has ended well for the same sync job since")
    .requiredOption("--reason <text>", "why; stands in the record of changes", reasonArgument)
    .option("--yes", "needed where a group is named in place of ids")
    .action((ids: string[], options: ActionOptions) =>
      inHouse(options, io, (house) => act(name, { house, ids, options, io })),
    );
}

interface House {
  readonly store: Store;
  readonly queues: NoticeQueues;
  readonly producer: Producer;
}

async function inHouse(options: RedisOptions, io: CommandIo, use: (house: House) => Promise<void>): Promise<void> {
  const target = redisTarget(options, io);
  const store = await openStore(target);
  const queues = new NoticeQueues(target, silentLog);
  const producer = new Producer(target, silentLog);
  try {
    await use({ store, queues, producer });
  } finally {
    await Promise.all([queues.close(), producer.close()]);
    await store.close();
  }
}

async function showList({ store, queues }: House, options: ListOptions, io: CommandIo): Promise<void> {
  const { policy, sink, mended, limit } = options;
  const all = await readFailed(store, queues);
  const group = policy === undefined && sink === undefined ? { all: true as const } : { policy, sink };
  const { meant: shown } = selectFailed(all, { ids: [], ...group, mended });
  if (options.json) return io.out(JSON.stringify(shown.slice(0, limit)));
  if (shown.length === 0) io.err("nothing failed that nobody has dealt with");
  else io.out(failedTable(shown.slice(0, limit), io.colours));
  if (shown.length > limit) io.err(`and ${shown.length - limit} more: --limit`);
  for (const { name, dropped } of await new SinkBook(store).all())
    if (dropped > 0) io.err(`${dropped} notices for ${name} were dropped: its queue was full`);
}

function failedTable(items: readonly FailedItem[], colours: boolean): string {
  const rows = items.map((item) =>
    item.type === "task"
      ? [
          showInstant(Date.parse(item.outcome.finishedAt)),
          showStatus(item.outcome.status, colours),
          item.id,
          item.outcome.detail.slice(0, 100),
        ]
      : [
          showInstant(item.failedAtMs),
          `not told: ${item.sink}`,
          item.id,
          `${item.reason}; ${item.notice.title}`.slice(0, 100),
        ],
  );
  return toTable(["at", "what", "id", "why"], rows, colours);
}

interface Wish {
  readonly house: House;
  readonly ids: readonly string[];
  readonly options: ActionOptions;
  readonly io: CommandIo;
}

async function act(name: "replay" | "discard", { house, ids, options, io }: Wish): Promise<void> {
  const { policy, sink, all, mended, reason } = options;
  const items = await readFailed(house.store, house.queues);
  const { meant, absent } = selectFailed(items, { ids, policy, sink, all, mended });
  if (ids.length === 0 && options.yes !== true)
    throw new UsageError(
      `this would ${name} ${meant.length} of the failed list: look with \`failed list\`, then add --yes`,
    );
  const needsSet = name === "replay" && options.config !== undefined && meant.some(({ type }) => type === "task");
  const set = needsSet ? await loadPoliciesOrThrow(options.config ?? "", io) : undefined;
  const parts = { ...house, set, force: options.force === true };
  const results = name === "replay" ? await replay(meant, parts) : await discard(meant, parts);
  const done = results.filter(({ why }) => why === undefined);
  if (done.length > 0)
    await recordChange(house.store, io, {
      what: `failed ${name}`,
      subject: `${done.length} of the failed list`,
      reason,
      before: done.slice(0, recordedMax).map(({ item }) => describeFailed(item)),
      after: done
        .slice(0, recordedMax)
        .map(({ item, into }) => ({ id: item.id, ...(into === undefined ? {} : { into }) })),
    });
  tell(name, { results, absent, options, io });
}

interface Told {
  readonly results: readonly ActionResult[];
  readonly absent: readonly string[];
  readonly options: ActionOptions;
  readonly io: CommandIo;
}

function tell(name: string, { results, absent, options, io }: Told): void {
  const left = [
    ...results.flatMap(({ item, why }) => (why === undefined ? [] : [{ id: item.id, why }])),
    ...absent.map((id) => ({ id, why: "not on the failed list" })),
  ];
  const done = results.filter(({ why }) => why === undefined).map(({ item, into }) => ({ id: item.id, into }));
  if (options.json) io.out(JSON.stringify({ done, left }));
  else {
    io.out(`${done.length} ${name === "replay" ? "replayed" : "discarded"}`);
    for (const into of new Set(done.flatMap((one) => one.into ?? []))) io.out(`  ${into}`);
    for (const { id, why } of left) io.err(`${id}: ${why}`);
  }
  if (left.length > 0) io.exitCode = 1;
  else if (done.length === 0) io.err("nothing on the failed list fits");
}

function reasonArgument(text: string): string {
  if (text.trim() === "" || text.length > reasonCharactersMax)
    throw new InvalidArgumentError(`write 1 to ${reasonCharactersMax} characters`);
  return text;
}
