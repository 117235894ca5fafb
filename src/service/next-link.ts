// Decides where a next link may lead: resolved by the OData rule, then pinned to the configured service. Pure; called by pages.ts.
// Never follows a link's scheme, host or port: the path that goes out is always the collection's own, only the query is the link's.
import type { PagingReason } from "./service-error.ts";

/** A link and what it is read against. */
export interface NextLink {
  readonly link: string;
  /** The payload's `@odata.context`, if it has one; may itself be relative. */
  readonly contextUrl: string | undefined;
  /** The URL that the page was asked from. */
  readonly requestUrl: URL;
  /** The collection that is walked: its URL on the configured origin, without a query. */
  readonly collectionUrl: URL;
  /** The service's base path, without a slash at its end. */
  readonly basePath: string;
}

/** The URL to ask next (`rebased` when the link named another origin), or why the link is refused. */
export type ResolvedLink =
  | { readonly url: URL; readonly rebased: boolean }
  | { readonly refused: PagingReason; readonly why: string };

const linkLengthMax = 64 * 1024;

/**
 * Resolves a next link. A relative link is read against the context URL, which is read against the request URL; without a
 * context, or when that leads elsewhere, against the request URL. Proxies often put a wrong scheme, host or port into a link:
 * it is accepted when its path is the walked collection under the base path, and sent to the configured origin.
 * Source: OData JSON Format 4.0 §4.3, §4.4; design §4.8.
 */
export function resolveNextLink(next: NextLink): ResolvedLink {
  const badText = refuseText(next.link);
  if (badText !== undefined) return badText;
  const bases = [contextBase(next), next.requestUrl].filter((base) => base !== undefined);
  let refusal: ResolvedLink = { refused: "malformed-link", why: "the link cannot be read as a URL" };
  for (const base of bases) {
    const pinned = pin(next, base);
    if ("url" in pinned) return pinned;
    refusal = pinned;
  }
  return refusal;
}

function refuseText(link: string): ResolvedLink | undefined {
  if (link.trim() === "") return { refused: "empty-link", why: "the link is empty" };
  if (link.length > linkLengthMax)
    return { refused: "link-too-long", why: `the link is over ${linkLengthMax} characters` };
  const malformed = (why: string): ResolvedLink => ({ refused: "malformed-link", why });
  // The URL parser drops or rewrites all of these silently, so they are looked for in the text itself.
  if (/[\p{Cc}\p{Zs}\p{Zl}\p{Zp}]/u.test(link)) return malformed("the link holds white space or control characters");
  if (link.includes("#")) return malformed("the link has a fragment");
  const head = link.split("?", 1)[0] ?? "";
  if (head.includes("\\")) return malformed("the link's path holds a backslash");
  if (/%(?:2e|2f|5c|00)/i.test(head)) return malformed("the link's path holds an encoded dot, slash, backslash or NUL");
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(head)?.[1]?.toLowerCase();
  if (scheme !== undefined && scheme !== "http" && scheme !== "https") {
    return { refused: "link-scheme", why: "the link is not http or https" };
  }
  if (scheme !== undefined && !/^https?:\/\/[^/]/i.test(head)) return malformed("the link has no host");
  if (/^\/\/(?:\/|$)/.test(head)) return malformed("the link has no host");
  const authority = /^(?:https?:)?\/\/([^/]*)/i.exec(head)?.[1];
  if (authority?.includes("@")) return { refused: "link-userinfo", why: "the link carries a user name or password" };
  return undefined;
}

function contextBase(next: NextLink): URL | undefined {
  if (next.contextUrl === undefined || !URL.canParse(next.contextUrl, next.requestUrl.href)) return undefined;
  const base = new URL(next.contextUrl, next.requestUrl);
  return base.protocol === "http:" || base.protocol === "https:" ? base : undefined;
}

function pin(next: NextLink, base: URL): ResolvedLink {
  if (!URL.canParse(next.link, base.href))
    return { refused: "malformed-link", why: "the link cannot be read as a URL" };
  const resolved = new URL(next.link, base);
  if (resolved.username !== "" || resolved.password !== "") {
    return { refused: "link-userinfo", why: "the link carries a user name or password" };
  }
  if (!resolved.pathname.startsWith(`${next.basePath}/`)) {
    return { refused: "link-outside-base-path", why: "the link leads outside the service's base path" };
  }
  if (!isSamePath(resolved.pathname, next.collectionUrl.pathname)) {
    return { refused: "link-other-collection", why: "the link leads to something other than the list that is read" };
  }
  const query = next.link.indexOf("?");
  const url = new URL(
    `${next.collectionUrl.origin}${next.collectionUrl.pathname}${query < 0 ? "" : next.link.slice(query)}`,
  );
  return { url, rebased: resolved.origin !== next.collectionUrl.origin };
}

/** Servers write their own spelling of a path into links: percent-encoding and letter case may differ. */
function isSamePath(left: string, right: string): boolean {
  const plain = (path: string) => {
    try {
      return decodeURIComponent(path).toLowerCase();
    } catch {
      return undefined;
    }
  };
  return plain(left) !== undefined && plain(left) === plain(right);
}
