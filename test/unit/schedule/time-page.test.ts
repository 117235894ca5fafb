// The examples of docs/time.md are true: each row of its table is computed.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { createCalendar } from "../../../src/schedule/calendar.ts";
import { dueSlots } from "../../../src/schedule/slots.ts";

const page = readFileSync(join(import.meta.dirname, "../../../docs/time.md"), "utf8");

/**
 * Rows such as: | gap | `30 2 * * *` | Europe/Vienna | gap: skip | FROM – UNTIL | 01:00, 02:00 |
 */
const rows = page.split("\n").flatMap((line) => {
  const [, rule, cron, zone, dst, period, slots] = line.split("|").map((cell) => cell.trim());
  const [from, until] = period?.split(" – ") ?? [];
  if (rule === undefined || slots === undefined || from === undefined || until === undefined) return [];
  return [{ rule, cron: cron?.replaceAll("`", "") ?? "", zone: zone ?? "", dst: dst ?? "", from, until, slots }];
});

it("has an example for every rule", () => {
  expect(rows.length).toBeGreaterThan(7);
});

it.each(rows)("$rule: $cron $zone", ({ cron, zone, dst, from, until, slots }) => {
  const word = (key: string) => new RegExp(`${key}: (\\w+)`).exec(dst)?.[1];
  const overlap = word("overlap");
  const calendar = createCalendar({
    kind: "cron",
    expressions: [cron],
    timezone: zone,
    dst: {
      gap: word("gap") === "skip" ? "skip" : "next",
      overlap: overlap === "second" || overlap === "both" ? overlap : "first",
    },
    spreadMs: 0,
  });
  const found = dueSlots(calendar, Date.parse(`${from}Z`), Date.parse(`${until}Z`));
  const times = found.map((slotMs) => new Date(slotMs).toISOString().slice(11, 16)).join(", ");
  expect(times === "" ? "none" : times).toBe(slots);
});
