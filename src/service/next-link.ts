// Decides where a next link may lead: under the base path of the configured origin, or nowhere. It
// never follows a link's scheme, host or port. Pure; called by pages.ts.
import type { PagingReason } from "./service-error.ts";

/** A link and what it is relative to. */
export interface NextLink {
  readonly link: string;
  /** The payload's `@odata.context`, if it has one; may itself be relative. */
  readonly contextUrl: string | undefined;
  /** The URL of the page that carried the link. */
  readonly requestUrl: URL;
  /** The URL of the list on the configured origin, without a query. */
  readonly collectionUrl: URL;
  /** The service's base path, without a trailing slash. */
  readonly basePath: string;
}

/**
 * The next URL (`rebased`: the link named another origin, or lacked the base path), or why the link
 * is refused.
 */
export type ResolvedLink =
  | { readonly url: URL; readonly rebased: boolean }
  | { readonly refused: PagingReason; readonly why: string };

const linkLengthMax = 64 * 1024;

/**
 * Resolves a next link: relative to the context URL, or else to the request URL. Behind proxies a
 * link often has a wrong origin, or lacks the base path that a proxy cuts off: such a one is
 * accepted only when its path is that of the list.
 * Source: OData JSON Format 4.0 §4.3, §4.4; docs/outcomes.md.
 */
export function resolveNextLink(next: NextLink): ResolvedLink {
  const badText = refuseText(next.link);
  if (badText !== undefined) return badText;
  // A bare query belongs to the page that carried it; the context's path is that of the metadata.
  const context = next.link.startsWith("?") ? undefined : contextBase(next);
  const bases = [context, next.requestUrl].filter((base) => base !== undefined);
  const read = bases.map((base) => toConfiguredOrigin(next, base));
  // Where the two readings differ, prefer the one that leads to the list itself.
  const best =
    read.find((one) => "url" in one && one.url.pathname === next.collectionUrl.pathname) ??
    read.find((one) => "url" in one) ??
    read.at(-1);
  return best ?? { refused: "malformed-link", why: "the link cannot be read as a URL" };
}

function refuseText(link: string): ResolvedLink | undefined {
  if (link.trim() === "") return { refused: "empty-link", why: "the link is empty" };
  if (link.length > linkLengthMax)
    return { refused: "link-too-long", why: `the link is over ${linkLengthMax} characters` };
  const malformed = (why: string): ResolvedLink => ({ refused: "malformed-link", why });
  // The URL parser silently drops or rewrites these, so check the text itself.
  if (/[\p{Cc}\p{Zs}\p{Zl}\p{Zp}]/u.test(link)) return malformed("the link holds white space or control characters");
  if (link.includes("#")) return malformed("the link has a fragment");
  const head = link.split("?", 1)[0] ?? "";
  if (head.includes("\\")) return malformed("the link's path holds a backslash");
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(head)?.[1]?.toLowerCase();
  if (scheme !== undefined && scheme !== "http" && scheme !== "https") {
    return { refused: "link-scheme", why: "the link is not http or https" };
  }
  if (scheme !== undefined && !/^https?:\/\/[^/]/i.test(head)) return malformed("the link has no host");
  if (/^\/\/(?:\/|$)/.test(head)) return malformed("the link has no host");
  const authority = /^(?:https?:)?\/\/([^/]*)/i.exec(head)?.[1];
  if (authority?.includes("@")) return { refused: "link-userinfo", why: "the link carries a user name or password" };
  // The URL parser also resolves encoded dots and turns backslashes into slashes.
  const bad = badPath(head.replace(/^(?:https?:)?\/\/[^/]*/i, ""));
  return bad === undefined ? undefined : malformed(`the link's path holds ${bad}`);
}

/** How often a path is decoded, as proxies on its way might do. */
const decodingsMax = 4;

/** Finds what may lead elsewhere after decoding. An encoded slash is allowed, as in base64. */
function badPath(path: string): string | undefined {
  if (path.includes("//")) return "an empty segment";
  // Plain dot segments are resolved before anything is sent.
  let plain = path.replaceAll(/(?<=^|\/)\.{1,2}(?=\/|$)/g, "");
  for (let round = 0; round < decodingsMax; round += 1) {
    if (/(?:^|\/)\.{1,2}(?:;|\/|$)/.test(plain)) return "an encoded dot segment";
    if (/[\\\p{Cc}]/u.test(plain)) return "an encoded backslash or control character";
    if (/%2e/i.test(plain)) return "an encoded dot";
    let decoded: string;
    try {
      // A percent sign in decoded text may be literal.
      decoded = decodeURIComponent(round === 0 ? plain : plain.replaceAll(/%(?![0-9a-f]{2})/gi, "%25"));
    } catch {
      return "a percent sign that encodes nothing";
    }
    if (decoded === plain) return undefined;
    plain = decoded;
  }
  return "what is encoded again and again";
}

function contextBase(next: NextLink): URL | undefined {
  if (next.contextUrl === undefined || !URL.canParse(next.contextUrl, next.requestUrl.href)) return undefined;
  const base = new URL(next.contextUrl, next.requestUrl);
  return base.protocol === "http:" || base.protocol === "https:" ? base : undefined;
}

function toConfiguredOrigin(next: NextLink, base: URL): ResolvedLink {
  if (!URL.canParse(next.link, base.href))
    return { refused: "malformed-link", why: "the link cannot be read as a URL" };
  const resolved = new URL(next.link, base);
  if (resolved.username !== "" || resolved.password !== "") {
    return { refused: "link-userinfo", why: "the link carries a user name or password" };
  }
  const listPath = next.collectionUrl.pathname;
  const isUnder = resolved.pathname.startsWith(`${next.basePath}/`);
  const isCut = !isUnder && isSamePath(`${next.basePath}${resolved.pathname}`, listPath);
  if (!isUnder && !isCut) {
    return { refused: "link-outside-base-path", why: "the link leads outside the service's base path" };
  }
  const bad = badPath(resolved.pathname);
  if (bad !== undefined) return { refused: "malformed-link", why: `the link, read as it is meant, holds ${bad}` };
  const rebased = isCut || resolved.origin !== next.collectionUrl.origin;
  const isList = isCut || isSamePath(resolved.pathname, listPath);
  if (rebased && !isList) {
    return { refused: "link-other-origin", why: "the link names another origin, and a path that is not the list's" };
  }
  const query = next.link.indexOf("?");
  const path = isList ? listPath : resolved.pathname;
  return { url: new URL(`${next.collectionUrl.origin}${path}${query < 0 ? "" : next.link.slice(query)}`), rebased };
}

/** Whether two paths are the same: servers may change percent-encoding and letter case in links. */
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
