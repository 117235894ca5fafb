// Whether a link opens something by itself: then it is kept nowhere. Pure; asked by feeds/ and store/ before a page's link goes to Redis.

/** Parameters that sign or authorize; what only says where to go on (`$skiptoken`, `continuationToken`, `pageToken`) is none. */
const credential =
  /^(?:sig|sas|code|key|jwt|pwd|pass|(?!.*(?:skip|page|next|continu|delta|sync|cursor)).*token.*|.*(?:signature|secret|password|passwd|credential|auth|api[-_]?key|access[-_]?key).*)$/i;

/** Tells whether a link carries a user name, a parameter that looks like a credential, or a JWT; true for what is no http(s) link. */
export function hasCredential(link: string): boolean {
  // Relative ones are looked at, too.
  if (!URL.canParse(link, "https://a.invalid")) return true;
  const { protocol, username, password, searchParams } = new URL(link, "https://a.invalid");
  if (!/^https?:$/.test(protocol) || username !== "" || password !== "") return true;
  return [...searchParams].some(([name, value]) => credential.test(name) || /^eyJ[\w-]{5,}/.test(value));
}
