// Who asks and what they may do: of an identity provider's claims, by the grants of the --web-auth
// file. Pure.
import type { AuthSettings } from "../config/auth-file.ts";
import { isJsonObject, type JsonObject } from "../core/json.ts";
import { labelsOf, selectorOf } from "../model/label.ts";
import { reaches, type Scope } from "../model/scope.ts";
import type { Bounds } from "../queries/query-context.ts";
import { WebError } from "./problem.ts";

/** Who asks, and what they are held to. */
export interface Caller extends Bounds {
  readonly name: string;
  readonly scope: Scope;
  /** Set where the server changes nothing: then the scope is `read`. */
  readonly isHeldByServer?: true;
}

/** The person at this machine, while neither tokens nor a provider are configured. */
export const localCaller: Caller = { name: "local", scope: "read", services: undefined, labels: undefined };

/** @throws WebError for a caller who may not. */
export function checkScope({ name, scope, isHeldByServer }: Caller, needed: Scope): void {
  if (reaches(scope, needed)) return;
  throw notYours(
    isHeldByServer ? "this server is read-only" : `caller "${name}" may ${scope}, and this needs ${needed}`,
  );
}

/** What is more than a caller may. */
export function notYours(detail: string): WebError {
  return new WebError({ status: 403, name: "scope-too-small", title: "You may not", detail });
}

/**
 * For what belongs to no policy, or to all: services, lists, the record of changes.
 * @throws WebError for a caller who is held to labels.
 */
export function checkWhole({ name, scope, labels }: Caller): void {
  if (labels === undefined) return;
  const may = reaches(scope, "operate") ? "see and change" : "see";
  throw notYours(`caller "${name}" may ${may} only policies with ${labels}, and this is about more than them`);
}

/** A caller who is let in no further. `actor`: the name, where it is proven. */
export class AccessDenied extends WebError {
  readonly actor: string | undefined;

  constructor(problem: WebError["problem"], actor?: string) {
    super(problem);
    this.actor = actor;
  }
}

/** What the caller shows proves nothing. `why` never holds it. */
export function notProven(why: string): AccessDenied {
  const hint = "send Authorization: Bearer TOKEN; `syncline token` makes one";
  return new AccessDenied({ status: 401, name: "unauthenticated", title: "Who are you?", detail: why, hint });
}

const nameCharactersMax = 128;

/** The caller with these claims, by the first grant that fits. @throws AccessDenied without one. */
export function callerFrom(claims: JsonObject, { name: claim, grants }: Pick<AuthSettings, "name" | "grants">): Caller {
  const given = valuesOf(claims, claim)[0] ?? "";
  const name = given.replaceAll(/\p{C}/gu, "").trim().slice(0, nameCharactersMax);
  if (name === "") throw notProven(`the identity provider gives no claim "${claim}", which is to be the caller's name`);
  const grant = grants.find((one) => valuesOf(claims, one.claim).includes(one.value));
  if (grant === undefined) throw noGrant(name, grants);
  const { labels } = grant;
  return {
    name,
    scope: grant.scope,
    services: grant.services && new Set(grant.services),
    labels: labels && selectorOf(labelsOf({ labels })),
  };
}

function noGrant(name: string, grants: AuthSettings["grants"]): AccessDenied {
  const claims = [...new Set(grants.map(({ claim }) => claim))].join(", ");
  const detail = `"${name}" is signed in, and may see nothing here: no grant fits`;
  const hint = `an administrator adds a grant to the --web-auth file, or changes the claims of ${name} (${claims}); then sign in again`;
  return new AccessDenied({ status: 403, name: "no-grant", title: "You may not look here", detail, hint }, name);
}

/** The values of a claim: `a.b` is a claim of this name, or b in a. Scopes stand in one text. */
function valuesOf(claims: JsonObject, claim: string): readonly string[] {
  const value = below(claims, claim) ?? claim.split(".").reduce<unknown>(below, claims);
  const isSpaced = claim === "scope" || claim === "scp";
  const values = isSpaced && typeof value === "string" ? value.split(" ") : [value].flat();
  return values.filter((one) => /^(string|number|boolean)$/.test(typeof one)).map(String);
}

function below(value: unknown, key: string): unknown {
  return isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}
