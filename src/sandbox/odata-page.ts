// One page of a list: items, context and the link to the next page. Pure. Called by the list handler.
import type { NextLinkStyle } from "./options.ts";

/** What is to be paged, and for which request. */
export interface PageRequest {
  /** The name of the list, as in `/odata/NAME`. */
  readonly list: string;
  /** Scheme, host and base path as the caller sees them, e.g. `http://127.0.0.1:8080`. */
  readonly baseUrl: string;
  readonly parameters: URLSearchParams;
  readonly select: readonly string[] | undefined;
  readonly skip: number;
  readonly pageSize: number;
  readonly style: NextLinkStyle;
}

/** The origin that the `wrong-scheme` links carry, as a proxy's inner address would. It answers nobody. */
const wrongOrigin = "http://sync-inner.invalid:8080";

/**
 * Builds the body of a list response. The link is there only when more items exist.
 * Source: service-interface §2 (common conventions), §8
 */
export function toPage<T, U>(items: readonly T[], request: PageRequest, toEntity: (item: T) => U): object {
  const { list, select, skip, pageSize, baseUrl } = request;
  const end = skip + pageSize;
  const choice = select === undefined || select.includes("*") ? "" : `(${select.join(",")})`;
  return {
    "@odata.context": `${baseUrl}/odata/$metadata#${list}${choice}`,
    value: items.slice(skip, end).map(toEntity),
    ...(items.length > end ? { "@odata.nextLink": nextLink(request, end) } : {}),
  };
}

function nextLink(request: PageRequest, skip: number): string {
  const kept = new URLSearchParams(request.parameters);
  kept.delete("$skip");
  kept.append("$skip", String(skip));
  // The `$` of an option stays as it is, as ASP.NET Core OData writes it.
  const query = kept.toString().replaceAll("%24", "$");
  const target = `${request.list}?${query}`;
  if (request.style === "relative") return target;
  if (request.style === "absolute") return `${request.baseUrl}/odata/${target}`;
  return `${wrongOrigin}${new URL(request.baseUrl).pathname.replace(/\/$/, "")}/odata/${target}`;
}
