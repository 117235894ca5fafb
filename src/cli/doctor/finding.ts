// A finding of `syncline doctor`, one line each. The files beside this one make them,
// doctor-command.ts shows them.

/** All checks, in the order in which they are shown. */
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
  "feeds",
  "sinks",
  "doctor",
] as const;

/** The name of a check. */
type CheckName = (typeof checkNames)[number];

/** How bad it is. Only a problem changes the exit code. */
export type Level = "ok" | "warning" | "problem";

/**
 * One finding. `subject`: the service, repository, sync job or policy it is about; empty for the
 * whole.
 */
export interface Finding {
  readonly check: CheckName;
  readonly subject: string;
  readonly level: Level;
  /** What is so, in words. Never holds a secret. */
  readonly what: string;
  /** What to do; only of warnings and problems. */
  readonly cure?: string;
}

/** How many findings of one kind are shown one by one. */
const linesMax = 20;

/** The first findings, and one line for the rest. */
export function withinLines(findings: readonly Finding[]): readonly Finding[] {
  const rest = findings.slice(linesMax);
  const [first] = rest;
  if (first === undefined) return findings;
  const level = rest.some((finding) => finding.level === "problem") ? "problem" : first.level;
  const more = { check: first.check, subject: "", level, what: `and ${rest.length} more like these` };
  return [...findings.slice(0, linesMax), first.cure === undefined ? more : { ...more, cure: first.cure }];
}
