// What `syncline doctor` finds: one line each. Made by the check files beside this one, shown by report.ts.

/** Everything that is looked at, in the order in which it is shown. */
export const checkNames = [
  "redis",
  "replicas",
  "service",
  "token",
  "identity",
  "sync jobs",
  "deleted",
  "masks",
  "triggers",
  "mapping",
  "zones",
  "next slots",
  "chains",
  "pauses",
  "breakers",
  "sinks",
  "doctor",
] as const;

/** One of the things that are looked at. */
type CheckName = (typeof checkNames)[number];

/** How bad it is. Only a problem changes the exit code. */
export type Level = "ok" | "warning" | "problem";

/** One finding. `subject`: the service, repository, sync job or policy it is about; empty for the whole. */
export interface Finding {
  readonly check: CheckName;
  readonly subject: string;
  readonly level: Level;
  /** What is so, in words. Never holds a secret. */
  readonly what: string;
  /** What to do; only of warnings and problems. */
  readonly cure?: string;
}

/** At most so many findings of one kind are shown one by one. */
const linesMax = 20;

/** The first findings as they are, and one line in place of the rest. */
export function withinLines(findings: readonly Finding[]): readonly Finding[] {
  const rest = findings.slice(linesMax);
  const [first] = rest;
  if (first === undefined) return findings;
  const level = rest.some((finding) => finding.level === "problem") ? "problem" : first.level;
  const more = { check: first.check, subject: "", level, what: `and ${rest.length} more like these` };
  return [...findings.slice(0, linesMax), first.cure === undefined ? more : { ...more, cure: first.cure }];
}
