// `syncline feed tail` and `syncline feed export`: what Syncline has seen in a list of a service. Called by program.ts. Reads Redis, and the
// service only with --live; nobody's reading of a feed begins or changes by it.
import { Argument, Command, InvalidArgumentError, Option } from "commander";
import { systemClock } from "../core/clock.ts";
import { UsageError } from "../core/errors.ts";
import { type ListName, listNames } from "../core/list-name.ts";
import { ServiceError } from "../service/client.ts";
import { FeedBook } from "../store/feed-book.ts";
import { openStore } from "../store/redis.ts";
import type { SeenItem } from "../store/seen-item.ts";
import type { Feed } from "../tasks/feed.ts";
import type { ConnectService } from "./api.ts";
import { explainServiceError } from "./api-error.ts";
import type { CommandIo } from "./command-io.ts";
import { type ExportFormat, exportFacts, exportFormats, exportLive } from "./feed-export.ts";
import { toFactLine, toFactRow } from "./feed-rows.ts";
import { countArgument, prefixOption, type RedisOptions, redisOption, redisTarget } from "./shared-options.ts";

interface TailFlags extends RedisOptions {
  readonly repository?: string;
  readonly limit: number;
  readonly follow?: true;
  readonly json?: true;
}

interface ExportFlags extends RedisOptions {
  readonly repository?: string;
  readonly limit: number;
  readonly format: ExportFormat;
  readonly live?: true;
  readonly config?: string;
}

const lookEveryMs = 1_000;
const itemsMax = 10_000_000;

const tailExamples = `
Examples:
  $ syncline feed tail main activities --repository HR
  $ syncline feed tail main conflictDetails --repository HR --follow --json | jq .label

Items stand in the order of their discovery. A list is read while a run or a poll waits for it, and not because of this command.
The latest 100,000 items of a feed are kept, as facts that the mapping gave.`;

const exportExamples = `
Examples:
  $ syncline feed export main activities --repository HR --format csv > activities.csv
  $ syncline feed export main conflictDetails --repository HR --live --config policies.yaml > conflicts.jsonl

Without --live: the facts in Redis, at most the latest 100,000. With --live: every field of every item, read from the service now.`;

/** Makes the command with its two subcommands. */
export function feedCommand(io: CommandIo, connect: ConnectService): Command {
  const tail = new Command("tail")
    .description("print the items that were discovered last")
    .addOption(redisOption())
    .addOption(prefixOption())
    .option("-n, --limit <count>", "how many", countArgument(100_000), 20)
    .option("-f, --follow", "go on with what is discovered from now on, until stopped")
    .option("--json", "print one JSON object a line")
    .addHelpText("after", tailExamples)
    .action((service: string, list: ListName, flags: TailFlags) =>
      inBook(flags, io, (book) => tailFeed(book, { feed: feedOf(service, list, flags), flags, io })),
    );
  const exporting = new Command("export")
    .description("print all items of a list")
    .addOption(redisOption())
    .addOption(prefixOption())
    .addOption(
      new Option("--format <form>", "jsonl: one JSON object a line; csv: for spreadsheets")
        .choices([...exportFormats])
        .default("jsonl"),
    )
    .option("-n, --limit <count>", "how many at most", countArgument(itemsMax), itemsMax)
    .option("--live", "read the service's list now instead of what Redis holds")
    .addOption(
      new Option("-c, --config <path>", "with --live: policy file or folder that names the service").env(
        "SYNCLINE_CONFIG",
      ),
    )
    .addHelpText("after", exportExamples)
    .action((service: string, list: ListName, flags: ExportFlags) =>
      flags.live
        ? exportFromService(connect, { feed: feedOf(service, list, flags), flags, io })
        : inBook(flags, io, (book) => exportFromBook(book, { feed: feedOf(service, list, flags), flags, io })),
    );
  const command = new Command("feed").description("what was seen in a list of a service: tail, export");
  for (const one of [tail, exporting]) {
    one
      .addArgument(new Argument("<service>", "name of the service"))
      .addArgument(new Argument("<list>", listNames.join(", ")).argParser(listArgument))
      .option("--repository <key>", "destination repository; the service's default unless given");
    command.addCommand(one);
  }
  return command;
}

interface Job<Flags> {
  readonly feed: Feed;
  readonly flags: Flags;
  readonly io: CommandIo;
}

async function tailFeed(book: FeedBook, { feed, flags, io }: Job<TailFlags>): Promise<void> {
  const show = (items: readonly SeenItem[]) => {
    for (const item of items) io.out(flags.json ? JSON.stringify(toFactRow(item)) : toFactLine(item));
  };
  const known = await book.discoveredSince(feed, 0);
  if (known.length === 0) await explainNothing(book, feed, io);
  show(known.slice(-flags.limit));
  if (!flags.follow) return;
  let last = known.at(-1)?.firstSeq ?? 0;
  while (!io.signal.aborted) {
    await systemClock.sleep(lookEveryMs, io.signal);
    if (io.signal.aborted) break;
    const { seq } = await book.status(feed);
    // Redis lost what it held: all that comes now is new.
    if (seq < last) last = 0;
    const fresh = await book.discoveredSince(feed, last);
    show(fresh);
    last = fresh.at(-1)?.firstSeq ?? last;
    await io.taken?.();
  }
}

async function exportFromBook(book: FeedBook, { feed, flags, io }: Job<ExportFlags>): Promise<void> {
  const known = await book.discoveredSince(feed, 0);
  if (known.length === 0) await explainNothing(book, feed, io);
  await exportFacts(known.slice(-flags.limit), flags, io);
}

async function exportFromService(connect: ConnectService, { feed, flags, io }: Job<ExportFlags>): Promise<void> {
  if (flags.config === undefined)
    throw new UsageError("--live needs --config PATH: the policy file that names the service");
  const service = await connect({ config: flags.config, service: feed.service });
  try {
    await exportLive({ service, list: feed.list, repository: feed.repository ?? undefined }, flags, io);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    if (error.kind === "cancelled" && io.signal.aborted) return;
    const { lines, exitCode } = explainServiceError(error);
    for (const line of lines) io.err(line);
    io.exitCode = exitCode;
  } finally {
    service.close();
  }
}

async function inBook(flags: RedisOptions, io: CommandIo, use: (book: FeedBook) => Promise<void>): Promise<void> {
  const store = await openStore(redisTarget(flags, io));
  try {
    await use(new FeedBook(store));
  } finally {
    await store.close();
  }
}

async function explainNothing(book: FeedBook, feed: Feed, io: CommandIo): Promise<void> {
  const { walks, failure } = await book.status(feed);
  const where = `${feed.list} of ${feed.service}, ${feed.repository === null ? "its default repository" : `repository ${feed.repository}`}`;
  if (walks > 0) io.err(`${where}: was read, and nothing stood in it`);
  else if (failure !== undefined) io.err(`${where}: could not be read yet: ${failure}`);
  else io.err(`${where}: not read yet; it is read while a run or a poll waits for it (is --repository right?)`);
}

function feedOf(service: string, list: ListName, { repository }: { readonly repository?: string }): Feed {
  return { service, repository: repository ?? null, list };
}

function listArgument(text: string): ListName {
  const list = listNames.find((known) => known.toLowerCase() === text.toLowerCase());
  if (list === undefined) throw new InvalidArgumentError(`the lists are ${listNames.join(", ")}`);
  return list;
}
