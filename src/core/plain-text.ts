// Makes texts fit for an outcome, a notice or a terminal: one line, no secrets, limited length.
import { withoutSecrets } from "./secrets.ts";

/** Puts a text on one line, without secrets and control characters, cut to `charactersMax`. */
export function toPlainText(text: string, charactersMax: number): string {
  return cutText(withoutSecrets(text).replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, " "), charactersMax);
}

/** Cuts a text to `charactersMax`; a cut one ends with "…". */
export function cutText(text: string, charactersMax: number): string {
  const shown = text.length > charactersMax ? `${text.slice(0, charactersMax - 1)}…` : text;
  return shown.toWellFormed();
}

/** Lists the first names: `a, b and 180 more`. `all`: what shows the rest, such as `--json`. */
export function someNames(names: readonly string[], all?: string, most = 20): string {
  const shown = names.slice(0, most).join(", ");
  if (names.length <= most) return shown;
  return `${shown} and ${names.length - most} more${all === undefined ? "" : ` (${all} shows all)`}`;
}

const nameCharactersMax = 100;

/** Quotes a name, so that blanks and odd characters are visible, and cuts a long one. */
export function showName(name: string | null | undefined): string {
  if (name === undefined || name === null) return "no name";
  const whole = JSON.stringify(name.slice(0, nameCharactersMax));
  const more = name.length - nameCharactersMax;
  return more > 0 ? `${whole} and ${more} more characters` : whole;
}

/** Quotes a word for a POSIX shell. */
export function shellWord(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

/** `1 task`, `2 tasks`. `many`: a plural that does not end in s alone. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
