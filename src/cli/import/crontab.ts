// Reads a crontab: its variables, and the schedule and the command of each line. Pure; called by
// import-command.ts.
import type { ReadJobs, ScheduledJob } from "./job-policies.ts";

const names = "JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC|SUN|MON|TUE|WED|THU|FRI|SAT";
const field = String.raw`(?:[-\d*/,~?LW#]|${names})+`;
const line = new RegExp(String.raw`^(@\w+|${field}(?:\s+${field}){4})\s+(.*)$`, "i");

/** The jobs of a crontab, and what of it says nothing about one. `name`: what to call the file. */
export function readCrontab(text: string, name: string): ReadJobs {
  const variables = new Map<string, string>();
  const jobs: ScheduledJob[] = [];
  const notes: string[] = [];
  let leftOut = 0;
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const written = raw.trim();
    const where = `${name}:${index + 1}`;
    if (written === "" || written.startsWith("#")) continue;
    const [, variable, value = ""] = /^([A-Za-z_]\w*)\s*=\s*(.*)$/.exec(written) ?? [];
    if (variable !== undefined) {
      variables.set(variable, value.replace(/^(['"])(.*)\1$/, "$2"));
      if (variable === "TZ") notes.push(`${where}: TZ is the zone of the commands; cron reads CRON_TZ for the times`);
      if (variable === "MAILTO" && value !== "") notes.push(`${where}: MAILTO is not kept: notify tells people`);
      continue;
    }
    const [, schedule, command] = line.exec(written) ?? [];
    if (schedule === undefined || command === undefined) {
      leftOut += 1;
      notes.push(`${where}: no line of a crontab: left out`);
    } else {
      const [text = ""] = /^(?:\\.|[^%\\])*/s.exec(command) ?? [];
      if (text !== command) notes.push(`${where}: an unescaped % ends the command, as cron reads it`);
      jobs.push({
        ...{ where, schedule, timezone: variables.get("CRON_TZ"), command: text.replaceAll("\\%", "%") },
        ...{ name: undefined, variables: new Map(variables), settings: {}, isSuspended: false, notes: [] },
      });
    }
  }
  return { jobs, notes, leftOut };
}
