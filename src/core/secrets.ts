// The last net under all that Syncline prints: every reader of a secret notes it here; the log and
// the command line filter every line.

/** Shorter secrets may be words: they stay in the output. */
export const notedLengthMin = 8;

const secretsMax = 500;
/** A beginning of a secret from this length on is more than a word. */
const beginningMin = 16;
const mark = "[…]";

/** `passing`: noted anew at each read, so the oldest may be forgotten. `lasting`: noted once. */
type SecretLife = "passing" | "lasting";

/** Known secrets, oldest first. Rotated ones stay for a while: a line about one may come late. */
const known: Readonly<Record<SecretLife, Set<string>>> = { passing: new Set(), lasting: new Set() };
/** The same, longest first: a secret that begins with another one must go as a whole. */
let longestFirst: readonly string[] = [];

/** Notes a secret of 8 characters or more: it is taken out of every later line. */
export function noteSecret(secret: string, life: SecretLife = "passing"): void {
  const texts = known[life];
  for (const form of new Set([
    secret,
    encodeURIComponent(secret.toWellFormed()),
    JSON.stringify(secret).slice(1, -1),
  ])) {
    if (form.length < notedLengthMin) continue;
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

/** Notes the password of a URL for ever, as written and decoded; also of a malformed URL. */
export function noteUrlPassword(url: string): void {
  // Up to the last @: in a malformed URL all the rest may be the password.
  const userInfo = /^[a-z][a-z0-9+.-]*:\/\/(.*)@/is.exec(url)?.[1] ?? "";
  const password = userInfo.includes(":") ? userInfo.slice(userInfo.indexOf(":") + 1) : "";
  noteSecret(password, "lasting");
  try {
    noteSecret(decodeURIComponent(password), "lasting");
  } catch {
    // A stray percent sign: the password is what stands there.
  }
}

/** Takes noted secrets out of a text and leaves all else. For results, which are data. */
export function withoutKnownSecrets(text: string): string {
  let result = text;
  for (const secret of longestFirst) if (result.includes(secret)) result = result.replaceAll(secret, mark);
  return result;
}

/** Takes out what looks like a secret: credentials, keys, and user, password and query of URLs. */
export function withoutSecretShapes(text: string): string {
  // One test spares most texts the six below: each shape has one of these signs.
  if (!/bearer|basic|eyJ|-----BEGIN|whsec_|:\/\//i.test(text)) return text;
  return text
    .replaceAll(/\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{16,}/gi, `$1 ${mark}`)
    .replaceAll(/\beyJ[A-Za-z0-9_-]{5,}(\.[A-Za-z0-9_-]*)*/g, mark)
    .replaceAll(/\bwhsec_[A-Za-z0-9+/=]{16,}/g, mark)
    .replaceAll(/-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(-----END [A-Z ]*PRIVATE KEY-----)?/g, mark)
    .replaceAll(/\b([a-z][a-z0-9+.-]{0,20}:\/\/)[^\s/@?#"'<>]*@/gi, "$1")
    .replaceAll(/(https?:\/\/[^\s?"'<>]*)\?[^\s"'<>]*/gi, `$1?${mark}`);
}

/** Takes out noted secrets and what looks like one. For texts about things: logs, errors, notes. */
export function withoutSecrets(text: string): string {
  return withoutSecretShapes(withoutKnownSecrets(text));
}

/** Also takes out beginnings of noted secrets: another program may print what we sent, cut off. */
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
