// `syncline feed tail` and `syncline feed export`: what Syncline has seen in a list of a service.
// Reads Redis, and the service only with --live; changes no walk of a feed.
import { Argument, Command, Option } from "commander";
import { systemClock } from "../core/clock.ts";
import { csvLine } from "../core/csv.ts";
import { UsageError } from "../core/errors.ts";
import { showInstant } from "../core/instant.ts";
import { defined, type JsonObject } from "../core/json.ts";
import { someNames } from "../core/plain-text.ts";
import { operationOf } from "../feeds/service-list.ts";
import { type Feed, type ListName, listNames } from "../model/feed.ts";
import { findRunningSet } from "../queries/policy-set.ts";
import { ServiceError, type SyncService } from "../service/client.ts";
import type { SeenItem } from "../store/feed-mirror.ts";
import { FeedStore } from "../store/feed-store.ts";
import { type CommandIo, readerGone } from "./command-io.ts";
import { connectTo, withService } from "./service-call.ts";
import {
  countArgument,
  findService,
  listArgument,
  optionalConfigOption,
  type RedisOptions,
  redisCommand,
  redisTarget,
  refuseIgnoredOptions,
  serviceOption,
  withStore,
} from "./shared-options.ts";
import { oneLine, safeJson } from "./table.ts";

const factColumns = ["firstSeen", "id", "syncJobId", "startedAt", "finished", "succeeded", "label"] as const;

const columnsMax = 200;
const linesAtOnce = 1_000;
const readEveryMs = 1_000;
const itemsMax = 10_000_000;
/** Repositories of a service that are looked at for one whose list was read. */
const repositoriesMax = 100;

interface FeedFlags extends RedisOptions {
  readonly service?: string;
  readonly repository?: string;
  readonly limit: number;
}

interface TailFlags extends FeedFlags {
  readonly follow?: true;
}

interface ExportFlags extends FeedFlags {
  readonly format: "jsonl" | "csv";
  readonly live?: true;
  readonly config?: string;
}

const tailExamples = `
Examples:
  $ syncline feed tail activities --repository HR
  $ syncline feed tail conflictDetails --service main --repository HR --follow --json | jq .label

Items stand in the order of their discovery. A list is read while a run or a poll waits for it, and not because of this command.
The latest 100,000 items of a feed are kept, as facts that the mapping gave.`;

const exportExamples = `
Examples:
  $ syncline feed export activities --repository HR --format csv > activities.csv
  $ syncline feed export conflictDetails --repository HR --live --config policies.yaml > conflicts.jsonl

Without --live: the facts in Redis, at most the latest 100,000. With --live: every field of every item, read from the service now.`;

/** The command with its two subcommands. */
export function feedCommand(io: CommandIo): Command {
  const tail = redisCommand("tail")
    .description("print the items that were discovered last")
    .option("-n, --limit <count>", "how many", countArgument(100_000), 20)
    .option("-f, --follow", "continue with newly discovered items, until stopped")
    .option("--json", "print one JSON object a line")
    .addHelpText("after", tailExamples)
    .action((list: ListName, flags: TailFlags) =>
      withFeeds(list, flags, io, (feeds, feed) => tailFeed(feeds, feed, flags, io)),
    );
  const exporting = redisCommand("export")
    .description("print all items of a list")
    .addOption(
      new Option("--format <form>", "jsonl: one JSON object a line; csv: for spreadsheets")
        .choices(["jsonl", "csv"])
        .default("jsonl"),
    )
    .option("-n, --limit <count>", "how many at most", countArgument(itemsMax), itemsMax)
    .option("--live", "read the service's list now instead of what Redis holds")
    .addOption(optionalConfigOption("with --live: policy file or folder that names the service"))
    .addHelpText("after", exportExamples)
    .action((list: ListName, flags: ExportFlags, chosen: Command) => {
      if (flags.live) return exportLive(list, flags, io);
      refuseIgnoredOptions(chosen, ["config"], "without --live");
      return withFeeds(list, flags, io, (feeds, feed) => exportFacts(feeds, feed, flags, io));
    });
  const command = new Command("feed");
  for (const one of [tail, exporting]) {
    one
      .addArgument(new Argument("<list>", listNames.join(", ")).argParser(listArgument))
      .addOption(serviceOption())
      .option("--repository <key>", "destination repository (default: the service chooses)");
    command.addCommand(one);
  }
  return command;
}

