// One way of paging, walked as a worker walks a feed: a list of 50 pages read for the first time,
// then with and without new items. Says what is wrong: a walk that asks for too much, or an item
// that was not told exactly once. For the sandbox, and whatever else has lists.
import { isDeepStrictEqual } from "node:util";
import { createItemMapper } from "../../src/feeds/mapping.ts";
import { type WalkDependencies, walkFeed } from "../../src/feeds/walk-feed.ts";
import {
  type ListOrder,
  listOrders,
  nextLinkStyles,
  type SandboxOptions,
  tokenStyles,
} from "../../src/sandbox/options.ts";
import { startSandbox } from "../../src/sandbox/sandbox.ts";
import { SyncService, staticToken } from "../../src/service/client.ts";
import { FeedStore } from "../../src/store/feed-store.ts";
import { redisTimeMs, type Store } from "../../src/store/redis.ts";
import { type CapOptions, startCapServer } from "./cap-server.ts";
import { TestLog } from "./test-log.ts";

/** One way of paging. */
export type Cell = Readonly<
  Required<Pick<SandboxOptions, "tokenStyle" | "nextLinkStyle" | "order" | "pageSize" | "emptyLastPage">>
>;

/** A list of activities to walk, with the ids 1 to `items`. */
interface PagedService {
  readonly baseUrl: string;
  readonly token: string;
  readonly items: number;
  readonly pageSize: number;
  readonly emptyLastPage: boolean;
  readonly order: ListOrder;
  /** Lets so many more appear, with the next ids. */
  add(count: number): Promise<void>;
}

/** What walking it came to. `requests`: of each walk, with what had come before it. */
export interface Walked {
  readonly findings: readonly string[];
  readonly requests: readonly string[];
}

/** So many are told of one cell; the others follow from them. */
const findingsMax = 5;

/** The pages of a list when it is first read. */
const pages = 50;

/** The page sizes of the matrix: the smallest, an odd one, and the documented one. */
const pageSizes = [1, 7, 100] as const;

/** Every cell there is. */
export const allCells: readonly Cell[] = tokenStyles.flatMap((tokenStyle) =>
  nextLinkStyles.flatMap((nextLinkStyle) =>
    listOrders.flatMap((order) =>
      pageSizes.flatMap((pageSize) =>
        [false, true].map((emptyLastPage) => ({ tokenStyle, nextLinkStyle, order, pageSize, emptyLastPage })),
      ),
    ),
  ),
);

/**
 * The cells of the share that have large pages, which take longest: by the places of token and link
 * style.
 */
const largeOnes: ReadonlySet<string> = new Set(["0 1", "1 3", "2 2"]);

/**
 * A cell for each two of a token style, a link style and an order, with each page size and both
 * ends among them.
 */
export const pairedCells: readonly Cell[] = tokenStyles.flatMap((tokenStyle, token) =>
  nextLinkStyles.map((nextLinkStyle, link) => ({
    tokenStyle,
    nextLinkStyle,
    order: listOrders[(token + link) % listOrders.length] ?? "ascending",
    pageSize: largeOnes.has(`${token} ${link}`) ? 100 : (token * 2 + link) % 3 === 0 ? 1 : 7,
    emptyLastPage: (token + Math.floor(link / 2)) % 2 === 0,
  })),
);

/** The name of a cell. */
export function nameOf({ tokenStyle, nextLinkStyle, order, pageSize, emptyLastPage }: Cell): string {
  return `${tokenStyle} tokens, ${nextLinkStyle} links, ${order}, pages of ${pageSize}${emptyLastPage ? ", empty last page" : ""}`;
}

/** One way in which SAP CAP pages; a full last page of it has a link always. */
export type CapCell = Readonly<Required<Pick<CapOptions, "pageSize" | "reliablePaging" | "order">>>;

/** Every way that CAP has. */
export const allCapCells: readonly CapCell[] = ([1, 7, 100] as const).flatMap((pageSize) =>
  [false, true].flatMap((reliablePaging) =>
    (["ascending", "descending", "hash"] as const).map((order) => ({ pageSize, reliablePaging, order })),
  ),
);

/** Each page size, each order and both kinds of token. */
export const someCapCells: readonly CapCell[] = [
  { pageSize: 1, reliablePaging: false, order: "ascending" },
  { pageSize: 7, reliablePaging: true, order: "ascending" },
  { pageSize: 100, reliablePaging: true, order: "descending" },
  { pageSize: 7, reliablePaging: true, order: "hash" },
];

