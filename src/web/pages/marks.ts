// The marks of endings and conditions: a shape of its own, a word and a tone for each, so that
// colour only repeats what shape and word say. Used by all pages.
import { html } from "hono/html";
import type { PolicyHealth } from "../../queries/policy-lines.ts";
import type { SlotEnding } from "../../queries/slot-strips.ts";

/** A piece of a page. */
export type Html = ReturnType<typeof html>;

/** What a mark stands for. */
export type MarkName = SlotEnding | PolicyHealth;

/** How much it matters, as a class of the style. */
type Tone = "good" | "bad" | "doubt" | "warn" | "calm";

const shapes = {
  check: "M2.5 6.5 5 9l4.5-6",
  cross: "M3 3l6 6M9 3 3 9",
  question: "M4 4.4a2 2 0 1 1 3 1.7c-.7.4-1 .8-1 1.5M6 9.9v.1",
  bar: "M6 1.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9M3.5 6h5",
  triangle: "M6 1.8 10.8 10H1.2zM6 5v2M6 8.5v.1",
  empty: "M6 1.8a4.2 4.2 0 1 0 0 8.4 4.2 4.2 0 0 0 0-8.4",
  skip: "M2 3l3 3-3 3M6.5 3l3 3-3 3",
  merge: "M2 2.5c2 0 2.5 3.5 4 3.5h4M2 9.5c2 0 2.5-3.5 4-3.5",
  clock: "M6 1.8a4.2 4.2 0 1 0 0 8.4 4.2 4.2 0 0 0 0-8.4M6 3.8V6l1.6 1.2",
  pause: "M4 2.5v7M8 2.5v7",
  fence: "M2 2h8v8H2zM2 6h8",
  dots: "M2.5 6v.1M6 6v.1M9.5 6v.1",
} as const;

const marks: Readonly<Record<MarkName, readonly [shape: keyof typeof shapes, tone: Tone, word?: string]>> = {
  succeeded: ["check", "good"],
  accepted: ["check", "good"],
  conflicts: ["triangle", "warn"],
  failed: ["cross", "bad"],
  blocked: ["bar", "warn"],
  "timed-out": ["cross", "bad", "timed out"],
  unknown: ["question", "doubt"],
  "not-started": ["cross", "bad", "not started"],
  skipped: ["skip", "calm"],
  missed: ["empty", "warn"],
  coalesced: ["merge", "calm"],
  started: ["clock", "calm"],
  quarantined: ["fence", "bad"],
  failing: ["cross", "bad"],
  paused: ["pause", "calm"],
  late: ["clock", "bad"],
  unplanned: ["empty", "bad", "not planned"],
  "service-down": ["bar", "warn", "service down"],
  new: ["dots", "calm", "no outcome yet"],
  ok: ["check", "good", "well"],
};

/** The word for an ending or a condition. */
export function wordOf(marked: MarkName): string {
  return marks[marked][2] ?? marked;
}

/** Its tone. */
export function toneOf(marked: MarkName): Tone {
  return marks[marked][1];
}

/** A mark with its word. `word`: another one. */
export function mark(marked: MarkName, word: string = wordOf(marked)): Html {
  const [shape, tone] = marks[marked];
  return tag(tone, shape, word);
}

/** What to say beside a mark: words that begin with its own go on without it. */
export function besideMark(marked: MarkName, words: string): string {
  const word = wordOf(marked);
  return words.startsWith(word) ? words.slice(word.length).replace(/^[;, ]+/, "") : words;
}

/** A mark for what is no ending and no condition, such as an open breaker. */
export function tag(tone: Tone, shape: keyof typeof shapes, word: string): Html {
  return html`<span class="mark ${tone}"><svg viewBox="0 0 12 12" aria-hidden="true"><path d="${shapes[shape]}"/></svg>${word}</span>`;
}
