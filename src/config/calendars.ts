// Reads the calendar files that policy files name, and reports what is wrong with them, by line.
// Called by load-policies.ts.
import { dirname, resolve } from "node:path";
import { hashText } from "../core/stable-hash.ts";
import type { EventCalendar } from "./policy-set.ts";
import type { Problem } from "./problem.ts";
import { readText } from "./read-policy-files.ts";
import { policyLimits } from "./rules/policy-limits.ts";
import type { PolicyChecks } from "./rules/policy-rules.ts";
import type { CheckedFile } from "./schema-problems.ts";

const calendarSize = {
  bytesMax: policyLimits.calendarBytesMax,
  hint: "make several calendars of it, each in a file of its own",
};

/** Reads the calendars of a set. `problems`: takes what is wrong. `files`: takes their paths. */
export async function readCalendars(
  checked: readonly CheckedFile[],
  checks: PolicyChecks,
  { problems, files }: { readonly problems: Problem[]; readonly files: string[] },
): Promise<ReadonlyMap<string, EventCalendar>> {
  const calendars = new Map<string, EventCalendar>();
  const closed = checked.flatMap(({ draft }) => [draft.defaults ?? {}, ...(draft.policies ?? [])]);
  const holidays = new Set(closed.flatMap(({ holidays = [] }) => holidays));
  for (const { draft, yaml, report } of checked) {
    for (const [name, calendar] of Object.entries(draft.calendars ?? {}).slice(0, policyLimits.calendarsMax)) {
      const file = resolve(dirname(yaml.file), calendar.file);
      files.push(file);
      const read = await readText(file, calendarSize);
      if ("message" in read) {
        const { line, message, hint = "the path is relative to the policy file" } = read;
        if (line > 0) problems.push(read);
        else report(["calendars", name, "file"], `calendar ${name}: ${file} ${message}`, { hint });
        continue;
      }
      const found = await checks.calendar(read.text);
      const lines = read.text.split(/\r?\n/);
      const add = (line: number, message: string, hint?: string) => {
        const source = lines[line - 1];
        problems.push({ file, line, column: Math.min(line, 1), message, hint, source, width: source?.length ?? 1 });
      };
      if ("problems" in found) for (const { line, message, hint } of found.problems) add(line, message, hint);
      else if (holidays.has(name) && found.timed !== undefined) {
        const hint = `make it an event of whole days, or name ${name} under blackout`;
        add(found.timed.line, `event "${found.timed.name}" has hours, and a holiday is a whole day`, hint);
      } else calendars.set(name, { name, hash: hashText(read.text, 64), events: found.events });
    }
  }
  return calendars;
}