async function tailFeed(feeds: FeedStore, feed: Feed, flags: TailFlags, io: CommandIo): Promise<void> {
  const show = (items: readonly SeenItem[]) => {
    for (const item of items) io.out(flags.json ? safeJson(toFactRow(item)) : toFactLine(item));
  };
  const known = await feeds.discoveredSince(feed, 0);
  if (known.length === 0) await explainNothing(feeds, feed, io);
  show(known.slice(-flags.limit));
  if (!flags.follow) return;
  let last = known.at(-1)?.firstSeq ?? 0;
  while (!io.signal.aborted) {
    await systemClock.sleep(readEveryMs, io.signal);
    if (io.signal.aborted) break;
    const { seq } = await feeds.status(feed);
    // Redis lost its data: every item from now on is new.
    if (seq < last) last = 0;
    const fresh = await feeds.discoveredSince(feed, last);
    show(fresh);
    last = fresh.at(-1)?.firstSeq ?? last;
    await io.taken?.();
  }
}

async function exportFacts(feeds: FeedStore, feed: Feed, flags: ExportFlags, io: CommandIo): Promise<void> {
  const known = await feeds.discoveredSince(feed, 0);
  if (known.length === 0) await explainNothing(feeds, feed, io);
  const isCsv = flags.format === "csv";
  if (isCsv) io.out(csvLine(factColumns));
  for (const [index, item] of known.slice(-flags.limit).entries()) {
    if (io.signal.aborted) break;
    const row = toFactRow(item);
    io.out(isCsv ? csvLine(factColumns.map((column) => row[column])) : safeJson(row));
    if (index % linesAtOnce === linesAtOnce - 1) await io.taken?.();
  }
  tellStopped(io);
}

function tellStopped(io: CommandIo): void {
  if (!io.signal.aborted || io.signal.reason === readerGone) return;
  io.err("stopped before its end: the export is not whole");
  io.exitCode = 1;
}

/** Writes the items as the service sends them. What was read before a failure has been written. */
async function exportLive(list: ListName, flags: ExportFlags, io: CommandIo): Promise<void> {
  if (flags.config === undefined)
    throw new UsageError("--live needs --config PATH: the policy file that names the service");
  const { client } = await connectTo(flags.config, flags.service, io);
  await withService(client, io, async (service) => {
    try {
      await writePages(service, list, flags, io);
    } catch (error) {
      if (!(error instanceof ServiceError && error.kind === "cancelled" && io.signal.aborted)) throw error;
    }
    tellStopped(io);
  });
}

/** Runs `use` with the feed that the user means; one never read must be of a known service. */
async function withFeeds(
  list: ListName,
  flags: FeedFlags,
  io: CommandIo,
  use: (feeds: FeedStore, feed: Feed) => Promise<void>,
): Promise<void> {
  await withStore(redisTarget(flags, io), async (store) => {
    const feeds = new FeedStore(store);
    const isRead = async (feed: Feed) => (await feeds.status(feed)).walks > 0;
    const { service: wanted, repository = null } = flags;
    if (wanted !== undefined && (await isRead({ service: wanted, repository, list })))
      return use(feeds, { service: wanted, repository, list });
    const running = await findRunningSet(store);
    const service = running === undefined ? wanted : findService(running.set, wanted).name;
    if (service === undefined) throw new UsageError("say which service: --service NAME");
    const feed = { service, repository, list };
    if (flags.repository !== undefined || (await isRead(feed))) return use(feeds, feed);
    const used = running?.set.policies.filter((policy) => policy.service === service) ?? [];
    const repositories = [...new Set(used.flatMap((policy) => policy.repository ?? []))].slice(0, repositoriesMax);
    const read: string[] = [];
    for (const one of repositories) if (await isRead({ ...feed, repository: one })) read.push(one);
    const [only, ...others] = read;
    if (others.length > 0)
      throw new UsageError(`say which repository: --repository NAME; ${list} was read of ${someNames(read)}`);
    if (only !== undefined) io.err(`${list} of repository ${only}, the only one that was read:`);
    return use(feeds, { ...feed, repository: only ?? null });
  });
}

