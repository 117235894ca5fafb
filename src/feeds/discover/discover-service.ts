// Samples the lists of a service, tries its query options, and proposes a mapping. Every request is
// a GET; each list costs a few pages and at most five probes. Called by cli/discover.ts.
import type { ListName } from "../../core/list-name.ts";
import { ServiceError } from "../../service/service-error.ts";
import { shapeFingerprint, shapeOf } from "../list-shape.ts";
import { type Probes, probeOptions } from "./probe-options.ts";
import { type ListProposal, proposeMapping } from "./propose.ts";
import { type ListSample, pagesOf, type SampleParts, sampleList } from "./sample-list.ts";

/** What was found about one list. */
export interface DiscoveredList {
  readonly list: ListName;
  readonly sample: Pick<ListSample, "count" | "pageSize" | "seen"> & { readonly items: number };
  readonly proposal: ListProposal;
  readonly probes: Probes | undefined;
  /** Names and types of the fields, as twelve hex digits. */
  readonly shape: string;
}

/** A list that could not be read. */
export interface UnreadableList {
  readonly list: ListName;
  readonly error: ServiceError;
}

/** How to examine the service. */
export interface DiscoverOptions extends SampleParts {
  readonly lists: readonly ListName[];
  /** Sync jobs that the policies name. */
  readonly syncJobIds: readonly string[];
  readonly probe: boolean;
}

/** Examines the lists one after another; an unreadable list does not stop the others. */
export async function discoverService(options: DiscoverOptions): Promise<{
  readonly found: readonly DiscoveredList[];
  readonly unreadable: readonly UnreadableList[];
  readonly syncJobIds: number;
}> {
  const syncJobIds = new Set([...options.syncJobIds, ...(await idsFromMasks(options))]);
  const samples: { readonly list: ListName; readonly sample: ListSample }[] = [];
  const unreadable: UnreadableList[] = [];
  for (const list of options.lists) {
    try {
      samples.push({ list, sample: await sampleList(list, options) });
    } catch (error) {
      if (!(error instanceof ServiceError) || error.kind === "cancelled") throw error;
      unreadable.push({ list, error });
    }
  }
  const found: DiscoveredList[] = [];
  // The longest sample shows best which field holds the sync job's id; the other lists probably use
  // the same name.
  const joins = samples
    .toSorted((a, b) => b.sample.items.length - a.sample.items.length)
    .map(({ list, sample }) => proposeMapping(list, sample.items, { syncJobIds, joinElsewhere: undefined }).join);
  const joinElsewhere = joins.find((join) => join !== undefined);
  for (const { list, sample } of samples) {
    const proposal = proposeMapping(list, sample.items, { syncJobIds, joinElsewhere });
    const probes = options.probe
      ? await probeOptions(list, { sample, fields: proposal.fields, parts: options })
      : undefined;
    const { count, pageSize, seen, items } = sample;
    found.push({
      list,
      sample: { count, pageSize, seen, items: items.length },
      proposal,
      probes,
      shape: shapeFingerprint(shapeOf(items)),
    });
  }
  return { found, unreadable, syncJobIds: syncJobIds.size };
}

/**
 * Masks carry the id of their sync job; there is no list of sync jobs. Source: service-interface §2
 */
async function idsFromMasks(parts: SampleParts): Promise<string[]> {
  const ids: string[] = [];
  try {
    let read = 0;
    for await (const page of pagesOf("masks", parts, { pagesMax: parts.pages + 1 })) {
      read += 1;
      parts.note(`masks, page ${read}`, `${page.items.length} items`);
      for (const item of page.items) {
        const id = typeof item === "object" && item !== null ? Reflect.get(item, "syncJobId") : undefined;
        if (typeof id === "number" || typeof id === "string") ids.push(String(id));
      }
      if (read >= parts.pages) break;
    }
  } catch (error) {
    if (!(error instanceof ServiceError) || error.kind === "cancelled") throw error;
    parts.note("masks", `refused (${error.status ?? error.kind})`);
  }
  return ids;
}
