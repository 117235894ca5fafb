// Tables and colours for people. Commands print these without `--json`.
import { styleText } from "node:util";
import Table from "cli-table3";
import { isGood, type Outcome, type OutcomeStatus } from "../model/outcome.ts";

const borders = ["top", "bottom", "left", "right", "mid"].flatMap((side) =>
  ["", "-mid", "-left", "-right"].map((end) => [`${side}${end}`, ""]),
);
const bare = { ...Object.fromEntries(borders), middle: "  " };

/** A text in a colour, if `colours` is set. */
export function paint(style: Parameters<typeof styleText>[0], text: string, colours: boolean): string {
  return colours ? styleText(style, text, { validateStream: false }) : text;
}

/** Formats rows under a heading, without borders. */
export function toTable(heading: readonly string[], rows: readonly (readonly string[])[], colours: boolean): string {
  const table = new Table({
    head: heading.map((title) => paint("bold", title, colours)),
    chars: bare,
    style: { head: [], border: [], "padding-left": 0, "padding-right": 0 },
  });
  table.push(...rows.map((row) => [...row]));
  return table
    .toString()
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n");
}

const statusColour = {
  succeeded: "green",
  accepted: "green",
  skipped: "gray",
  conflicts: "yellow",
  blocked: "yellow",
  "timed-out": "red",
  failed: "red",
  unknown: "magenta",
  "not-started": "red",
  missed: "red",
} as const satisfies Record<OutcomeStatus, string>;

/** A status in its colour, and why it is not certain: `succeeded (inferred, ambiguous)`. */
export function showStatus(
  { status, evidence, confidence }: Pick<Outcome, "status" | "evidence" | "confidence">,
  colours: boolean,
): string {
  const isInferred = evidence === "inferred";
  const doubts = [
    ...(isInferred ? [evidence] : []),
    ...(confidence === "ambiguous" || (isInferred && confidence === "likely") ? [confidence] : []),
  ];
  const shown = doubts.length === 0 ? status : `${status} (${doubts.join(", ")})`;
  const colour = doubts.length > 0 && isGood[status] ? "yellow" : statusColour[status];
  return paint(colour, shown, colours);
}

/** Where an object is: its service, and the repository if one is named. */
export function showPlace(service: string, repository: string | null | undefined): string {
  return repository === undefined || repository === null ? service : `${service}, ${repository}`;
}

/** Text for one line of a terminal: control characters could rewrite the screen. */
export function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]+/gu, " ");
}

/** JSON for a terminal: it escapes the control characters that JSON itself leaves as they are. */
export function safeJson(value: unknown, indent = 0): string {
  return (JSON.stringify(value, undefined, indent) ?? "null").replaceAll(
    /[\u007f-\u009f\u2028\u2029\ufeff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** An important line: red on a terminal. */
export function alarming(line: string, colours: boolean): string {
  return paint("red", line, colours);
}
