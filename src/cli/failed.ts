// `syncline failed list | replay | discard`: tasks that ended badly and notices that a sink did not
// take, and what to do with them.
import { Command } from "commander";
import { type ActionParts, type ActionResult, discard, replay } from "../actions/failed.ts";
import { UsageError } from "../core/errors.ts";
import { silentLog } from "../core/event-log.ts";
import { showInstant } from "../core/instant.ts";
import { counted, cutText, someNames } from "../core/plain-text.ts";
import { type FailedItem, type FailedList, readFailed, type Selection, selectFailed } from "../queries/failed.ts";
import { isSkippedBeside, taskWords } from "../queries/task-words.ts";
import { NoticeQueues } from "../queue/notice-queues.ts";
import { readTasksInFlight } from "../queue/tasks-in-flight.ts";
import { failedMax } from "../store/failed-tasks.ts";
import { History } from "../store/history.ts";
import { readPresence, type Store } from "../store/redis.ts";
import { SinkStore } from "../store/sink-store.ts";
import { byHand } from "./changes.ts";
import type { CommandIo, Screen } from "./command-io.ts";
import { checkKnownPolicy, reportReach } from "./history.ts";
import { tellBusy } from "./run-policy.ts";
import {
  choosePolicies,
  countArgument,
  labelOption,
  optionalConfigOption,
  policySetFor,
  type ReasonOption,
  type RedisOptions,
  reasonOption,
  redisCommand,
  redisTarget,
  withProducer,
  withStore,
} from "./shared-options.ts";
import { showStatus, toTable, wideOption } from "./table.ts";

interface GroupOptions extends RedisOptions {
  readonly names: readonly string[];
  readonly label: readonly string[];
  readonly sink?: string;
  readonly corrected?: true;
}

interface ListOptions extends GroupOptions {
  readonly limit: number;
  readonly ids?: true;
}

interface ActionOptions extends Omit<GroupOptions, "names">, ReasonOption {
  readonly policy?: string;
  readonly all?: true;
  readonly force?: true;
  readonly yes?: true;
  readonly config?: string;
}

const whyShownMax = 100;
/** Entries that were left, told one by one. */
const leftShownMax = 50;

const help = `
Failed tasks are outcomes of the history, as long as it keeps them: failed, not-started, missed, timed-out, unknown. Deliveries are notices that a sink refused or that were tried for too long. Both stay until they are replayed or discarded, or are too old (docs/notifications.md).

Examples:
  $ syncline failed list
  $ syncline failed list contracts-nightly --ids
  $ syncline failed replay contracts-nightly__run__42__1795228200 --reason "disk was full"
  $ syncline failed replay --sink ops --reason "receiver is back" --yes
  $ syncline failed discard --policy old-policy --reason "retired" --yes`;

/** The command `failed`. */
export function failedCommand(io: CommandIo): Command {
  const list = redisCommand("list")
    .description("what failed, the newest first (the default)")
    .argument("[policies...]", "only tasks of these policies; with --sink, its notices about them")
    .addOption(labelOption("tasks of the policies with this label; all of several must match"))
    .option("--sink <name>", "notices for this sink")
    .option("--corrected", "also tasks whose policy has ended well for the same sync job since")
    .option("-n, --limit <count>", "how many", countArgument(30_000), 50)
    .addOption(wideOption())
    .option("--ids", "show the ids, as replay and discard take them")
    .action((names: readonly string[], options: Omit<ListOptions, "names">) =>
      connect(options, io, (connections) => showList(connections, { ...options, names }, io)),
    );
  const actions = [
    actionCommand("replay", io)
      .description("do it over: tasks by new tasks by hand, notices as they are")
      .addOption(optionalConfigOption("policy file or folder, in place of the policies that run"))
      .option("--force", "also tasks that may be at work still (unknown, timed-out): they may start twice"),
    actionCommand("discard", io).description("take it off the list; outcomes stay in the history"),
  ];
  const failed = new Command("failed").addHelpText("after", help);
  for (const command of [list, ...actions])
    failed.addCommand(command.option("--json", "print JSON"), { isDefault: command === list });
  return failed;
}

