// `syncline feed tail` and `syncline feed export`: what Syncline has seen in a list of a service.
// Reads Redis, and the service only with --live; changes no walk of a feed. Called by program.ts.
import { Argument, Command, InvalidArgumentError, Option } from "commander";
import { systemClock } from "../core/clock.ts";
import { UsageError } from "../core/errors.ts";
import { isJsonObject } from "../core/json.ts";
import { type ListName, listNames } from "../core/list-name.ts";
import { operationOf } from "../feeds/service-list.ts";
import type { Feed } from "../model/feed.ts";
import { ServiceError, type SyncService } from "../service/client.ts";
import type { SeenItem } from "../store/feed-mirror.ts";
import { FeedStore } from "../store/feed-store.ts";
import { openStore } from "../store/redis.ts";
import type { ConnectService } from "./api.ts";
import { explainServiceError } from "./api-error.ts";
import type { CommandIo } from "./command-io.ts";
import {
  countArgument,
  prefixOption,
  type RedisOptions,
  redisOption,
  redisTarget,
  refuseIdle,
} from "./shared-options.ts";
import { showInstant } from "./table.ts";

/** The columns of an export of facts. */
const factColumns = ["firstSeen", "id", "syncJobId", "startedAt", "finished", "succeeded", "label"] as const;

/** The forms of an export. */
const exportFormats = ["jsonl", "csv"] as const;

const columnsMax = 200;

const linesAtOnce = 1_000;

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

/** The command with its two subcommands. */
export function feedCommand(io: CommandIo, connect: ConnectService): Command {
  const tail = new Command("tail")
    .description("print the items that were discovered last")
    .addOption(redisOption())
    .addOption(prefixOption())
    .option("-n, --limit <count>", "how many", countArgument(100_000), 20)
    .option("-f, --follow", "continue with newly discovered items, until stopped")
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
    .action((service: string, list: ListName, flags: ExportFlags, chosen: Command) => {
      if (!flags.live) refuseIdle(chosen, ["config"], "without --live");
      return flags.live
        ? exportFromService(connect, { feed: feedOf(service, list, flags), flags, io })
        : inBook(flags, io, (book) => exportFromBook(book, { feed: feedOf(service, list, flags), flags, io }));
    });
  const command = new Command("feed").description("what was seen in a list of a service: tail, export");
  for (const one of [tail, exporting]) {
    one
      .addArgument(new Argument("<service>", "name of the service"))
      .addArgument(new Argument("<list>", listNames.join(", ")).argParser(listArgument))
      .option("--repository <key>", "destination repository (default: the service chooses)");
    command.addCommand(one);
  }
  return command;
}

interface Job<Flags> {
  readonly feed: Feed;
  readonly flags: Flags;
  readonly io: CommandIo;
}

async function tailFeed(book: FeedStore, { feed, flags, io }: Job<TailFlags>): Promise<void> {
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
    // Redis lost its data: every item from now on is new.
    if (seq < last) last = 0;
    const fresh = await book.discoveredSince(feed, last);
    show(fresh);
    last = fresh.at(-1)?.firstSeq ?? last;
    await io.taken?.();
  }
}

