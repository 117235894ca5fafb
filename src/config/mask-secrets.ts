// Hides what looks like a secret in a source line before it is shown. Called by source-text.ts for every problem.
// Policy files hold no secrets; this is for the one who writes one there by mistake.

const word =
  "(?:token|bearer|authorization|secret|password|passphrase|passwd|pwd|credentials?|api[-_]?key|private[-_]?key)";
/** A key that a secret may stand under. `secretFile` and `tokenUrl` are none: they name a place. */
const key = `(?:(?![\\w-]*(?:file|url)\\b)[\\w-]*${word}[\\w-]*|value)`;

const secretKey = new RegExp(`\\b(${key})(["']?\\s*:\\s*)(?!\\s|\\{)([^,}]+)`, "gi");
const secretKeyAlone = new RegExp(`^[\\s{-]*["']?${key}["']?\\s*:\\s*(?:[|>][-+\\d]*)?\\s*(?:#.*)?$`, "i");
const strangeVariable = /\b(env)(["']?\s*:\s*["']?)(?![A-Z_][A-Z0-9_]{0,63}(?![A-Za-z0-9_.-]))([^,}"'\s]+)/g;
const urlCredentials = /(:\/\/)()([^/\s@]+)(?=@)/g;
const urlQuery = /(:\/\/[^\s"'?#]*[?#])()([^\s"'},]+)/g;
/** The whole path of a chat's webhook is its password. */
const webhookPath = /(?<![\w-])(url)(["']?\s*:\s*["']?https?:\/\/[^\s"'/]+\/)([^\s"'},]+)/gi;
const bearer = /\b((?:bearer|basic)\s+)()([A-Za-z0-9._~+/=-]{8,})/gi;

/** The line with secrets replaced by as many asterisks, so that columns stay. */
export function maskSecrets(line: string): string {
  return [secretKey, strangeVariable, urlCredentials, webhookPath, urlQuery, bearer].reduce(
    (text, pattern) =>
      text.replace(
        pattern,
        (_, before: string, between: string, secret: string) => `${before}${between}${"*".repeat(secret.length)}`,
      ),
    line,
  );
}

/** Whether a line is a key that a secret may stand under, and no more: then the value is what stands below it. */
export function announcesSecret(line: string): boolean {
  return secretKeyAlone.test(line);
}

/** A line below such a key: all of it, unless it is a key with a value of its own. */
export function maskValue(line: string): string {
  if (/^\s*(?:-\s+)?["']?[\w.-]+["']?\s*:(?:\s|$)/.test(line)) return maskSecrets(line);
  return line.replace(/[^\s-].*$/, (value) => "*".repeat(value.length));
}
