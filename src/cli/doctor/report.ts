// How `syncline doctor` shows what it found: a table with one line each, a cure below each warning and problem, and the sum. Pure.
import { styleText } from "node:util";
import { toTable } from "../table.ts";
import { checkNames, type Finding, type Level } from "./finding.ts";
import type { NextSlot } from "./policy-checks.ts";

const colour = { ok: "green", warning: "yellow", problem: "red" } as const satisfies Record<Level, string>;

/** Findings in the order of the checks; those of one check stay as they were found. */
function sortFindings(findings: readonly Finding[]): readonly Finding[] {
  return findings.toSorted((a, b) => checkNames.indexOf(a.check) - checkNames.indexOf(b.check));
}

/** For machines. `ok`: no problem was found; warnings do not count. */
export function reportToJson(findings: readonly Finding[], slots: readonly NextSlot[]): string {
  const { problem: problems, warning: warnings, ok: fine } = countLevels(findings);
  const nextSlots = slots.map(({ policy, slotMs }) => ({
    policy,
    slot: slotMs === undefined ? null : new Date(slotMs).toISOString(),
  }));
  return JSON.stringify({ ok: problems === 0, problems, warnings, fine, checks: sortFindings(findings), nextSlots });
}

/** For people. */
export function reportToText(findings: readonly Finding[], colours: boolean): string {
  const sorted = sortFindings(findings);
  const paint = (level: Level) => (colours ? styleText(colour[level], level) : level);
  const rows = sorted.flatMap(({ check, subject, level, what, cure }) => [
    [paint(level), check, subject, oneLine(what)],
    ...(cure === undefined ? [] : [["", "", "", `→ ${oneLine(cure)}`]]),
  ]);
  const { problem, warning, ok } = countLevels(findings);
  const sum = `${plural(problem, "problem")}, ${plural(warning, "warning")}, ${ok} fine`;
  return `${toTable(["", "check", "about", "finding"], rows, colours)}\n\n${sum}`;
}

function countLevels(findings: readonly Finding[]): Record<Level, number> {
  const count = (wanted: Level) => findings.filter(({ level }) => level === wanted).length;
  return { problem: count("problem"), warning: count("warning"), ok: count("ok") };
}

function plural(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}

/** What a service or a file says may hold line ends and control characters, which could rewrite the screen. */
function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]+/gu, " ");
}
