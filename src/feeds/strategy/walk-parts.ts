// What every walk of a list works with. Put together once a walk by walk-feed.ts.
import type { ItemBook, PagedList } from "./abstract-list.ts";
import type { ListKnowledge, StrategyLimits } from "./knowledge.ts";

/** What a walk works with. `save` keeps the knowledge in the same place for the next walk, on whatever replica. */
export interface WalkParts extends ItemBook {
  readonly list: PagedList;
  readonly nowMs: number;
  readonly limits: StrategyLimits;
  save(known: ListKnowledge): Promise<void>;
}
