// One reading of a list for all polls that want it at about the same time: whoever is first reads, the others are given what it read, and so is
// the feed's walk. Called by work/read-together.ts and feeds/walk-feed.ts. Holds items as the service sent them, packed, for a minute at most;
// never answers with what began too early.
import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import * as z from "zod";
import { hasCredential } from "../core/link-credential.ts";
import { withoutKnownSecrets } from "../core/secrets.ts";
import { hashText } from "../core/stable-hash.ts";
import { type Feed, feedId } from "../tasks/feed.ts";
import { createScript, type Store } from "./redis.ts";

/** What is read: the items of a list, or only how many there are. */
export type ReadingKind = "items" | "count";

const pagesSchema = z.array(
  z.object({ url: z.string(), nextLink: z.string().exactOptional(), items: z.array(z.unknown()) }),
);

/** A page that was read: its items as the service sent them, its own link and the next one's. */
export type ReadPage = Readonly<z.infer<typeof pagesSchema>[number]>;

/** A reading. `beganAtMs`: by Redis, before its first request. `pages`: none where only the count was asked for; undefined when the list is too long to be read. */
export interface SharedReading {
  readonly beganAtMs: number;
  readonly count: number;
  readonly pages: readonly ReadPage[] | undefined;
}

/** Who wants a reading. `sinceMs`: it must have begun then or later, and after `afterMs`. `turnOf`: it must have begun no earlier than this task first asked. */
export interface ReadingWish {
  readonly sinceMs: number;
  readonly afterMs: number;
  readonly turnOf: string | undefined;
}

/**
 * What to do. `take`: here is one. `read`: you are the one who reads; `token` says so to the others. `wait`: somebody has been reading since then.
 * `alone`: the list is too large to be shared, so read for yourself.
 */
export type ReadingTurn =
  | { readonly turn: "take"; readonly reading: SharedReading }
  | { readonly turn: "read" | "alone"; readonly beganAtMs: number; readonly token: string }
  | { readonly turn: "wait"; readonly sinceMs: number; readonly nowMs: number };

/** Limits of what is kept. */
export interface ReadingLimits {
  /** Of the items as JSON. */
  readonly plainBytesMax: number;
  /** Of the same, packed, as Redis holds it. */
  readonly packedBytesMax: number;
}

const defaultLimits: ReadingLimits = { plainBytesMax: 16 * 1_048_576, packedBytesMax: 4 * 1_048_576 };
const keepForMs = 60_000;
/** A reader that has been silent for so long is taken for dead. */
const readerLeaseMs = 30_000;
/** A list that was too large is read by each for itself for so long. */
const aloneForMs = 600_000;
const turnKeptMs = 3_600_000;

const now = `local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)`;

// KEYS: reading, the task's first turn. ARGV: token, since, after, whether the turn counts. Answers a word and two instants.
const beginScript = createScript(`${now}
local since = tonumber(ARGV[2])
if ARGV[4] == '1' then
  redis.call('SET', KEYS[2], string.format('%.0f', now), 'NX', 'PX', ${turnKeptMs})
  since = math.max(since, tonumber(redis.call('GET', KEYS[2])))
end
local had = redis.call('HMGET', KEYS[1], 'beganMs', 'endedMs', 'reader', 'readerBeganMs', 'readerUntilMs', 'aloneUntilMs')
local began = tonumber(had[1] or 0)
if had[2] and began >= since and began > tonumber(ARGV[3]) and now - tonumber(had[2]) <= ${keepForMs} then return { 'take', began, now } end
if tonumber(had[6] or 0) > now then return { 'alone', now, now } end
if had[3] and tonumber(had[5]) > now then return { 'wait', tonumber(had[4]), now } end
redis.call('HSET', KEYS[1], 'reader', ARGV[1], 'readerBeganMs', now, 'readerUntilMs', now + ${readerLeaseMs})
redis.call('PEXPIRE', KEYS[1], ${Math.max(keepForMs, readerLeaseMs)})
return { 'read', now, now }`);

// KEYS: reading. ARGV: token.
const goOnScript = createScript(`${now}
if redis.call('HGET', KEYS[1], 'reader') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'readerUntilMs', now + ${readerLeaseMs})
return redis.call('PEXPIRE', KEYS[1], ${Math.max(keepForMs, readerLeaseMs)})`);

const leaveLua = `if redis.call('HGET', KEYS[1], 'reader') == ARGV[1] then redis.call('HDEL', KEYS[1], 'reader') end`;

// KEYS: reading. ARGV: token.
const leaveScript = createScript(`${leaveLua} return 1`);

// KEYS: reading. ARGV: token, when it began, items in all, the packed pages ('' for a list that is too long).
const shareScript = createScript(`${now} ${leaveLua}
if tonumber(redis.call('HGET', KEYS[1], 'beganMs') or 0) > tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], 'beganMs', ARGV[2], 'endedMs', now, 'count', ARGV[3], 'pages', ARGV[4])
return redis.call('PEXPIRE', KEYS[1], ${keepForMs})`);

