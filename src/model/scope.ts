// What a caller of the dashboard and the API may do. Tokens and identities have a scope; what
// changes something names the one that it needs.

/** From least to most: look; pause, run and what else is undone; what concerns all policies. */
export const scopes = ["read", "operate", "admin"] as const;

/** One of them. Each allows what the ones before it allow. */
export type Scope = (typeof scopes)[number];

/** Whether a scope is enough for what needs another. */
export function reaches(scope: Scope, needed: Scope): boolean {
  return scopes.indexOf(scope) >= scopes.indexOf(needed);
}
