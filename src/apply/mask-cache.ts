// Shares readings of the masks. The service cannot read one mask, so each caller reads the list,
// and callers at the same time share one reading. One per process.
import { systemClock } from "../core/clock.ts";
import type { ObjectPlace } from "../core/declared-object.ts";
import type { Mask, SyncService } from "../service/client.ts";
import { inRepository } from "../service/request-url.ts";

/** The most masks that are read. */
const masksMax = 20_000;
/** How long a reading is kept. */
export const readingKeptMs = 10_000;
const readingsMax = 100;

/** The masks of one repository. Several pages may lack one: the list may shift between them. */
export interface Masks {
  /** By id, as text. */
  readonly byId: ReadonlyMap<string, Mask>;
  readonly isOnePage: boolean;
  /** A reading that ended before this one began, and hardly earlier, shows the same ids. */
  readonly isAgreed: boolean;
  /** By the monotonic clock. */
  readonly endedMs: number;
}

interface MaskReading {
  readonly startedMs: number;
  readonly masks: Promise<Masks>;
  ended?: Masks;
}

/** `sinceMs`: by the monotonic clock, the earliest begin of a reading; without it, a new one. */
export interface MaskReadingRequest {
  readonly place: ObjectPlace;
  readonly service: SyncService;
  readonly signal: AbortSignal;
  readonly sinceMs: number | undefined;
  /** Not the first request of its caller. */
  readonly isFollowUp: boolean;
}

/** The latest reading of each repository. */
export class MaskCache {
  readonly #readings = new Map<string, MaskReading>();

  /** The masks, from a reading that began late enough. @throws ServiceError */
  async read({ place, service, signal, sinceMs, isFollowUp }: MaskReadingRequest): Promise<Masks> {
    const nowMs = systemClock.monotonicMs();
    const key = JSON.stringify([place.service, place.repository]);
    const known = this.#readings.get(key);
    if (known !== undefined && known.startedMs >= (sinceMs ?? nowMs)) return known.masks;
    for (const [other, { startedMs }] of this.#readings)
      if (startedMs < nowMs - readingKeptMs || this.#readings.size >= readingsMax) this.#readings.delete(other);
    const before = known?.ended;
    const masks = walk(service, place, { signal, isFollowUp }).then((read) => {
      const isAgreed =
        before !== undefined && before.endedMs >= nowMs - readingKeptMs && hasSameIds(before.byId, read.byId);
      reading.ended = { ...read, isAgreed, endedMs: systemClock.monotonicMs() };
      return reading.ended;
    });
    const reading: MaskReading = { startedMs: nowMs, masks };
    this.#readings.set(key, reading);
    // The next caller after a failure reads anew.
    masks.catch(() => {
      if (this.#readings.get(key) === reading) this.#readings.delete(key);
    });
    return masks;
  }
}

function hasSameIds(some: Masks["byId"], others: Masks["byId"]): boolean {
  return some.size === others.size && [...some.keys()].every((id) => others.has(id));
}

async function walk(
  service: SyncService,
  place: ObjectPlace,
  options: { readonly signal: AbortSignal; readonly isFollowUp: boolean },
): Promise<Pick<Masks, "byId" | "isOnePage">> {
  const byId = new Map<string, Mask>();
  let pages = 0;
  for await (const page of service.pages("GetJobMasks", inRepository(place), { ...options, itemsMax: masksMax })) {
    pages += 1;
    for (const mask of page.items)
      if (mask.maskId !== undefined && mask.maskId !== null) byId.set(String(mask.maskId), mask);
  }
  return { byId, isOnePage: pages <= 1 };
}
