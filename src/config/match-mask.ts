// Whether `run.fromMasks` picks a mask of the service. Pure; used when masks fan out and by
// `syncline doctor`.
import { matchesGlob } from "node:path";

/** The masks that a policy picks. `name` is a glob with * and ?. */
export interface MaskFilter {
  readonly type?: string;
  readonly name?: string;
}

/** Whether a mask is picked; a mask without a name has the empty one. */
export function matchesMask(
  { type, name }: MaskFilter,
  mask: { readonly type?: string | null | undefined; readonly name?: string | null | undefined },
): boolean {
  return (type === undefined || mask.type === type) && (name === undefined || matchesGlob(mask.name ?? "", name));
}
