// Where new items appear in a list. The trail is the shape of one walk, front to back: known items,
// new ones, or one run of each. It is the only evidence of an undocumented order. Pure.
import type { Novelty } from "../../store/known-items.ts";

/** The shape so far: `known-new` grew at its end, `new-known` at its front, `scattered` neither. */
export const trailShapes = ["empty", "known", "new", "known-new", "new-known", "scattered"] as const;

/** One of the six shapes. */
export type Trail = (typeof trailShapes)[number];

const after: Readonly<Record<Trail, Readonly<Record<"known" | "new", Trail>>>> = {
  empty: { known: "known", new: "new" },
  known: { known: "known", new: "known-new" },
  new: { known: "new-known", new: "new" },
  "known-new": { known: "scattered", new: "known-new" },
  "new-known": { known: "new-known", new: "scattered" },
  scattered: { known: "scattered", new: "scattered" },
};

/**
 * The trail after these items. A repeated item counts for nothing: paging by offset shifts while a
 * list changes.
 */
export function follow(trail: Trail, novelties: readonly Novelty[]): Trail {
  return novelties.reduce<Trail>((shape, novelty) => (novelty === "again" ? shape : after[shape][novelty]), trail);
}

/** Whether a list that always grows at this end can leave such a trail. */
export function fits(order: "tail" | "head", trail: Trail): boolean {
  return trail !== "scattered" && trail !== (order === "tail" ? "new-known" : "known-new");
}