function actionCommand(name: "replay" | "discard", io: CommandIo): Command {
  return redisCommand(name)
    .argument("[ids...]", "of tasks and notices, as `failed list --ids` shows them")
    .option("--policy <name>", "all tasks of this policy; with --sink, its notices there")
    .addOption(labelOption("the same of the policies with this label; all of several must match"))
    .option("--sink <name>", "all notices for this sink")
    .option("--all", "everything on the list")
    .option("--corrected", "of a group also tasks whose policy has ended well for the same sync job since")
    .addOption(reasonOption())
    .option("--yes", "needed where a group is named in place of ids")
    .action((ids: string[], options: ActionOptions) =>
      connect(options, io, (connections) => act(name, connections, ids, options, io)),
    );
}

type Connections = Pick<ActionParts, "store" | "producer"> & { readonly queues: NoticeQueues };

async function connect(options: RedisOptions, io: CommandIo, use: (connections: Connections) => Promise<void>) {
  const target = redisTarget(options, io);
  await withStore(target, (store) =>
    withProducer(target, async (producer) => {
      await using queues = new NoticeQueues(target, silentLog);
      await use({ store, queues, producer });
    }),
  );
}

async function showList({ store, queues }: Connections, options: ListOptions, io: CommandIo): Promise<void> {
  const { sink, corrected, limit, ids } = options;
  const list = await readFailed(store, queues);
  const policies = await policiesOf(options, store, io);
  const group = policies === undefined && sink === undefined ? { all: true as const } : { policies, sink };
  const { meant } = selectFailed(list, { ids: [], ...group, corrected });
  const shown = meant.toSorted((a, b) => failedMsOf(b) - failedMsOf(a));
  const seen = new Set(meant.map((item) => (item.type === "task" ? item.outcome.policy : item.notice.policy)));
  await checkKnown(store, { ...options, names: options.names.filter((name) => !seen.has(name)) });
  if (options.json) io.out(JSON.stringify(shown.slice(0, limit)));
  else if (shown.length === 0) io.err(describeEmpty(list, { ...group, corrected }));
  else io.out(failedTable(shown.slice(0, limit), ids === true, io));
  if (shown.length > limit) io.err(`and ${shown.length - limit} more: --limit`);
  const read = list.items.flatMap((item) => (item.type === "task" ? [item.outcome] : []));
  const oldest = read.at(-1);
  const isCut = !list.isAll && oldest !== undefined;
  const fromMs = isCut ? Date.parse(oldest.finishedAt) : Number.NEGATIVE_INFINITY;
  if (sink === undefined) await reportReach(new History(store), { fromMs, isCut }, policies, io);
  for (const { name, dropped } of await new SinkStore(store).all())
    if (dropped > 0) io.err(`${dropped} notices for ${name} were dropped: its queue was full`);
}

function failedMsOf(item: FailedItem): number {
  return item.type === "task" ? Date.parse(item.outcome.finishedAt) : item.failedAtMs;
}

/** The names of the policies that are meant; undefined: all, also those that are gone. */
async function policiesOf({ names, label, ...options }: GroupOptions, store: Store, io: CommandIo) {
  const named = names.length === 0 ? undefined : new Set(names);
  if (label.length === 0) return named;
  const labelled = choosePolicies(await policySetFor(options, store, io), { label }).map(({ name }) => name);
  return named?.intersection(new Set(labelled)) ?? new Set(labelled);
}

/** @throws UsageError about a policy or sink that is not known here. */
async function checkKnown(store: Store, { names, sink }: GroupOptions): Promise<void> {
  for (const name of names) await checkKnownPolicy(name, store, ["list", "replay", "discard"]);
  const sinks = (await new SinkStore(store).all()).map(({ name }) => name);
  if (sink === undefined || sinks.includes(sink)) return;
  throw new UsageError(`no worker has had a sink ${sink} here; there is ${someNames(sinks) || "none"}`);
}

function failedTable(items: readonly FailedItem[], hasIds: boolean, screen: Screen): string {
  const rows = items.map((item) => {
    if (item.type === "delivery") {
      const { failedAtMs, sink, id, reason, notice } = item;
      return [
        showInstant(failedAtMs),
        `not delivered: ${sink}`,
        notice.policy ?? "",
        "",
        cutText(`${reason}; ${notice.title}`, whyShownMax),
        ...(hasIds ? [id] : []),
      ];
    }
    const { finishedAt, detail, policy, slot } = item.outcome;
    const status = showStatus(item.outcome, screen.colours);
    const task = taskWords({ ...item.outcome, slotMs: Date.parse(slot) }, undefined, Date.parse(finishedAt));
    const why = cutText(detail, whyShownMax);
    return [showInstant(Date.parse(finishedAt)), status, policy, task, why, ...(hasIds ? [item.id] : [])];
  });
  return toTable(["at", "what", "policy", "task", "why", ...(hasIds ? ["id"] : [])], rows, screen);
}