async function exportFromBook(book: FeedStore, { feed, flags, io }: Job<ExportFlags>): Promise<void> {
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

async function inBook(flags: RedisOptions, io: CommandIo, use: (book: FeedStore) => Promise<void>): Promise<void> {
  const store = await openStore(redisTarget(flags, io));
  try {
    await use(new FeedStore(store));
  } finally {
    await store.close();
  }
}

async function explainNothing(book: FeedStore, feed: Feed, io: CommandIo): Promise<void> {
  const { walks, failure } = await book.status(feed);
  const where = `${feed.list} of ${feed.service}, ${feed.repository === null ? "its default repository" : `repository ${feed.repository}`}`;
  if (walks > 0) io.err(`${where}: was read, and nothing stood in it`);
  else if (failure !== undefined) io.err(`${where}: could not be read yet: ${failure}`);
  else
    io.err(
      `${where}: not read yet; it is read while a run or a poll waits for it (are the service and --repository right?)`,
    );
}

function feedOf(service: string, list: ListName, { repository }: { readonly repository?: string }): Feed {
  return { service, repository: repository ?? null, list };
}

function listArgument(text: string): ListName {
  const list = listNames.find((known) => known.toLowerCase() === text.toLowerCase());
  if (list === undefined) throw new InvalidArgumentError(`the lists are ${listNames.join(", ")}`);
  return list;
}

/** The format of an export. */
type ExportFormat = (typeof exportFormats)[number];

/** How much, and in which form. */
interface ExportOptions {
  readonly format: ExportFormat;
  readonly limit: number;
}

/** Writes facts, the oldest discovery first. */
async function exportFacts(items: readonly SeenItem[], { format }: ExportOptions, io: CommandIo): Promise<void> {
  if (format === "csv") io.out(csvLine(factColumns));
  for (let index = 0; index < items.length && !io.signal.aborted; index += 1) {
    const item = items[index];
    if (item === undefined) break;
    const row = toFactRow(item);
    io.out(format === "csv" ? csvLine(factColumns.map((column) => row[column])) : jsonLine(row));
    if (index % linesAtOnce === linesAtOnce - 1) await io.taken?.();
  }
}

/**
 * Writes the items of a list as the service sends them. The columns of a CSV are the fields of the
 * first page.
 * @throws ServiceError; what was read before has been written.
 */
async function exportLive(
  {
    service,
    list,
    repository,
  }: { readonly service: SyncService; readonly list: ListName; readonly repository: string | undefined },
  { format, limit }: ExportOptions,
  io: CommandIo,
): Promise<void> {
  let columns: readonly string[] | undefined;
  let written = 0;
  let left = 0;
  const query = repository === undefined ? {} : { repository };
  for await (const page of service.pages(operationOf[list], query, { signal: io.signal, pagesMax: 100_000 })) {
    if (format === "csv" && columns === undefined) {
      columns = columnsOf(page.items);
      if (columns.length > 0) io.out(csvLine(columns));
      else if (page.nextLink !== undefined) columns = undefined;
    }
    for (const item of page.items) {
      if (written >= limit) break;
      io.out(columns === undefined ? jsonLine(item) : csvLine(cellsOf(item, columns)));
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

function columnsOf(items: readonly unknown[]): string[] {
  const names = new Set(items.flatMap((item) => (isJsonObject(item) ? Object.keys(item) : [])));
  return [...names].slice(0, columnsMax);
}

function cellsOf(item: unknown, columns: readonly string[]): unknown[] {
  return columns.map((name) => (isJsonObject(item) && Object.hasOwn(item, name) ? item[name] : undefined));
}

function fieldsBeside(item: unknown, columns: readonly string[]): number {
  return isJsonObject(item) ? Object.keys(item).filter((name) => !columns.includes(name)).length : 0;
}

/** JSON keeps some control characters; a terminal would obey them. */
function jsonLine(value: unknown): string {
  return (JSON.stringify(value) ?? "null").replaceAll(
    /[\u007f-\u009f\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/**
 * One CSV line without a line break. A cell that is neither text, number nor boolean is written as
 * JSON; a missing one is empty.
 */
export function csvLine(cells: readonly unknown[]): string {
  return cells.map(csvCell).join(",");
}

function csvCell(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  // Spreadsheets run cells that begin like this, also after white space; an apostrophe makes them
  // text. Source: OWASP, CSV Injection
  const safe = /^[\s\0]*[=+\-@＝＋－＠]|^[\t\r\n]/.test(text) ? `'${text}` : text;
  return /[",;\r\n\t]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
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
  const { id, syncJobId, finished, succeeded, label, seenAtMs } = item;
  const state =
    finished === undefined
      ? ""
      : finished
        ? succeeded === false
          ? "failed"
          : succeeded
            ? "succeeded"
            : "finished"
        : "open";
  const parts = [
    seenAtMs === undefined ? "-".padEnd(20) : showInstant(seenAtMs),
    id,
    syncJobId === undefined ? "" : `sync job ${syncJobId}`,
    state,
    label ?? "",
  ];
  return parts
    .filter((part) => part !== "")
    .join("  ")
    .replaceAll(/[\p{Cc}\u2028-\u202e\u2066-\u2069]/gu, " ");
}
