// Finds links that open something by themselves: Syncline stores none of them. The bearer token
// goes with a link anyway, so one that only says where to resume may be stored.
import { isJsonObject, parseJson } from "./json.ts";
import { withoutKnownSecrets } from "./secrets.ts";
import { hashText } from "./stable-hash.ts";

/** Parameter names (small letters and digits only) that sign or authorize. */
const credential = new RegExp(
  [
    "^(?:sig|sas|hmac|jwt|pwd|auth|authorization|authentication|tempauth|(?:j|php|asp)?sess(?:ion)?(?:id|token|key)?)$",
    "signature|secret|passw(?:or)?d|passphrase|credential|oauth",
    "(?:api|access|subscription|license|function|host|account|client|shared|private|auth)keys?$",
    "(?:access|auth|id|api|bearer|refresh|security|session|csrf|xsrf|user|identity|account|client|service)tokens?$",
  ].join("|"),
);

/** Names of tokens that are positions: `$skiptoken`, `continuationToken`, `nextPageToken`. */
const cursor =
  /^x?(?:next|prev(?:ious)?|pag(?:e|ing|ination)|skip|continu(?:e|ation)|delta|sync|cursor|resum(?:e|ption)|scroll|start|after|before|offset|position|marker)+tokens?$/;

/** Names that are credentials for some services and positions for others. */
const doubtful = /^(?:key|code|pass|ticket|sid)$|token|auth(?!or)/;

/** Parameters that name, cut or order the whole list: the same on each page. */
const ofTheList =
  /^(?:repository|api-?version|limit|size|page-?size|per-?page|max-?(?:results|items|page-?size)|\$(?:select|expand|filter|orderby|search|count|top|format))$/i;

/**
 * Says what in a link opens something by itself: a parameter's name, `JWT` and the like. A doubtful
 * name is a position when it is the only one that varies on the list's own path (`listPath`).
 */
export function credentialIn(link: string, listPath: string | undefined): string | undefined {
  // Relative links count, too.
  const placeholder = /^not-kept:([^:]*):/.exec(link)?.[1];
  if (placeholder !== undefined) return placeholder;
  if (!URL.canParse(link, "https://a.invalid")) return "scheme";
  const { protocol, username, password, pathname, searchParams } = new URL(link, "https://a.invalid");
  if (!/^https?:$/.test(protocol)) return "scheme";
  if (username !== "" || password !== "") return "user name";
  if (withoutKnownSecrets(link) !== link) return "secret";
  if (hasJwt(pathname) || [...searchParams.values()].some(hasJwt)) return "JWT";
  const names = [...searchParams.keys()];
  const isOwnPath = listPath !== undefined && pathname.toLowerCase().endsWith(listPath.toLowerCase());
  const positions = names.filter((name) => !ofTheList.test(name));
  return names.find((name) => {
    const plain = name.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
    if (credential.test(plain)) return true;
    return doubtful.test(plain) && !cursor.test(plain) && !(isOwnPath && positions.length === 1);
  });
}

/** What is kept in place of a link that carries a credential: unique, and it leads nowhere. */
export function placeholderFor(link: string, found: string): string {
  return `not-kept:${encodeURIComponent(found)}:${hashText(link, 32)}`;
}

/** Three or more parts between dots, the first of them a base64 JSON object with `alg`. */
function hasJwt(text: string): boolean {
  return text.split(/[^\w.-]+/).some((word) => word.split(".").slice(0, -2).some(isJwtHeader));
}

function isJwtHeader(part: string): boolean {
  const header = parseJson(Buffer.from(part, "base64url").toString());
  return isJsonObject(header) && typeof header["alg"] === "string";
}
