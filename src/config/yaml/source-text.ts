// The text of one policy file: turns offsets into problems with a place, and masks secrets in shown
// lines. Used by everything that reads YAML.
import type { Problem } from "../problem.ts";

const word =
  "(?:token|bearer|authorization|headers|cookie|secret|pass|pwd|credentials?|signature|jwt|api[-_]?key|access[-_]?key|private[-_]?key)";

/** A key that may hold a secret. `secretFile` and `tokenUrl` hold places instead. */
const key = `(?:(?![\\w-]*(?:file|url)\\b)[\\w-]*${word}[\\w-]*|value|key)`;

/**
 * At the start of a line, the key's value is the rest of the line; inside braces it ends at the
 * next key. `token: { … }` is handled below.
 */
const secretKeyFirst = new RegExp(
  `^(\\s*(?:-\\s+)?["']?${key}["']?)(\\s*:\\s*)(?!\\s|(?<=\\btoken["']?\\s*:\\s*)\\{)(.+)$`,
  "is",
);

const secretKey = new RegExp(
  `(?<![\\w-])(${key})(["']?\\s*:\\s*)(?!\\s|(?<=\\btoken["']?\\s*:\\s*)\\{)(.+?)(?=,\\s*["']?[\\w$-]+["']?\\s*:\\s|$)`,
  "gis",
);

const secretKeyAlone = new RegExp(`^[\\s{-]*["']?${key}["']?\\s*:\\s*(?:[|>][-+\\d]*)?\\s*(?:#.*)?$`, "i");

/** `token SECRET`, `password=SECRET`, `NAME=SECRET`: not valid YAML, but often tried. */
const secretWord = new RegExp(`^(\\s*["']?${key}["']?)(\\s*=\\s*|\\s+)([^\\s:=].*)$`, "is");

const assignment = /^(\s*(?:export\s+)?[A-Za-z_]\w*)(=)(.+)$/s;

/** The value of `? key` follows a colon of its own. */
const explicitValue = /^(\s*:\s+)()(.+)$/s;

/**
 * Inside the braces of a token, at their start or after a comma: any word that is not one of its
 * keys.
 */
const strangeTokenKey =
  /(?<=(?:\btoken|\boauth2)["']?\s*:\s*\{(?:[^{}]*,)?)()(\s*)(?!\s|["']?(?:file|env|oauth2|tokenUrl|clientId|clientSecretFile|scope|auth|allowHttp)\b)([^,{}]+)/gi;

const strangeVariable = /\b(env)(["']?\s*:\s*["']?)(?![A-Z_][A-Z0-9_]{0,63}(?![A-Za-z0-9_.-]))([^,}"'\s]+)/g;

/** `auth` names how a client sends its secret; any other value may be the secret. */
const strangeAuth = /(?<![\w-])(auth)(["']?\s*:\s*)(?!\s|\{|["']?(?:basic|post)\b)([^,}]+)/gi;

/** Up to the last @: a password with a / or an @ makes such a URL invalid. */
const urlCredentials = /(\b[a-z][a-z0-9+.-]*:[\\/]+|\bhttps?:)()([^"'\n]+)(?=@)/gi;

const credentials = /(?<![\w.%+-])([\w.%+-]+:)()([^\s"'/]+)(?=@)/g;

const urlQuery = /(:\/\/[^\s"'?#]*[?#])()([^"\n]+?)(?=["']?\s*(?:$|[,}]))/g;

/**
 * The path of a chat's webhook or a heartbeat is its password; only these URLs have harmless paths.
 */
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

/** A comment, or a line that is no YAML: its words may be anything. */
const outside = /(?:(?:^|\s)#.*|^(?!\s*-\s)[^:[\]{}]*)$/s;

/** A word with a digit, as long as a secret. */
const strangeWord = /()()((?=[^\s"',;=()\d]*\d)[^\s"',;=()]{8,})/g;

/** A range of characters: start and end offset, the end not included. */
export type Range = readonly [start: number, end: number];

/** The text of a file, and how to say where in it something is wrong. */
export interface SourceText {
  readonly file: string;
  readonly text: string;
  /** The 1-based line of an offset. */
  lineOf(offset: number): number;
  /** A problem about a range of the text. */
  problemAt(range: Range, message: string, hint?: string): Problem;
}

/** A longer line is not shown: it helps no reader, and masking it takes time. */
const maskedCharactersMax = 2_000;
/** How far above a value its key is searched. */
const linesAboveMax = 50;

/** Wraps the text of a file. */
export function createSourceText(file: string, text: string): SourceText {
  const starts = [0];
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  const lineOf = (offset: number) => {
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return low + 1;
  };
  const lineAt = (line: number) =>
    text.slice(starts[line - 1] ?? 0, (starts[line] ?? text.length + 1) - 1).replace(/\r$/, "");
  /** The line above with less indentation: in block style, the key of this line. */
  const headOf = (source: string, line: number) => {
    const indent = indentOf(source);
    if (indent === 0) return "";
    for (let above = line - 1; above >= Math.max(1, line - linesAboveMax); above -= 1) {
      const candidate = lineAt(above);
      if (candidate.trim() !== "" && indentOf(candidate) < indent) return candidate.slice(0, maskedCharactersMax);
    }
    return "";
  };
  const masked = (source: string, line: number) =>
    announcesSecret(headOf(source, line)) ? maskValue(source) : maskSecrets(source);
  const problemAt = ([start, end]: Range, message: string, hint?: string): Problem => {
    const offset = Math.max(0, Math.min(start, text.length));
    const line = lineOf(offset);
    const lineStart = starts[line - 1] ?? 0;
    const source = lineAt(line);
    const width = Math.max(1, Math.min(end, lineStart + source.length) - offset);
    const shown = source.length <= maskedCharactersMax ? masked(source, line) : "";
    return { file, line, column: offset - lineStart + 1, message, hint, source: shown, width };
  };
  return { file, text, lineOf, problemAt };
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

/** The line with each secret character replaced by an asterisk, so that columns stay. */
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

/** Whether a line is only a key that may hold a secret: its value follows below. */
function announcesSecret(line: string): boolean {
  return secretKeyAlone.test(line);
}

/** Masks a line below such a key: all of it, or the value of its own key. */
function maskValue(line: string): string {
  if (/^\s*(?:-\s+)?["']?[\w.-]+["']?\s*:(?:\s|$)/.test(line)) return maskSecrets(line);
  return line.replace(/[^\s-].*$/s, (value) => "*".repeat(value.length));
}
