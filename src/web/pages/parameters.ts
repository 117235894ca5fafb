// What the address of a page may ask for after `?`. What makes no sense there filters nothing, and
// the page tells it: what, why, and what to write. Called by routes.ts for every page.
import { html } from "hono/html";
import * as z from "zod";
import { cutText } from "../../core/plain-text.ts";
import { failedSpans } from "../../queries/failed.ts";
import { policyHealths } from "../../queries/policy-lines.ts";
import { type Html, tag } from "./marks.ts";
import { daySpans } from "./slots.ts";

const text = (most: number) => z.string().max(most, `is too long: write at most ${most} characters`);
const oneOf = (words: readonly (string | number)[]) =>
  z.string().refine((value) => words.map(String).includes(value), `is not known: write one of ${words.join(", ")}`);
const page = z.string().regex(/^[1-9]\d{0,4}$/, "is no page: write a number from 1 to 99999");
const day = z.iso.date("is no day: write one such as 2026-11-22");
const clock = z.iso.time({ precision: -1, error: "is no time of day: write one such as 14:30" });

const parametersOf: Readonly<Record<string, Readonly<Record<string, z.ZodType>>>> = {
  "/policies": { q: text(100), health: oneOf(policyHealths), service: text(200), label: text(200), page },
  "/policies/:name": { days: oneOf(daySpans) },
  "/failed": { since: oneOf(failedSpans) },
  "/next": { at: clock },
  "/audit": { policy: text(100), from: day, to: day, page },
};

/** What is asked for and makes sense, without `done` and `again`. `wrong`: the rest, in words. */
export function readParameters(path: string, given: Readonly<Record<string, string>>) {
  // A map: an address may ask for `__proto__`.
  const known = new Map(Object.entries(parametersOf[path] ?? {}));
  const query: Record<string, string> = {};
  const wrong: string[] = [];
  for (const [name, value] of Object.entries(given)) {
    const why = known.get(name)?.safeParse(value).error?.issues[0]?.message;
    if (value === "" || name === "done" || name === "again") continue;
    if (known.has(name) && why === undefined) query[name] = value;
    else wrong.push(`${cutText(`${name}=${value}`, 80)} ${why ?? unknownName([...known.keys()])}`);
  }
  return { query, wrong };
}

function unknownName(known: readonly string[]): string {
  return known.length === 0 ? "is not asked for here" : `is not asked for here: this page knows ${known.join(", ")}`;
}

/** Tells of it at the top of the page. */
export function wrongParameters(wrong: readonly string[]): Html[] {
  return wrong.map(
    (words) =>
      html`<p class="notice" role="alert">${tag("warn", "triangle", "not used")} In the address, ${words}.</p>`,
  );
}
