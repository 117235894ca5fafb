// Samples the lists of a service and proposes a mapping. Every request is a GET; each list costs a
// few pages. Called by cli/discover.ts.
import type { ListName } from "../../core/list-name.ts";
import { ServiceError } from "../../service/service-error.ts";
import { type ListProposal, proposeMapping } from "./propose.ts";
import { idsFromMasks, type ListSample, type SampleOptions, sampleList } from "./sample-list.ts";

/** What was found about one list. */
export interface DiscoveredList {
  readonly list: ListName;
  readonly sample: Omit<ListSample, "items"> & { readonly items: number };
  readonly proposal: ListProposal;
}

/** A list that could not be read. */
export interface UnreadableList {
  readonly list: ListName;
  readonly error: ServiceError;
}

/** How to examine the service. `syncJobIds`: sync jobs that the policies name. */
export interface DiscoverOptions extends SampleOptions {
  readonly lists: readonly ListName[];
  readonly syncJobIds: readonly string[];
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
  // The longest sample shows best which field holds the sync job's id; the other lists probably use
  // the same name.
  const joinElsewhere = samples
    .toSorted((a, b) => b.sample.items.length - a.sample.items.length)
    .map(({ list, sample }) => proposeMapping(list, sample.items, { syncJobIds, joinElsewhere: undefined }).join)
    .find((join) => join !== undefined);
  const found = samples.map(({ list, sample: { items, ...sample } }) => ({
    list,
    sample: { ...sample, items: items.length },
    proposal: proposeMapping(list, items, { syncJobIds, joinElsewhere }),
  }));
  return { found, unreadable, syncJobIds: syncJobIds.size };
}
