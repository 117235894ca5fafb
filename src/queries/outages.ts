// What an outage of a service holds up, and what gets well without a person: one outage is one
// trouble, however many policies and lists it hits. Pure.
import { counted, someNames } from "../core/plain-text.ts";
import { outageReasons } from "../model/outcome.ts";
import type { PolicyLine } from "./policy-lines.ts";
import type { Status, TroubledFeed } from "./status.ts";

type Services = Status["services"];

const namedMax = 5;

/** Whether all that is wrong with it is over when the service works again. */
function isOfOutage({ troubled }: PolicyLine): boolean {
  return troubled.every(({ last }) => last.status !== "unknown" && outageReasons.has(last.reason));
}

/** Whether its last run failed by what is over when the service works again. */
export function hasFailedByOutage(line: PolicyLine): boolean {
  return line.health === "failing" && isOfOutage(line);
}

/**
 * Whether it gets well when its service answers, or by its next run: if it failed but once, or
 * missed slots and ended well not long before.
 */
export function healsByItself(line: PolicyLine): boolean {
  const { health, troubled, nextMs, waitingMs, late, open, isBehind } = line;
  if (open !== undefined || !isOfOutage(line)) return false;
  const isOver = health === "failing" || health === "missed";
  if (waitingMs !== undefined) return isOver || health === "late" || health === "service-down";
  const isFirst = troubled.every(({ inARow }) => inARow === 1);
  return isOver && isFirst && !isBehind && nextMs !== undefined && late === undefined;
}

function isDown(services: Services, name: string): boolean {
  return services.some(({ service, breaker }) => breaker === "open" && service === name);
}

/** Whether the outage of its service tells all of a policy. */
export function isToldByOutage(line: PolicyLine, services: Services): boolean {
  const { health, late, open, policy, nextMs, waitingMs } = line;
  if (late !== undefined || open !== undefined || !isDown(services, policy.service)) return false;
  return health === "service-down" || (hasFailedByOutage(line) && (waitingMs ?? nextMs) !== undefined);
}

/** Whether a list cannot be read because its service is down. */
export function isListOfOutage({ feed, reason }: TroubledFeed, services: Services): boolean {
  return reason === "unreadable" && isDown(services, feed.service);
}

/** The policies of a service that is down which it holds up, those with a run that waits first. */
export function heldUpBy(name: string, lines: readonly PolicyLine[], services: Services): readonly PolicyLine[] {
  const isHeldUp = (line: PolicyLine) =>
    line.waitingMs !== undefined || (line.nextMs !== undefined && isToldByOutage(line, services));
  const own = lines.filter((line) => line.policy.service === name && isHeldUp(line));
  return own.toSorted((a, b) => (a.waitingMs ?? Number.MAX_VALUE) - (b.waitingMs ?? Number.MAX_VALUE));
}

/** What became of them: `2 policies wait for it: a, b; 1 policy failed by it, …: c`. */
export function describeHeldUp(lines: readonly PolicyLine[]): string {
  const kinds = Map.groupBy(lines, (line) =>
    line.waitingMs !== undefined ? "waits" : hasFailedByOutage(line) ? "failed" : "later",
  );
  const told = (kind: "waits" | "failed" | "later", words: (count: number) => string) => {
    const names = kinds.get(kind)?.map(({ policy }) => policy.name) ?? [];
    return names.length === 0 ? [] : [`${words(names.length)}: ${someNames(names, undefined, namedMax)}`];
  };
  const parts = [
    ...told("waits", (count) => `${counted(count, "policy waits", "policies wait")} for it`),
    ...told(
      "failed",
      (count) =>
        `${counted(count, "policy", "policies")} failed by it, and ${count === 1 ? "runs" : "run"} again when due next`,
    ),
    ...told("later", (count) => `${counted(count, "policy needs", "policies need")} it when due next`),
  ];
  return parts.join("; ");
}

/** Each owner of these policies once; undefined: none is named. */
export function ownersOf(lines: readonly PolicyLine[]): string | undefined {
  const names = [...new Set(lines.flatMap(({ policy }) => policy.owner ?? []))];
  const more = names.length > namedMax ? ` and ${names.length - namedMax} more` : "";
  return names.length === 0 ? undefined : `${names.slice(0, namedMax).join("; ")}${more}`;
}