// KEYS: reading. ARGV: token.
const aloneScript = createScript(`${now} ${leaveLua}
redis.call('HDEL', KEYS[1], 'beganMs', 'endedMs', 'count', 'pages')
redis.call('HSET', KEYS[1], 'aloneUntilMs', now + ${aloneForMs})
return redis.call('PEXPIRE', KEYS[1], ${aloneForMs})`);

/** A link that opens the list by itself is not kept; what stands in its place is told apart from others, and nobody can go there. */
function withoutCredentials({ url, nextLink, items }: ReadPage): ReadPage {
  const kept = (link: string) => (hasCredential(link) ? `not-kept:${hashText(link, 32)}` : link);
  return { url: kept(url), ...(nextLink === undefined ? {} : { nextLink: kept(nextLink) }), items };
}

/** The shared readings in Redis. */
export class SharedReadings {
  readonly #store: Store;
  readonly #limits: ReadingLimits;

  constructor(store: Store, limits: ReadingLimits = defaultLimits) {
    this.#store = store;
    this.#limits = limits;
  }

  /** Asks for a reading. Whoever is told to `read` says how it goes on: `goOn` at each page, then `share` or `leave`. */
  async ask(feed: Feed, kind: ReadingKind, wish: ReadingWish & { readonly token: string }): Promise<ReadingTurn> {
    const { token, sinceMs, afterMs, turnOf } = wish;
    const reading = this.#key(feed, kind);
    const keys = [reading, this.#store.key("reading-turn", feedId(feed), turnOf ?? "")];
    const answer = await beginScript(this.#store, keys, [token, sinceMs, afterMs, turnOf === undefined ? 0 : 1]);
    const [word, atMs, nowMs] = Array.isArray(answer) ? answer : [];
    if (word === "read" || word === "alone") return { turn: word, beganAtMs: Number(atMs), token };
    const found = word === "take" ? await this.#read(reading) : undefined;
    // What has gone or was taken back meanwhile is asked for again.
    return found !== undefined && found.beganAtMs >= Number(atMs)
      ? { turn: "take", reading: found }
      : { turn: "wait", sinceMs: Number(atMs), nowMs: Number(nowMs) };
  }

  /** Says that this reader is alive. */
  async goOn(feed: Feed, kind: ReadingKind, token: string): Promise<void> {
    await goOnScript(this.#store, [this.#key(feed, kind)], [token]);
  }

  /** Says that this reader reads no more and has nothing to share. */
  async leave(feed: Feed, kind: ReadingKind, token: string): Promise<void> {
    await leaveScript(this.#store, [this.#key(feed, kind)], [token]);
  }

  /** Shares what was read. Answers false when it is too large: then each reads for itself for ten minutes. */
  async share(feed: Feed, kind: ReadingKind, shared: SharedReading & { readonly token: string }): Promise<boolean> {
    const { token, beganAtMs, count, pages } = shared;
    const packed = pages === undefined ? "" : await this.#pack(pages);
    const key = this.#key(feed, kind);
    if (packed === undefined) await aloneScript(this.#store, [key], [token]);
    else await shareScript(this.#store, [key], [token, beganAtMs, count, packed]);
    return packed !== undefined;
  }

  /** What polls read of a list, if that began after this instant, they are not too long ago and it is all of the list. */
  async newerThan(feed: Feed, atMs: number): Promise<SharedReading | undefined> {
    const key = this.#key(feed, "items");
    const began = await this.#store.redis.hget(key, "beganMs");
    if (began === null || Number(began) <= atMs) return undefined;
    const reading = await this.#read(key);
    return reading?.pages === undefined || reading.pages.length === 0 ? undefined : reading;
  }

  async #pack(pages: readonly ReadPage[]): Promise<Buffer | undefined> {
    const { plainBytesMax, packedBytesMax } = this.#limits;
    const plain = Buffer.from(withoutKnownSecrets(JSON.stringify(pages.map(withoutCredentials))));
    if (plain.length > plainBytesMax) return undefined;
    const packed = await promisify(gzip)(plain, { level: 1 });
    return packed.length > packedBytesMax ? undefined : packed;
  }

  async #read(key: string): Promise<SharedReading | undefined> {
    const [began, count, packed] = await this.#store.redis.hmgetBuffer(key, "beganMs", "count", "pages");
    if (!began || !count || !packed) return undefined;
    const { plainBytesMax } = this.#limits;
    const plain = packed.length === 0 ? undefined : await promisify(gunzip)(packed, { maxOutputLength: plainBytesMax });
    const pages = plain === undefined ? undefined : pagesSchema.safeParse(JSON.parse(plain.toString())).data;
    return { beganAtMs: Number(began.toString()), count: Number(count.toString()), pages };
  }

  #key(feed: Feed, kind: ReadingKind): string {
    return this.#store.key("reading", feedId(feed), kind);
  }
}
