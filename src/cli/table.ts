// Tables and colours for people. Commands print these unless `--json` was asked for.
import { styleText } from "node:util";
import Table from "cli-table3";
import type { OutcomeStatus } from "../tasks/outcome.ts";

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

/** Lays rows out under a heading, without borders. */
export function toTable(heading: readonly string[], rows: readonly (readonly string[])[], colours: boolean): string {
  const table = new Table({
    head: heading.map((title) => (colours ? styleText("bold", title) : title)),
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

/** A status in its colour. */
export function showStatus(status: OutcomeStatus, colours: boolean): string {
  return colours ? styleText(statusColour[status], status) : status;
}

/** An instant as people read it: `2026-11-21 05:30:00Z`, or in a zone `2026-11-21 06:30:00 CET`. */
export function showInstant(instantMs: number, timezone?: string): string {
  if (timezone === undefined) return `${new Date(instantMs).toISOString().slice(0, 19).replace("T", " ")}Z`;
  const date = new Date(instantMs);
  const day = date.toLocaleString("sv-SE", { timeZone: timezone });
  const zone = date.toLocaleString("en-GB", { timeZone: timezone, timeZoneName: "short" }).split(" ").at(-1) ?? "";
  return `${day} ${zone}`;
}
