// One page of a list: items, context and the link to the next page, in the styles of real services.
// A link is the list's address with a token in `$skip` or `$skiptoken`; an opaque link stands for
// such an address.
import { hash } from "node:crypto";
import type { Target } from "./address.ts";
import { chanceUuid } from "./chance.ts";
import type { SandboxSettings, TokenStyle } from "./options.ts";
import { Refusal } from "./reply.ts";

/** Where a page begins: after so many items, or after the item with this key. */
export type Place = { readonly skip: number } | { readonly after: number };

/** What to page, and for which request. */
export interface PageRequest {
  /** The name of the list, as in `/odata/NAME`. */
  readonly list: string;
  /** Scheme, host and base path as the caller sees them, e.g. `http://127.0.0.1:8080`. */
  readonly baseUrl: string;
  readonly parameters: URLSearchParams;
  readonly select: readonly string[] | undefined;
  /** The number of items before the page. */
  readonly start: number;
  readonly settings: SandboxSettings;
  readonly links: KeptLinks;
}

/** The origin of `wrong-host` links, as a proxy's inner address. No server answers there. */
const wrongOrigin = "http://sync-inner.invalid:8080";

/** The styles of mixed links, page after page. */
const mixedStyles = ["absolute", "query", "path", "opaque", "relative", "wrong-host"] as const;

/** How many links are kept; the oldest are forgotten, as services do. */
const keptLinksMax = 10_000;

/** Builds the body of a list response. Source: service-interface §2 (common conventions), §8 */
export function toPage<T, U>(
  items: readonly T[],
  request: PageRequest,
  { keyOf, toEntity }: { readonly keyOf: (item: T) => number; readonly toEntity: (item: T) => U },
): object {
  const { list, select, start, baseUrl } = request;
  const { pageSize, emptyLastPage } = request.settings;
  const end = start + pageSize;
  const page = items.slice(start, end);
  const last = page.at(-1);
  const goesOn = last !== undefined && (emptyLastPage ? page.length === pageSize : items.length > end);
  const choice = select === undefined || select.includes("*") ? "" : `(${select.join(",")})`;
  return {
    "@odata.context": `${baseUrl}/odata/$metadata#${list}${choice}`,
    value: page.map(toEntity),
    ...(goesOn ? { "@odata.nextLink": nextLink(request, { skip: end, after: keyOf(last) }) } : {}),
  };
}

/** The place that a `$skiptoken` stands for. @throws Refusal 400 for one that is not known. */
export function readToken(token: string, links: KeptLinks): Place {
  const kept = links.find(token);
  const key = kept ?? /^Id-(\d{1,15})$/.exec(token)?.[1] ?? keyInJson(token);
  if (key !== undefined) return { after: Number(key) };
  const skip = /^from=(\d{1,9})\+&to=100%$/.exec(token)?.[1];
  if (skip !== undefined) return { skip: Number(skip) };
  throw new Refusal(400, "The value of the query option '$skiptoken' is not known, or not any more.");
}

/** Replaces an opaque path such as `/odata/$next/TOKEN` by its address. @throws Refusal 400 */
export function openLink(target: Target, links: KeptLinks): Target {
  const [first, second, token, ...rest] = target.segments;
  if (first !== "odata" || second !== "$next" || token === undefined || rest.length > 0) return target;
  const [list = "", query] = links.find(token)?.split("?") ?? [];
  if (query === undefined) throw new Refusal(400, "The link is not known, or not any more.");
  return {
    segments: ["odata", list],
    parameters: target.parameters.size > 0 ? target.parameters : new URLSearchParams(query),
  };
}

/** Maps tokens without content (GUIDs, opaque paths) to what they stand for. */
export class KeptLinks {
  readonly #texts = new Map<string, string>();

  /** Keeps a text and returns its token, always the same for the same text. */
  keep(text: string, style: TokenStyle, seed: number): string {
    const number = hash("sha256", text, "buffer").readUIntBE(0, 6);
    const token = style === "guid" ? chanceUuid(seed, "link", text) : tokenOf(style, { skip: number, after: number });
    this.#texts.delete(token);
    this.#texts.set(token, text);
    const [oldest] = this.#texts.keys();
    if (this.#texts.size > keptLinksMax && oldest !== undefined) this.#texts.delete(oldest);
    return token;
  }

  /** What was kept under the token. */
  find(token: string): string | undefined {
    return this.#texts.get(token);
  }
}

function nextLink(request: PageRequest, next: { readonly skip: number; readonly after: number }): string {
  const { list, baseUrl, settings, links } = request;
  const { tokenStyle, seed } = settings;
  const [option, token] =
    tokenStyle === "number"
      ? (["$skip", String(next.skip)] as const)
      : tokenStyle === "guid"
        ? (["$skiptoken", links.keep(String(next.after), "guid", seed)] as const)
        : (["$skiptoken", tokenOf(tokenStyle, next)] as const);
  const kept = new URLSearchParams(request.parameters);
  kept.delete("$skip");
  kept.delete("$skiptoken");
  kept.append(option, token);
  // The `$` of an option stays as it is, as ASP.NET Core OData writes it.
  const target = `${list}?${kept.toString().replaceAll("%24", "$")}`;
  const path = new URL(baseUrl).pathname.replace(/\/$/, "");
  switch (styleOf(request)) {
    case "relative":
      return target;
    case "absolute":
      return `${baseUrl}/odata/${target}`;
    case "path":
      return `${path}/odata/${target}`;
    case "query":
      return target.slice(list.length);
    case "opaque":
      return `${path}/odata/$next/${encodeURIComponent(links.keep(target, tokenStyle, seed))}`;
    case "wrong-host":
      return `${wrongOrigin}${path}/odata/${target}`;
  }
}

function styleOf({ start, settings }: PageRequest): (typeof mixedStyles)[number] {
  const { nextLinkStyle, pageSize } = settings;
  if (nextLinkStyle !== "mixed") return nextLinkStyle;
  return mixedStyles[Math.floor(start / pageSize) % mixedStyles.length] ?? "absolute";
}

/** The text of a token with content: `number` and `encoded` by offset, the others by key. */
function tokenOf(
  style: Exclude<TokenStyle, "guid">,
  { skip, after }: { readonly skip: number; readonly after: number },
): string {
  switch (style) {
    case "number":
      return String(skip);
    case "key":
      return `Id-${after}`;
    // As SAP CAP writes it with `reliablePaging`.
    case "base64":
      return Buffer.from(JSON.stringify({ r: skip, c: [{ a: true, k: "Id", v: after }] })).toString("base64");
    // With characters that must be percent-encoded.
    case "encoded":
      return `from=${skip}+&to=100%`;
  }
}

function keyInJson(token: string): string | undefined {
  if (!token.startsWith("eyJ")) return undefined;
  return /"v":(\d{1,15})\}\]\}$/.exec(Buffer.from(token, "base64").toString("utf8"))?.[1];
}
