// The log for people: one line an event, with the time, words, and the fields that matter. `serve`
// writes it on a terminal; `dev` and the demo do always.
import { styleText } from "node:util";
import { formatDuration } from "../core/duration.ts";
import { parseJson } from "../core/json.ts";

/** One line of the log, parsed. */
export type LogLine = Readonly<Record<string, unknown>> & { readonly event: string };

type Colour = Parameters<typeof styleText>[0];
type Story = readonly [what: string, about: string, colour: Colour];

const wordWidth = 16;
/** The steps of walks: on a terminal they would drown what happens. */
const onlyInDebug = new Set(["feed.walked", "feed.order-found"]);
/** Fields that stand elsewhere in the line, or that only machines need. */
const unshown = new Set(["event", "level", "time", "policy", "taskId", "config"]);
const levelColour: Readonly<Record<string, Colour>> = { warn: "yellow", error: "red" };
const statusColour: Readonly<Record<string, Colour>> = { succeeded: "green", accepted: "green", skipped: "gray" };

/** Where the words about an event begin: what does not fit into a line goes on there. */
export const prettyIndent = 11 + wordWidth + 2;

/**
 * A line of the log as people read it; empty for what is told in debug only. A line that is no
 * event stays as it is.
 */
export function toPrettyLine(line: string, colours: boolean, level = "info"): string {
  const parsed = parseLogLine(line);
  if (parsed !== undefined && level !== "debug" && onlyInDebug.has(parsed.event)) return "";
  return parsed === undefined ? line : prettyEvent(parsed, colours);
}

/** An event as people read it: `02:30:00Z  started  contracts  run of sync job 4`. */
export function prettyEvent(event: LogLine, colours: boolean): string {
  const paint = (colour: Colour, text: string) => (colours ? styleText(colour, text, { validateStream: false }) : text);
  const [what, about, colour] = storyOf(event) ?? plainStory(event);
  const time = typeof event["time"] === "string" ? `${event["time"].slice(11, 19)}Z` : " ".repeat(9);
  const subject = typeof event["policy"] === "string" ? `${event["policy"]}  ` : "";
  return `${paint("gray", time)}  ${paint(colour, what.padEnd(wordWidth))}  ${subject}${about}`.trimEnd();
}

/** Reads a line of the JSON log; undefined for any other text. */
export function parseLogLine(line: string): LogLine | undefined {
  const value = parseJson(line);
  return typeof value === "object" && value !== null && "event" in value ? (value as LogLine) : undefined;
}

/** The events of a run's life, in sentences. */
function storyOf(event: LogLine): Story | undefined {
  const text = (name: string) => String(event[name] ?? "");
  const task = `${text("kind")} of ${targetOf(event)}`;
  switch (event.event) {
    case "slot.queued":
      return ["due", `slot ${shown("slot", event["slot"])}${latenessOf(event)}`, "blue"];
    case "task.started":
      return ["started", task, "cyan"];
    case "task.in-doubt": {
      const why = event["kind"] === "crash" ? "a worker fell silent over" : "no good answer to";
      return ["in doubt", `${why} the start of ${targetOf(event)}: it may have happened`, "magenta"];
    }
    case "task.start-confirmed":
      return ["confirmed", `activity ${text("activity")} shows that ${targetOf(event)} did start`, "cyan"];
    case "task.finished": {
      const took = typeof event["durationMs"] === "number" ? ` in ${(event["durationMs"] / 1_000).toFixed(1)} s` : "";
      return [text("status"), `${task}${took}: ${text("detail")}`, statusColour[text("status")] ?? colourOf(event)];
    }
    case "feed.item": {
      const of = event["syncJobId"] === undefined ? "" : ` of sync job ${text("syncJobId")}`;
      return ["seen", `new in ${text("list")}: ${text("id")}${of}`, "gray"];
    }
    default:
      return undefined;
  }
}

function targetOf({ target }: LogLine): string {
  return /^\d+$/.test(String(target)) ? `sync job ${target}` : String(target ?? "");
}

function latenessOf({ delayMs, covers }: LogLine): string {
  const late = typeof delayMs === "number" && delayMs >= 5_000 ? `, ${shown("delayMs", delayMs)} late` : "";
  return typeof covers === "number" && covers > 0 ? `${late}, for ${covers} older slots as well` : late;
}

/** Any other event: its name in words, and its fields. */
function plainStory(event: LogLine): Story {
  const fields = Object.entries(event)
    .filter(([name, value]) => !unshown.has(name) && value !== null && value !== undefined && value !== "")
    .map(([name, value]) => `${name.replace(/Ms$/, "")} ${shown(name, value)}`);
  return [event.event.replaceAll(/[.-]/g, " "), fields.join(", "), colourOf(event)];
}

function shown(name: string, value: unknown): string {
  if (typeof value === "number" && name.endsWith("Ms"))
    return formatDuration(value < 1_000 ? value : Math.round(value / 1_000) * 1_000);
  if (typeof value === "string") return value.replace(/^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(\.\d+)?Z$/, "$1 $2Z");
  return Array.isArray(value) ? value.join(" ") : String(value);
}

function colourOf({ level }: LogLine): Colour {
  return levelColour[String(level)] ?? "gray";
}
