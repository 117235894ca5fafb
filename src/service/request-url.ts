// Builds the URLs of the service: both path forms, the three identity forms, the query options.
// Adds nothing that the caller did not ask for. Pure.
import { factsOf, type Operation, type PathForm } from "./operations.ts";
import type { IdentityForm, QuoteStrings } from "./service-options.ts";

/** The id of an entity: a whole number, or its digits as text beyond 2^53-1. */
export type Key = number | string;

/** Query options of every operation. Source: service-interface §4.2. */
export interface RepositoryQuery {
  /** Destination repository key. */
  readonly repository?: string | undefined;
}

/** The query for this repository; null: the service's default one, which is not named. */
export function inRepository({ repository }: { readonly repository: string | null }): RepositoryQuery {
  return repository === null ? {} : { repository };
}

/** Query options of the GET operations. Source: service-interface §4.2. */
export interface ReadQuery extends RepositoryQuery {
  /** Properties to return; sent as `$select`. */
  readonly select?: readonly string[] | undefined;
  /** Properties to expand; sent as `$expand`. */
  readonly expand?: readonly string[] | undefined;
}

/** Where the service is: its origin and its base path, empty or `/…` without a trailing slash. */
export interface ServiceBase {
  readonly origin: string;
  readonly basePath: string;
}

/** Which of the equivalent forms to write. */
export interface UrlForms {
  readonly pathForm: PathForm;
  readonly identityForm: IdentityForm;
  readonly quoteStrings: QuoteStrings;
}

/** What an operation is applied to. */
export interface RequestTarget {
  readonly operation: Operation;
  /** The key, or the identity's id. */
  readonly key?: Key | undefined;
  readonly query?: ReadQuery | undefined;
  /** Ask for the number of items instead of the items. */
  readonly count?: boolean | undefined;
}

/** Reads a base URL. @throws TypeError, which repeats nothing that may be a secret. */
export function parseBaseUrl(text: string): ServiceBase {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "https:" && url.protocol !== "http:")) {
    throw new TypeError("the base URL is not an http(s) URL: write it like https://sync.example.com");
  }
  if (url.username !== "" || url.password !== "" || /^[a-z]+:[\\/]*[^/\\?#]*@/i.test(text.trim())) {
    throw new TypeError("the base URL carries a user name or password: take it out, the service wants a bearer token");
  }
  if (/[?#]/.test(text)) throw new TypeError("the base URL carries a query or a fragment: take it out");
  return { origin: url.origin, basePath: url.pathname.replace(/\/+$/, "") };
}

/** Whether a URL lies at or under the base: the token goes nowhere else. */
export function isUnderBase(url: URL, base: ServiceBase): boolean {
  const clean = url.username === "" && url.password === "";
  return clean && url.origin === base.origin && url.pathname.startsWith(`${base.basePath}/`);
}

/** Builds the URL of a request. @throws RangeError when key, id or repository are not valid. */
export function toRequestUrl(base: ServiceBase, target: RequestTarget, forms: UrlForms): URL {
  const facts = factsOf(target.operation);
  const query = target.query ?? {};
  if (facts.target === "identity") return toIdentityUrl(base, target, forms);
  let path: string = facts.path;
  if (facts.target === "key") {
    const key = checkedKey(target.key);
    path += forms.pathForm === "parentheses" ? `(${key})` : `/${key}`;
  }
  if (target.count === true) return withQuery(base, `${path}/$count`, [["repository", query.repository]]);
  return withQuery(base, path, [["repository", query.repository], ...readOptions(query)]);
}

function toIdentityUrl(base: ServiceBase, target: RequestTarget, forms: UrlForms): URL {
  const id = target.key === undefined ? "" : String(target.key);
  const repository = target.query?.repository ?? "";
  if (id === "") throw new RangeError("the identity's id is missing");
  if (repository === "") throw new RangeError("the repository is missing: an identity belongs to one");
  const options = readOptions(target.query ?? {});
  const path = factsOf(target.operation).path;
  if (forms.identityForm === "query") {
    return withQuery(base, `${path}/userorgroup`, [["id", id], ["repository", repository], ...options]);
  }
  const name = forms.identityForm === "qualified" ? "ecmsync.userorgroup" : "userorgroup";
  const idText = literal(id, forms.quoteStrings === "all");
  const repositoryText = literal(repository, forms.quoteStrings !== "none");
  return withQuery(base, `${path}/${name}(id=${idText},repository=${repositoryText})`, options);
}

function checkedKey(key: Key | undefined): string {
  const text = String(key ?? "");
  const whole = typeof key === "number" ? Number.isSafeInteger(key) && key >= 0 : /^\d{1,19}$/.test(text);
  if (!whole) throw new RangeError("the key must be a whole number, such as 42");
  return text;
}

/** A value inside the parentheses: percent-encoded, and when quoted an OData literal ('a''b'). */
function literal(value: string, quoted: boolean): string {
  const encode = (text: string) => encodeURIComponent(text).replaceAll("(", "%28").replaceAll(")", "%29");
  return quoted ? `'${encode(value.replaceAll("'", "''"))}'` : encode(value).replaceAll("'", "%27");
}

function readOptions({ select, expand }: ReadQuery): [string, string | undefined][] {
  return [
    ["$select", select?.join(",")],
    ["$expand", expand?.join(",")],
  ];
}

/** Option names keep `$` and lists keep commas: some servers do not decode them. */
function withQuery(base: ServiceBase, path: string, options: readonly (readonly [string, string | undefined])[]): URL {
  const encode = (text: string) => encodeURIComponent(text).replaceAll("%2C", ",").replaceAll("%24", "$");
  const query = options.flatMap(([name, value = ""]) => (value === "" ? [] : [`${name}=${encode(value)}`])).join("&");
  return new URL(`${base.origin}${base.basePath}${path}${query === "" ? "" : `?${query}`}`);
}
