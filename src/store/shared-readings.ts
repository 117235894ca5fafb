// Polls that want the same list at about the same time share one reading. Redis holds it for a
// minute; a poll never gets one that began too early for it.
import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import * as z from "zod";
import { credentialIn, placeholderFor } from "../core/link-credential.ts";
import { withoutKnownSecrets } from "../core/secrets.ts";
import { type Feed, feedId } from "../model/feed.ts";
import type { Store } from "./redis.ts";
import { asList, asNothing, asNumber, asWord, createScript } from "./script.ts";

/** What to read: a list's items; these once more, to be sure of them (`again`); or their number. */
export type ReadingKind = "items" | "again" | "count";

const pagesSchema = z.array(
  z.object({ url: z.string(), nextLink: z.string().exactOptional(), items: z.array(z.unknown()) }),
);

/** A page: its items as the service sent them, its own link and the next one's. */
export type ReadPage = Readonly<z.infer<typeof pagesSchema>[number]>;

/**
 * A reading since `beganAtMs`. `pages`: empty for a count; undefined: it has more items than a poll
 * reads; that is shared, too.
 */
export interface SharedReading {
  readonly beganAtMs: number;
  readonly count: number;
  readonly pages: readonly ReadPage[] | undefined;
}

/**
 * The reading must begin at `sinceMs` or later, after `afterMs`, and not before the task `turnOf`
 * first asked for one.
 */
export interface ReadingWish {
  readonly sinceMs: number;
  readonly afterMs: number;
  readonly turnOf: string | undefined;
}

/**
 * `take` this reading; `read` and share it under `token`; `wait` for another worker; read `alone`:
 * the list is too large to share.
 */
export type ReadingTurn =
  | { readonly turn: "take"; readonly reading: SharedReading }
  | { readonly turn: "read" | "alone"; readonly beganAtMs: number }
  | { readonly turn: "wait"; readonly sinceMs: number; readonly nowMs: number };

/** Limits of what is kept; tests set smaller ones. */
export interface ReadingLimits {
  /** Bytes of the items as JSON. */
  readonly plainBytesMax: number;
  /** Bytes of the same, packed for Redis. */
  readonly packedBytesMax: number;
}

const defaultLimits: ReadingLimits = { plainBytesMax: 16 * 1_048_576, packedBytesMax: 4 * 1_048_576 };

const beginScript = createScript("reading/begin", (answer) => {
  const [word, atMs, nowMs] = asList(answer);
  return { word: asWord("take", "read", "wait", "alone")(word), atMs: asNumber(atMs), nowMs: asNumber(nowMs) };
});
const goOnScript = createScript("reading/go-on", asNothing);
const leaveScript = createScript("reading/leave", asNothing);
const shareScript = createScript("reading/share", asNumber);
const aloneScript = createScript("reading/alone", asNumber);

/** Replaces links that open the list by themselves. The placeholder is unique and leads nowhere. */
function withoutCredentialLinks({ url, nextLink, items }: ReadPage, listPath: string | undefined): ReadPage {
  const kept = (link: string) => {
    const found = credentialIn(link, listPath);
    return found === undefined ? link : placeholderFor(link, found);
  };
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

  /** Asks for a reading; after `read`, call `goOn` at each page, then `share` or `leave`. */
  async ask(feed: Feed, kind: ReadingKind, wish: ReadingWish & { readonly token: string }): Promise<ReadingTurn> {
    const { token, sinceMs, afterMs, turnOf } = wish;
    const reading = this.#key(feed, kind);
    const keys = [reading, this.#store.key("reading-turn", feedId(feed), turnOf ?? "")];
    const args = [token, sinceMs, afterMs, turnOf === undefined ? 0 : 1];
    const { word, atMs, nowMs } = await beginScript(this.#store, keys, args);
    if (word === "read" || word === "alone") return { turn: word, beganAtMs: atMs };
    const found = word === "take" ? await this.#read(reading) : undefined;
    // A reading that is gone or replaced by now: the worker asks again.
    return found !== undefined && found.beganAtMs >= atMs
      ? { turn: "take", reading: found }
      : { turn: "wait", sinceMs: atMs, nowMs };
  }

  /** Prolongs the reader's lease. */
  async goOn(feed: Feed, kind: ReadingKind, token: string): Promise<void> {
    await goOnScript(this.#store, [this.#key(feed, kind)], [token]);
  }

  /** Gives the reading up with nothing to share. */
  async leave(feed: Feed, kind: ReadingKind, token: string): Promise<void> {
    await leaveScript(this.#store, [this.#key(feed, kind)], [token]);
  }

  /**
   * Shares a reading, unless it is too large: then each worker reads by itself for ten minutes.
   * `unshared`: for how many polls in a row the list is or was too large.
   */
  async share(
    feed: Feed,
    kind: ReadingKind,
    shared: SharedReading & { readonly token: string },
  ): Promise<{ readonly isShared: boolean; readonly unshared: number }> {
    const { token, beganAtMs, count, pages } = shared;
    const packed = pages === undefined ? "" : await this.#pack(pages);
    const key = this.#key(feed, kind);
    if (packed === undefined) return { isShared: false, unshared: await aloneScript(this.#store, [key], [token]) };
    return { isShared: true, unshared: await shareScript(this.#store, [key], [token, beganAtMs, count, packed]) };
  }

  /** Returns the whole list as a poll read it after this instant, if Redis still has it. */
  async newerThan(feed: Feed, atMs: number): Promise<SharedReading | undefined> {
    const key = this.#key(feed, "items");
    const began = await this.#store.redis.hget(key, "beganMs");
    if (began === null || Number(began) <= atMs) return undefined;
    const reading = await this.#read(key);
    return reading?.pages === undefined || reading.pages.length === 0 ? undefined : reading;
  }

  async #pack(pages: readonly ReadPage[]): Promise<Buffer | undefined> {
    const { plainBytesMax, packedBytesMax } = this.#limits;
    const [first] = pages;
    const listPath = first !== undefined && URL.canParse(first.url) ? new URL(first.url).pathname : undefined;
    const kept = pages.map((page) => withoutCredentialLinks(page, listPath));
    const plain = Buffer.from(withoutKnownSecrets(JSON.stringify(kept)));
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