async function explainNothing(feeds: FeedStore, feed: Feed, io: CommandIo): Promise<void> {
  const { walks, failure } = await feeds.status(feed);
  const where = `${feed.list} of ${feed.service}, ${feed.repository === null ? "its default repository" : `repository ${feed.repository}`}`;
  if (walks > 0) io.err(`${where}: was read, and nothing stood in it`);
  else if (failure !== undefined) io.err(`${where}: could not be read yet: ${failure}`);
  else
    io.err(
      `${where}: not read yet; it is read while a run or a poll waits for it (are the service and --repository right?)`,
    );
}

/** The columns of a CSV are the fields of the first page. */
async function writePages(service: SyncService, list: ListName, flags: ExportFlags, io: CommandIo): Promise<void> {
  const { format, limit, repository } = flags;
  let columns: readonly string[] | undefined;
  let written = 0;
  let left = 0;
  const query = defined({ repository });
  for await (const page of service.pages(operationOf[list], query, { signal: io.signal, pagesMax: 100_000 })) {
    if (format === "csv" && columns === undefined) {
      columns = [...new Set(page.items.flatMap((item) => Object.keys(item)))].slice(0, columnsMax);
      if (columns.length > 0) io.out(csvLine(columns));
      else if (page.nextLink !== undefined) columns = undefined;
    }
    for (const item of page.items) {
      if (written >= limit) break;
      io.out(columns === undefined ? safeJson(item) : csvLine(cellsOf(item, columns)));
      left += columns === undefined ? 0 : fieldsBeside(item, columns);
      written += 1;
    }
    await io.taken?.();
    if (written >= limit || io.signal.aborted) break;
  }
  if (left > 0)
    io.err(
      `note: ${left} values of fields that the first page does not have are left out; --format jsonl has them all`,
    );
}

function cellsOf(item: JsonObject, columns: readonly string[]): unknown[] {
  return columns.map((name) => (Object.hasOwn(item, name) ? item[name] : undefined));
}

function fieldsBeside(item: JsonObject, columns: readonly string[]): number {
  return Object.keys(item).filter((name) => !columns.includes(name)).length;
}

/** An item's facts by column; null where not known. Instants as ISO 8601 in UTC. */
function toFactRow(item: SeenItem): Readonly<Record<(typeof factColumns)[number], string | boolean | null>> {
  const instant = (ms: number | undefined) =>
    ms === undefined || Number.isNaN(new Date(ms).getTime()) ? null : new Date(ms).toISOString();
  return {
    firstSeen: instant(item.seenAtMs),
    id: item.id,
    syncJobId: item.syncJobId ?? null,
    startedAt: instant(item.startedAtMs),
    finished: item.finished ?? null,
    succeeded: item.succeeded ?? null,
    label: item.label ?? null,
  };
}

/** One line for people: when the item was discovered, what it is, its sync job, and its state. */
function toFactLine(item: SeenItem): string {
  const { id, syncJobId, label, seenAtMs } = item;
  const parts = [
    seenAtMs === undefined ? "-".padEnd(20) : showInstant(seenAtMs),
    id,
    syncJobId === undefined ? "" : `sync job ${syncJobId}`,
    stateOf(item),
    label ?? "",
  ];
  return oneLine(parts.filter((part) => part !== "").join("  "));
}

function stateOf({ finished, succeeded }: SeenItem): string {
  if (finished === undefined) return "";
  if (!finished) return "open";
  return succeeded === undefined ? "finished" : succeeded ? "succeeded" : "failed";
}
