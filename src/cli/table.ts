// Tables and colours for people. Commands print these without `--json`.
import { styleText } from "node:util";
import Table from "cli-table3";
import { isGood, type Outcome, type OutcomeStatus } from "../model/outcome.ts";

/** The fields of an outcome that say how it ended and how sure that is. */
type ShownOutcome = Pick<Outcome, "status" | "evidence" | "confidence">;

const bare = {
  top: "",
  "top-mid": "",
  "top-left": "",
  "top-right": "",
  bottom: "",
  "bottom-mid": "",
  "bottom-left": "",
  "bottom-right": "",
  left: "",
  "left-mid": "",
  mid: "",
  "mid-mid": "",
  right: "",
  "right-mid": "",
  middle: "  ",
};

/** A text in a colour, if `colours` is set; program.ts knows whether the output is a terminal. */
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

/**
 * The status of an outcome in its colour, and why it is not certain: `succeeded (inferred,
 * ambiguous)`.
 */
export function showStatus({ status, evidence, confidence }: ShownOutcome, colours: boolean): string {
  const isInferred = evidence === "inferred";
  const doubts = [
    ...(isInferred ? [evidence] : []),
    ...(confidence === "ambiguous" || (isInferred && confidence === "likely") ? [confidence] : []),
  ];
  const shown = doubts.length === 0 ? status : `${status} (${doubts.join(", ")})`;
  const colour = doubts.length > 0 && isGood[status] ? "yellow" : statusColour[status];
  return paint(colour, shown, colours);
}

/** An instant as people read it: `2026-11-21 05:30:00Z`, or in a zone `2026-11-21 06:30:00 CET`. */
export function showInstant(instantMs: number, timezone?: string): string {
  if (timezone === undefined) return `${new Date(instantMs).toISOString().slice(0, 19).replace("T", " ")}Z`;
  const date = new Date(instantMs);
  const day = date.toLocaleString("sv-SE", { timeZone: timezone });
  const zone = date.toLocaleString("en-GB", { timeZone: timezone, timeZoneName: "short" }).split(" ").at(-1) ?? "";
  return `${day} ${zone}`;
}
