// Hides what looks like a secret in a source line before it is shown. Called by source-text.ts for every problem.
// Policy files hold no secrets; this is for the one who writes one there by mistake, so it rather hides too much.

const word =
  "(?:token|bearer|authorization|headers|cookie|secret|pass|pwd|credentials?|signature|jwt|api[-_]?key|access[-_]?key|private[-_]?key)";
/** A key that a secret may stand under. `secretFile` and `tokenUrl` are none: they name a place. */
const key = `(?:(?![\\w-]*(?:file|url)\\b)[\\w-]*${word}[\\w-]*|value|key)`;

/** A key at the start of a line has the rest of it; inside of braces what stands before the next key. `token: { … }` is looked into below. */
const secretKeyFirst = new RegExp(
  `^(\\s*(?:-\\s+)?["']?${key}["']?)(\\s*:\\s*)(?!\\s|(?<=\\btoken["']?\\s*:\\s*)\\{)(.+)$`,
  "is",
);
const secretKey = new RegExp(
  `(?<![\\w-])(${key})(["']?\\s*:\\s*)(?!\\s|(?<=\\btoken["']?\\s*:\\s*)\\{)(.+?)(?=,\\s*["']?[\\w$-]+["']?\\s*:\\s|$)`,
  "gis",
);
const secretKeyAlone = new RegExp(`^[\\s{-]*["']?${key}["']?\\s*:\\s*(?:[|>][-+\\d]*)?\\s*(?:#.*)?$`, "i");
/** `token SECRET`, `password=SECRET`, `NAME=SECRET`: what is no YAML, but often tried. */
const secretWord = new RegExp(`^(\\s*["']?${key}["']?)(\\s*=\\s*|\\s+)([^\\s:=].*)$`, "is");
const assignment = /^(\s*(?:export\s+)?[A-Za-z_]\w*)(=)(.+)$/s;
/** The value of `? key` stands behind a colon of its own. */
const explicitValue = /^(\s*:\s+)()(.+)$/s;
/** Between the braces of a token, at their start or behind a comma: whatever is none of its keys. */
const strangeTokenKey =
  /(?<=(?:\btoken|\boauth2)["']?\s*:\s*\{(?:[^{}]*,)?)()(\s*)(?!\s|["']?(?:file|env|oauth2|tokenUrl|clientId|clientSecretFile|scope|auth|allowHttp)\b)([^,{}]+)/gi;
const strangeVariable = /\b(env)(["']?\s*:\s*["']?)(?![A-Z_][A-Z0-9_]{0,63}(?![A-Za-z0-9_.-]))([^,}"'\s]+)/g;
/** `auth` says how a client shows its secret, and nothing else. */
const strangeAuth = /(?<![\w-])(auth)(["']?\s*:\s*)(?!\s|\{|["']?(?:basic|post)\b)([^,}]+)/gi;
/** Up to the last @: a password with a / or an @ in it is what makes such a URL wrong. */
const urlCredentials = /(\b[a-z][a-z0-9+.-]*:[\\/]+|\bhttps?:)()([^"'\n]+)(?=@)/gi;
const credentials = /(?<![\w.%+-])([\w.%+-]+:)()([^\s"'/]+)(?=@)/g;
const urlQuery = /(:\/\/[^\s"'?#]*[?#])()([^"\n]+?)(?=["']?\s*(?:$|[,}]))/g;
/** The whole path of a chat's webhook, or of a heartbeat, is its password; only these URLs are of another kind. */
const urlPath =
  /(?<!(?:baseUrl|tokenUrl|\$schema)["']?\s*[:=]\s*["']?)(\b[a-z][a-z0-9+.-]*:\/\/[^\s"'/]+\/)()([^\s"'},]+)/gi;
const bareUrlPath = /(?<![\w-])((?:ur[il]|webhook|heartbeat)["']?)(\s*:\s*["']?[^\s"'/:{]+\/)([^\s"'},]+)/gi;
const bearer = /\b((?:bearer|basic)\s+)()([A-Za-z0-9._~+/=-]{8,})/gi;
const jwt = /(\b)(eyJ)([\w-]{5,}(?:\.[\w-]*)*)/g;

const patterns = [
  secretKeyFirst,
  secretKey,
  secretWord,
  assignment,
  explicitValue,
  strangeTokenKey,
  strangeVariable,
  strangeAuth,
  urlCredentials,
  credentials,
  urlPath,
  bareUrlPath,
  urlQuery,
  bearer,
  jwt,
];

/** A comment, or a line that is no YAML: nobody knows what its words are. */
const outside = /(?:(?:^|\s)#.*|^(?!\s*-\s)[^:[\]{}]*)$/s;
/** A word that has a digit and is as long as a secret. */
const strangeWord = /()()((?=[^\s"',;=()\d]*\d)[^\s"',;=()]{8,})/g;

/** The line with secrets replaced by as many asterisks, so that columns stay. */
export function maskSecrets(line: string): string {
  const masked = patterns.reduce(mask, line);
  return masked.replace(outside, (text) => mask(text, strangeWord));
}

function mask(line: string, pattern: RegExp): string {
  return line.replace(
    pattern,
    (_, before: string, between: string, secret: string) => `${before}${between}${"*".repeat(secret.length)}`,
  );
}

/** Whether a line is a key that a secret may stand under, and no more: then the value is what stands below it. */
export function announcesSecret(line: string): boolean {
  return secretKeyAlone.test(line);
}

/** A line below such a key: all of it, unless it is a key with a value of its own. */
export function maskValue(line: string): string {
  if (/^\s*(?:-\s+)?["']?[\w.-]+["']?\s*:(?:\s|$)/.test(line)) return maskSecrets(line);
  return line.replace(/[^\s-].*$/s, (value) => "*".repeat(value.length));
}