/** The name of such a cell. */
export function nameOfCap({ pageSize, reliablePaging, order }: CapCell): string {
  return `SAP CAP, ${reliablePaging ? "base64" : "number"} tokens, ${order}, pages of ${pageSize}`;
}

/** Walks a SAP CAP that pages like this. */
export async function walkCap(cell: CapCell, store: Store): Promise<Walked> {
  const items = pages * cell.pageSize;
  const cap = await startCapServer({ ...cell, activities: items });
  const init = { method: "POST", headers: { "content-type": "application/json" } };
  let last = items;
  const create = async () => {
    last += 1;
    const body = JSON.stringify({ activityId: last, state: `s${last % 3}` });
    const answer = await fetch(`${cap.baseUrl}/odata/synchronizationactivities`, { ...init, body });
    if (answer.status !== 201) throw new Error(`CAP did not create an activity: ${answer.status}`);
  };
  const paged = { ...cell, items, baseUrl: cap.baseUrl, token: "x", emptyLastPage: true };
  try {
    return await walkService({ ...paged, add: (count) => inBatches(count, create) }, store, nameOfCap(cell));
  } finally {
    cap.stop();
  }
}

async function inBatches(count: number, act: () => Promise<void>): Promise<void> {
  for (let left = count; left > 0; left -= 20) await Promise.all(Array.from({ length: Math.min(left, 20) }, act));
}

/** Walks a sandbox that pages like this. */
export async function walkSandbox(cell: Cell, store: Store): Promise<Walked> {
  const items = pages * cell.pageSize;
  const sandbox = await startSandbox({ ...cell, activities: items, runMs: [0, 0], basePath: "/sync" });
  const headers = { authorization: `Bearer ${sandbox.token}` };
  const start = async () => {
    const answer = await fetch(`${sandbox.baseUrl}/api/syncjobs/run(1)`, { method: "POST", headers });
    if (answer.status !== 200) throw new Error(`the sandbox did not start a run: ${answer.status}`);
  };
  const paged = { ...cell, items, baseUrl: sandbox.baseUrl, token: sandbox.token };
  try {
    return await walkService({ ...paged, add: (count) => inBatches(count, start) }, store, nameOf(cell));
  } finally {
    await sandbox.stop();
  }
}

/** Walks the list of a service; `name` is that of the feed. */
async function walkService(paged: PagedService, store: Store, name: string): Promise<Walked> {
  const findings: string[] = [];
  const requests: string[] = [];
  const reader = createReader(paged, store, name);
  const { order, pageSize, emptyLastPage } = paged;
  let known = paged.items;
  const walk = async (added: number, allowed: number) => {
    if (added > 0) await paged.add(added);
    known += added;
    const asked = await reader.walk();
    requests.push(`+${added}: ${asked}`);
    const at = `walk ${requests.length}, ${added} new of ${known}`;
    if (asked > allowed) findings.push(`${at}: ${asked} requests instead of ${allowed} at most`);
    // Of a walk that cannot be trusted the next ones say nothing more.
    if (findings.length < findingsMax) findings.push(...reader.findings(known).map((finding) => `${at}: ${finding}`));
  };
  const hasOrder = order === "ascending" || order === "descending";
  const extra = emptyLastPage ? 1 : 0;
  const whole = (added: number) => Math.ceil((known + added) / pageSize) + extra;
  /**
   * Until two walks have seen where the list grows, both of its ends are looked at, and the count.
   */
  const undecided = () => 3 + extra;
  const steady = (added: number) => 2 + Math.ceil(added / Math.min(pageSize, 100));
  await walk(0, pages + extra);
  if (hasOrder) {
    await walk(0, undecided());
    for (const added of [1, 1]) await walk(added, undecided() + 1 + (isFrontUnclear(paged) ? whole(added) : 0));
    for (const added of [0, 1, 0, pageSize, 2 * pageSize + 1, 0, Math.min(3 * pageSize, 100), 0, 0])
      await walk(added, steady(added));
  } else {
    // Its links lead into the middle when it is shuffled, so that a look at the ends may cost as
    // much as the whole list.
    for (const added of [0, 1, 1]) await walk(added, undecided() + 2 * whole(added));
    for (const added of [0, pageSize + 1]) await walk(added, whole(added));
  }
  findings.push(...reader.notices());
  await reader.close();
  return { findings: findings.slice(0, findingsMax), requests };
}

