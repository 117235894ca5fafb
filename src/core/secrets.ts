// The last net under everything that Syncline prints: the secrets that this process knows, and how they are taken out of a text.
// Whoever reads a secret notes it here; the log and the command line put every line through. Errors are built without secrets
// in the first place, so nothing here is what keeps them out: it is for what nobody thought of, such as another's stack trace.

const secretLengthMin = 8;
const secretsMax = 500;
/** A piece of a secret that is cut off shows more than a word might, from here on. */
const beginningMin = 16;
const mark = "[…]";

/** How long a secret is remembered: what is read again and again until newer ones push it out, what is read once at the start for good. */
type SecretLife = "passing" | "lasting";

/** Known values, the oldest first. Rotated ones stay for a while: a line about an old token may come late. */
const known: Readonly<Record<SecretLife, Set<string>>> = { passing: new Set(), lasting: new Set() };
/** The same, the longest first: a secret that begins with another one must not lose its beginning only. */
let longestFirst: readonly string[] = [];

/** Remembers a secret of this process: it is taken out of every later line. Shorter than 8 characters it is left alone, being also a word. */
export function noteSecret(secret: string, life: SecretLife = "passing"): void {
  const texts = known[life];
  for (const form of new Set([
    secret,
    encodeURIComponent(secret.toWellFormed()),
    JSON.stringify(secret).slice(1, -1),
  ])) {
    if (form.length < secretLengthMin) continue;
    // Seen again, it counts as new.
    texts.delete(form);
    texts.add(form);
  }
  for (const oldest of texts) {
    if (texts.size <= secretsMax) break;
    texts.delete(oldest);
  }
  longestFirst = [...known.passing, ...known.lasting].sort((a, b) => b.length - a.length);
}

/** Remembers the password of a URL for good, in the form it has there and decoded; also of a URL that is wrong, as one with a bare `/` in it. */
export function noteUrlPassword(url: string): void {
  // Up to the last @: in a wrong one all the rest may be the password.
  const userInfo = /^[a-z][a-z0-9+.-]*:\/\/(.*)@/is.exec(url)?.[1] ?? "";
  const password = userInfo.includes(":") ? userInfo.slice(userInfo.indexOf(":") + 1) : "";
  noteSecret(password, "lasting");
  try {
    noteSecret(decodeURIComponent(password), "lasting");
  } catch {
    // A stray percent sign: then the password is what stands there.
  }
}

/** Takes the noted secrets out of a text; everything else stays as it is. For results, which are data. */
export function withoutKnownSecrets(text: string): string {
  let result = text;
  for (const secret of longestFirst) if (result.includes(secret)) result = result.replaceAll(secret, mark);
  return result;
}

/** Takes out what looks like a secret whoever it belongs to: bearer and basic credentials, JWTs, private keys, signing secrets of webhooks, what URLs carry besides host and path. */
export function withoutSecretShapes(text: string): string {
  // One look spares most texts the six below: each of these shapes has one of these signs.
  if (!/bearer|basic|eyJ|-----BEGIN|whsec_|:\/\//i.test(text)) return text;
  return text
    .replaceAll(/\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{16,}/gi, `$1 ${mark}`)
    .replaceAll(/\beyJ[A-Za-z0-9_-]{5,}(\.[A-Za-z0-9_-]*)*/g, mark)
    .replaceAll(/\bwhsec_[A-Za-z0-9+/=]{16,}/g, mark)
    .replaceAll(/-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(-----END [A-Z ]*PRIVATE KEY-----)?/g, mark)
    .replaceAll(/\b([a-z][a-z0-9+.-]{0,20}:\/\/)[^\s/@?#"'<>]*@/gi, "$1")
    .replaceAll(/(https?:\/\/[^\s?"'<>]*)\?[^\s"'<>]*/gi, `$1?${mark}`);
}

/** Takes noted secrets and what looks like one out of a text. For what is said about things: logs, errors, notes. */
export function withoutSecrets(text: string): string {
  return withoutSecretShapes(withoutKnownSecrets(text));
}

/** As withoutSecrets, and without the beginnings of noted secrets: whoever prints what it sends cuts it off somewhere. For what others print. */
export function withoutCutSecrets(text: string): string {
  let result = withoutSecrets(text);
  for (const secret of longestFirst) {
    if (secret.length <= beginningMin) continue;
    const beginning = secret.slice(0, beginningMin);
    for (let at = result.indexOf(beginning); at >= 0; at = result.indexOf(beginning, at)) {
      let end = at + beginningMin;
      while (end < result.length && result[end] === secret[end - at]) end += 1;
      result = result.slice(0, at) + mark + result.slice(end);
    }
  }
  return result;
}
