// What every walk of a list works with. Made once a walk by walk-feed.ts.
import type { ItemBook, PagedList } from "./abstract-list.ts";
import type { ListKnowledge, StrategyLimits } from "./knowledge.ts";

/** What a walk works with. `save` stores the knowledge for the next walk, on any replica. */
export interface WalkParts extends ItemBook {
  readonly list: PagedList;
  readonly nowMs: number;
  readonly limits: StrategyLimits;
  save(known: ListKnowledge): Promise<void>;
}