/**
 * Where the whole first page is new, only the pages behind it show that it is the list's front that
 * grows.
 */
function isFrontUnclear({ order, pageSize }: PagedService): boolean {
  return order === "descending" && pageSize === 1;
}

/** What the log says of the list, in the order of the events' names. */
function toldOf(paged: PagedService): readonly string[] {
  if (paged.order === "ascending") return ["feed.order-found tail"];
  if (paged.order === "descending")
    return ["feed.order-found head", ...(isFrontUnclear(paged) ? ["feed.read-whole first-page-new"] : [])];
  return ["feed.order-lost undecided", "feed.read-whole count-differs", "feed.read-whole no-order"];
}

function createReader(paged: PagedService, store: Store, name: string) {
  const log = new TestLog();
  const book = new FeedStore(store);
  const feed = { service: name, repository: "R&D ü=1", list: "activities" } as const;
  let requests = 0;
  let walks = 0;
  const onRequest = () => {
    requests += 1;
  };
  const { baseUrl, token } = paged;
  const service = new SyncService({ baseUrl, token: staticToken(token), retries: 0, onRequest });
  const found = new Map<string, number>();
  const announced = new Map<string, number>();
  const count = (counts: Map<string, number>, id: string) => counts.set(id, (counts.get(id) ?? 0) + 1);
  const counting: WalkDependencies["feeds"] = new Proxy(book, {
    get: (real, property) => {
      if (property !== "takeIn") return Reflect.get(real, property).bind(real);
      return async (...args: Parameters<FeedStore["takeIn"]>) => {
        const novelties = await real.takeIn(...args);
        for (const [index, { id }] of args[2].items.entries()) if (novelties?.[index] === "new") count(found, id);
        return novelties;
      };
    },
  });
  const announce = async (_feed: unknown, group: readonly { readonly id: string }[]) => {
    for (const { id } of group) count(announced, id);
  };
  const parts: WalkDependencies = {
    feeds: counting,
    // A minute later each time, so that nothing waits for its turn, and no audit is due.
    nowMs: async () => (await redisTimeMs(store)) + walks * 60_000,
    service: () => service,
    denialOf: async () => undefined,
    itemMapper: () => createItemMapper("activities", { id: "item.activityId" }),
    pace: { gapMs: 0, fastestMs: 0, slowestMs: 0 },
    announcer: { wants: () => true, announce },
    log,
  };
  const walk = async () => {
    await book.addWaiter(feed, "test", { nowMs: 1, untilMs: 9e15 });
    requests = 0;
    walks += 1;
    await walkFeed({ v: 1, kind: "feed-walk", ...feed }, parts, new AbortController().signal);
    return requests;
  };
  /** Each item is found once, and each that came after the first walk is announced once. */
  const findings = (known: number): string[] => {
    const wrong = (what: string, counts: ReadonlyMap<string, number>, from: number) => {
      const ids = Array.from({ length: known - from + 1 }, (_, index) => String(from + index));
      const lost = ids.filter((id) => !counts.has(id));
      const twice = [...counts].filter(([, times]) => times > 1).map(([id]) => id);
      const made = counts.size - (ids.length - lost.length);
      return [
        ...(lost.length > 0 ? [`${lost.length} not ${what}: ${lost.slice(0, 5)}`] : []),
        ...(twice.length > 0 ? [`${twice.length} ${what} twice: ${twice.slice(0, 5)}`] : []),
        ...(made > 0 ? [`${made} ${what} that are not there`] : []),
      ];
    };
    const unread = log.named("feed.unreadable").map(({ message }) => `unreadable: ${message}`);
    return [...wrong("found", found, 1), ...wrong("announced", announced, paged.items + 1), ...unread.slice(-1)];
  };
  /**
   * An order is told when it is found. Without one it is told that the list is read whole, and why.
   */
  const notices = (): string[] => {
    const told = ["feed.order-found", "feed.order-lost", "feed.links-not-kept", "feed.read-whole"].flatMap((event) =>
      log.named(event).map((one) => `${event} ${one["reason"] ?? one["order"] ?? one["carries"]}`),
    );
    const wanted = toldOf(paged);
    return isDeepStrictEqual([...new Set(told)], wanted) ? [] : [`told ${told.join(", ")}, not ${wanted.join(", ")}`];
  };
  return { walk, findings, notices, close: () => service.close() };
}
