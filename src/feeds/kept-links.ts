// What of a list's knowledge goes to Redis: the links to go on from, unless they would open the list for whoever reads them there. Pure;
// called by walk-feed.ts. Without them a list is read from its first page each time, which costs requests and no item.
import { hasCredential } from "../core/link-credential.ts";
import type { ListKnowledge, UnderwayWalk } from "./strategy/knowledge.ts";
import { freshWalk } from "./strategy/whole-walk.ts";

/** The knowledge without links that carry a credential; a walk that stands on one begins anew. */
export function withoutCredentials(known: ListKnowledge): ListKnowledge {
  const { lastPage, openFrom, underway } = known;
  const links = areSafe(lastPage, openFrom) ? {} : { lastPage: null, openFrom: null };
  return { ...known, ...links, underway: underway === null ? null : withoutSuch(underway) };
}

function withoutSuch(walk: UnderwayWalk): UnderwayWalk {
  const { next, lastPage, openFrom, startedAtMs, sinceSeq, restarts } = walk;
  return areSafe(next, lastPage, openFrom) ? walk : { ...freshWalk(startedAtMs, sinceSeq), restarts };
}

function areSafe(...links: readonly (string | null)[]): boolean {
  return links.every((link) => link === null || !hasCredential(link));
}
