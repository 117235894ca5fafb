// What to do about common slips in YAML and in names. Pure; called where problems are made.
import { nearestWord } from "../../core/nearest-word.ts";

/**
 * A hint for a syntax error of `yaml` (its code and message) on a line; undefined when nothing is
 * known to help.
 */
export function hintOfSyntax(code: string, message: string, line: string): string | undefined {
  if (/(cron\s*:|-)\s*\[?\s*\*/.test(line)) return 'put the cron expression in quotes: cron: "* * * * *"';
  if (/:\s*[*]/.test(line)) return "a value that starts with * must be in quotes";
  if (/[{,[][^"']*\$\{/.test(line)) return `inside { } or [ ] put a value with \${NAME} in quotes: "\${NAME}"`;
  if (/:\s+[@`%]/.test(line)) return "a value that starts with @, ` or % must be in quotes";
  if (/^\s*\t/.test(line) || /tab/i.test(message)) return "indent with spaces, not with tabs";
  if (/nested mappings|compact mapping/i.test(message)) return "put a value that holds a colon and a space in quotes";
  if (code === "BAD_INDENT" || /indent/i.test(message)) return "line the key up with its neighbours";
  if (/:\s*[[{].*\bin\b/.test(line) || /in \[/.test(line)) return "put an expression that holds [ ] in single quotes";
  return undefined;
}

/** `did you mean "x"?` for a misspelt word, or else the list of what there is (at most ten). */
export function didYouMean(word: string, candidates: readonly string[]): string | undefined {
  const near = nearestWord(word, candidates);
  if (near !== undefined) return `did you mean ${near}?`;
  if (candidates.length === 0) return undefined;
  const more = candidates.length > 10 ? `, … (${candidates.length} in all)` : "";
  return `there is ${candidates.slice(0, 10).join(", ")}${more}`;
}
