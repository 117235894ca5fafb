// Whether a mask of the service is among those that `run.fromMasks` picks. Pure; called by work/expand-masks.ts and `syncline doctor`.
import { matchesGlob } from "node:path";

/** What a policy picks masks by. `name` is a glob with * and ?. */
export interface MaskFilter {
  readonly type?: string;
  readonly name?: string;
}

/** Tells whether a mask is picked; a mask without a name has the empty one. */
export function matchesMask(
  { type, name }: MaskFilter,
  mask: { readonly type?: string | null | undefined; readonly name?: string | null | undefined },
): boolean {
  return (type === undefined || mask.type === type) && (name === undefined || matchesGlob(mask.name ?? "", name));
}
