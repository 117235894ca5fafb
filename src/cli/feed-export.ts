// Writes a whole list: the facts that the feed book holds, or with --live the items as the service sends them, page by page. Called by
// feed.ts. Never holds more than a page of live items, and waits for a slow reader before it asks for the next one.
import { isJsonObject } from "../core/json.ts";
import type { ListName } from "../core/list-name.ts";
import { operationOf } from "../feeds/service-lists.ts";
import type { SyncService } from "../service/client.ts";
import type { SeenItem } from "../store/seen-item.ts";
import type { CommandIo } from "./command-io.ts";
import { csvLine } from "./csv.ts";
import { factColumns, toFactRow } from "./feed-rows.ts";

/** The forms of an export. */
export const exportFormats = ["jsonl", "csv"] as const;

/** One of them. */
export type ExportFormat = (typeof exportFormats)[number];

/** How much, and in which form. */
export interface ExportOptions {
  readonly format: ExportFormat;
  readonly limit: number;
}

const columnsMax = 200;
const linesAtOnce = 1_000;

/** Writes facts, the oldest discovery first. */
export async function exportFacts(items: readonly SeenItem[], { format }: ExportOptions, io: CommandIo): Promise<void> {
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
 * Writes the items of a list as the service sends them. The columns of a CSV are the fields of the first page, whatever comes later.
 * @throws ServiceError; what was read before has been written.
 */
export async function exportLive(
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

/** JSON leaves some control characters as they are; a terminal would act on them. */
function jsonLine(value: unknown): string {
  return (JSON.stringify(value) ?? "null").replaceAll(
    /[\u007f-\u009f\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