async function act(
  name: "replay" | "discard",
  connections: Connections,
  ids: readonly string[],
  options: ActionOptions,
  io: CommandIo,
): Promise<void> {
  const { policy, sink, all, corrected } = options;
  const group = { ...options, names: policy === undefined ? [] : [policy] };
  const list = await readFailed(connections.store, connections.queues, { ids });
  const policies = await policiesOf(group, connections.store, io);
  const { meant, absent, isAll } = selectFailed(list, { ids, policies, sink, all, corrected });
  if (ids.length === 0 && meant.length === 0) await checkKnown(connections.store, group);
  if (ids.length === 0 && meant.length > 0 && options.yes !== true)
    throw new UsageError(
      `this would ${name} ${meant.length} of the failed list: look with \`failed list\`, then add --yes`,
    );
  const { store } = connections;
  const needsSet = name === "replay" && meant.some(({ type }) => type === "task");
  const set = needsSet ? await policySetFor(options, store, io) : undefined;
  const parts = { ...connections, set, force: options.force === true, by: byHand(io, options), signal: io.signal };
  const wanted = new Set(meant.flatMap((item) => (item.type === "task" ? item.outcome.policy : [])));
  const before = await readTasksInFlight(store, [...(set?.services.keys() ?? [])], (name) => wanted.has(name));
  const results = name === "replay" ? await replay(meant, parts) : await discard(meant, parts);
  const done = results.filter(({ why }) => why === undefined);
  const isPolicy = (id: string) => list.items.some((item) => item.type === "task" && item.outcome.policy === id);
  const notListed = absent.map((id) => ({
    id,
    why: isPolicy(id)
      ? `this is a policy: write --policy ${id}`
      : "not on the failed list: `syncline failed list --ids` shows the ids",
  }));
  showResults(name, results, notListed, { json: options.json === true, io });
  const again = done.flatMap(({ item, into }) => (item.type === "task" && into !== undefined ? item.outcome : []));
  const skips = new Set(set?.policies.filter(isSkippedBeside).map(({ name }) => name));
  const isSkipped = again.some(({ policy }) => skips.has(policy));
  tellBusy(before.tasks, again, isSkipped, io);
  if (ids.length === 0 && results.length === 0) io.err(describeEmpty(list, { policies, sink, all, corrected }));
  if (!isAll) {
    io.err(`only the newest ${failedMax} failed tasks were looked at: name older ones by id, or discard these first`);
    io.exitCode = 1;
  }
  if (name === "replay" && done.length > 0 && (await readPresence(connections.store)).workers === 0)
    io.err("no worker is alive: what is queued starts when one does");
}

/** Why a group has nothing on the failed list: what ended well since is left out. */
function describeEmpty(list: FailedList, { corrected, ...group }: Omit<Selection, "ids">): string {
  if (corrected === true) return "nothing on the failed list fits";
  const { length } = selectFailed(list, { ids: [], ...group, corrected: true }).meant;
  if (length === 0) return "nothing on the failed list fits";
  return `nothing is left to mend: ${counted(length, "task")} failed, but the same sync job has ended well since; --corrected takes them, too`;
}

function showResults(
  name: string,
  results: readonly ActionResult[],
  notListed: readonly { readonly id: string; readonly why: string }[],
  { json, io }: { readonly json: boolean; readonly io: CommandIo },
): void {
  const left = [...results.flatMap(({ item, why }) => (why === undefined ? [] : [{ id: item.id, why }])), ...notListed];
  const done = results.filter(({ why }) => why === undefined).map(({ item, into }) => ({ id: item.id, into }));
  if (json) io.out(JSON.stringify({ v: 1, done, left }));
  else {
    io.out(`${done.length} ${name === "replay" ? "replayed" : "discarded"}`);
    for (const into of new Set(done.flatMap((one) => one.into ?? []))) io.out(`  ${into}`);
    for (const { id, why } of left.slice(0, leftShownMax)) io.err(`${id}: ${why}`);
    if (left.length > leftShownMax) io.err(`and ${left.length - leftShownMax} more were left as they are`);
  }
  if (left.length > 0) io.exitCode = 1;
}
