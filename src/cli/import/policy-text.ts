// The pieces of YAML from which import writes policies. Pure.
import { escapeControls } from "../../service/error-body.ts";
import { safeJson } from "../table.ts";

const nameCharactersMax = 60;

/** JSON is YAML; a text with `${` would be read as a variable. */
export function flow(value: object): string {
  return JSON.stringify(value, (_, item: unknown) => (typeof item === "string" ? escapeVariables(item) : item));
}

/** A text in quotes. */
export function quoted(text: string): string {
  return safeJson(escapeVariables(text));
}

/** A comment of one line. */
export function comment(text: string): string {
  return `# ${escapeControls(text)}`;
}

/** A name that a policy may have; `taken` grows by it. */
export function policyName(wanted: string, taken: Set<string>): string {
  const words = wanted
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replace(/^-/, "")
    .slice(0, nameCharactersMax - 6);
  const plain = words.replace(/-+$/, "") || "job";
  const name = /^\d+$/.test(plain) ? `job-${plain}` : plain;
  let free = name;
  for (let number = 2; taken.has(free); number += 1) free = `${name}-${number}`;
  taken.add(free);
  return free;
}

function escapeVariables(text: string): string {
  return text.replaceAll("${", () => "$${");
}
