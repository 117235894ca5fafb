// What a trouble means, for people who wait for the data and do not run Syncline: what happened and
// since when, whether Syncline goes on by itself, and who must do what. Pure. Called by digest.ts.
import { showNear } from "../core/instant.ts";
import { counted, someNames } from "../core/plain-text.ts";
import type { OutcomeReason } from "../model/outcome.ts";
import type { LimiterStatus } from "../store/service-limiter.ts";
import { type AttentionItem, quarantineNote, sinceOf, wordsOfEnd } from "./attention.ts";
import { describeOpen } from "./open-conflicts.ts";
import type { PolicyHealth, PolicyLine } from "./policy-lines.ts";

/** The only clock of a text: its zone is said once. */
export interface PlainClock {
  readonly timezone: string;
  readonly nowMs: number;
}

/** What each health is called where people read who know no other word of Syncline. */
export const plainHealths: Readonly<Record<PolicyHealth, string>> = {
  quarantined: "stopped",
  failing: "failed",
  unknown: "uncertain",
  missed: "not run",
  late: "late",
  unplanned: "not begun",
  blocked: "waiting for an approval",
  conflicts: "with conflicts to settle",
  "service-down": "waiting for a service",
  paused: "paused",
  new: "not run yet",
  ok: "well",
};

const plainReasons: Readonly<Partial<Record<OutcomeReason, string>>> = {
  refused: "the service refused it",
  unreachable: "the service did not answer",
  "server-error": "the service had an error",
  throttled: "the service asked to wait for too long",
  "bad-answer": "the service's answer made no sense",
  "answer-lost": "the service's answer was lost",
  "run-failed": "it ran, and failed at the service",
  deadline: "it did not end in its time",
  "no-evidence": "nothing at the service shows how it ended",
  "redis-loss": "Syncline lost its memory meanwhile",
  "expectation-not-met": "a list is not as it should be",
  "expectation-unreadable": "a list could not be read",
  crashed: "Syncline crashed over it again and again",
};

/** How a task ended: what a person must mend has one word, the reason tells the rest. */
export function plainEnd(status: string): string {
  return status === "timed-out" || status === "not-started" ? plainHealths.failing : wordsOfEnd(status);
}

/** `06:30`, within six days `Mon 06:30`, else with the date. */
export function plainTime(instantMs: number, { timezone, nowMs }: PlainClock): string {
  return showNear(Math.floor(instantMs / 60_000) * 60_000, timezone, nowMs).replace(/ \S+$/, "");
}

/** `at 06:30`, `on Mon 06:30`. */
function whenOf(instantMs: number, clock: PlainClock): string {
  const time = plainTime(instantMs, clock);
  return `${/^\d\d:/.test(time) ? "at" : "on"} ${time}`;
}

/** A policy that needs a person. */
export function policyTrouble(line: PolicyLine, clock: PlainClock): string {
  const { policy, acknowledged } = line;
  const known = acknowledged === undefined ? [] : [`Known to ${acknowledged.actor}: ${acknowledged.note}`];
  const owner = policy.owner === undefined ? [] : [`Owner: ${policy.owner}`];
  const parts = [
    `${policy.name}: ${happened(line, clock)}${besides(line)}`,
    ...goesOn(line, clock),
    wish(line),
    ...known,
    ...owner,
  ];
  return parts.join(". ");
}

function happened(line: PolicyLine, clock: PlainClock): string {
  const { health, worst, open, policy } = line;
  const from = sinceOf(line);
  const at = from === undefined ? "" : ` ${whenOf(from, clock)}`;
  const since = from === undefined ? "" : ` since ${plainTime(from, clock)}`;
  switch (health) {
    case "quarantined":
      return `stopped by Syncline${since}, as it kept failing (${quarantineNote(line)})`;
    case "unknown":
      return `not known${since} whether it ran well${reasonOf(line)}; its data may be old, or done in part`;
    case "missed":
      return `did not run${at}; its data is older than planned`;
    case "late":
      return `late${since}, when it should have been done${worst?.weight === "bad" ? `: ${endOf(line)}` : ""}`;
    case "unplanned":
      return `should have begun${at}, and has not`;
    case "blocked":
      return `waits for an approval${since}; until then its changes are not made`;
    case "conflicts":
      if (open !== undefined)
        return `${describeOpen(open, policy.service)}${since}, counted ${whenOf(open.atMs, clock)}: these records differ until they are settled`;
      return `ran${at}, and left new conflicts: these records differ until they are settled`;
    default:
      return endOf(line, (worst?.inARow ?? 1) > 1 ? since : at);
  }
}

/** What a line's health does not say. */
function besides({ health, open, policy }: PolicyLine): string {
  return open === undefined || health === "conflicts" ? "" : `; ${describeOpen(open, policy.service)}`;
}

function endOf(line: PolicyLine, when = ""): string {
  const { worst, isOfSeveral } = line;
  const what = plainEnd(worst?.last.status ?? "failed");
  const job = isOfSeveral && worst?.last.kind === "run" ? ` (sync job ${worst.target})` : "";
  const again = worst !== undefined && worst.inARow > 1 ? `, ${worst.inARow} times in a row` : "";
  return `${what}${job}${again}${when}${reasonOf(line)}`;
}

function reasonOf({ worst }: PolicyLine): string {
  if (worst === undefined) return "";
  const { reason } = worst.last;
  return `: ${Object.entries(plainReasons).find(([known]) => known === reason)?.[1] ?? reason.replaceAll("-", " ")}`;
}

/** Whether Syncline tries again by itself, and when. */
function goesOn({ health, nextMs, pauses, worst, policy }: PolicyLine, clock: PlainClock): string[] {
  if (health === "unplanned") return [];
  if (pauses.some(({ untilMs }) => untilMs === null)) return ["Syncline does not try again until a person resumes it"];
  if (nextMs === undefined) return ["Syncline does not try again by itself"];
  const isRefused = health === "failing" && worst?.last.reason === "refused";
  const vain = isRefused ? `, and that fails again unless ${policy.service} lets it` : "";
  return [`Syncline runs it again ${whenOf(nextMs, clock)}${vain}`];
}

/** Failures that are the service's, and over when it works again. */
const outageReasons: ReadonlySet<string> = new Set<OutcomeReason>(["unreachable", "server-error", "throttled"]);

/** Whether a policy waits for its service, which is down, or failed by that: no own trouble. */
export function waitsForService({ health, worst, policy }: PolicyLine, services: readonly ServiceNow[]): boolean {
  const isOutage = health === "failing" && outageReasons.has(worst?.last.reason ?? "");
  if (!isOutage && health !== "service-down") return false;
  return services.some(({ service, breaker }) => breaker === "open" && service === policy.service);
}

/** Who must do what. */
function wish({ health, worst, nextMs, policy: { service } }: PolicyLine): string {
  const reason = worst?.last.reason;
  switch (health) {
    case "quarantined":
      return "A person must mend the cause, then resume it";
    case "unknown":
      return `A person must look at ${service} whether the data is right`;
    case "unplanned":
      return "The people who run Syncline must look";
    case "blocked":
      return `A person must decide at ${service}`;
    case "conflicts":
      return `A person must settle them at ${service}`;
    default:
      if (health === "missed" || (health === "late" && worst?.weight !== "bad"))
        return "A person must run it by hand if that is too late";
      if (reason === "refused") return `A person must check what ${service} lets Syncline do`;
      if (!outageReasons.has(reason ?? "")) return `A person must look at ${service} for the cause`;
      return nextMs === undefined
        ? `A person must run it by hand when ${service} works again`
        : `If ${service} works then, it is well again; a person must run it by hand if that is too late`;
  }
}

/** Anything else that a person should know of. `lines`: of all policies that the text is about. */
export function otherTrouble(
  item: AttentionItem,
  known: { readonly services: readonly ServiceNow[]; readonly lines: readonly PolicyLine[] },
  clock: PlainClock,
): string {
  const { about, name, what, state, sinceMs, nextStep } = item;
  const since = sinceMs === undefined ? "" : ` since ${plainTime(sinceMs, clock)}`;
  switch (about) {
    case "policy":
      return `${name}: ended well ${whenOf(sinceMs ?? clock.nowMs, clock)}, but is ${what}. A person should look whether all is there`;
    case "service":
      return serviceTrouble(name, known, clock);
    case "list":
      return state === "unreadable"
        ? `${name} cannot be read${since}. Runs that need it end uncertain. The people who run Syncline must look`
        : `${name} takes long to read${since}. Nothing is lost. The people who run Syncline may look`;
    default: {
      const subject = about === "sink" ? `messages to ${name}` : "Syncline itself";
      return `${subject}: ${what}${since}. The people who run Syncline must act: ${nextStep}`;
    }
  }
}

type ServiceNow = LimiterStatus & { readonly service: string };

function serviceTrouble(name: string, { services, lines }: Parameters<typeof otherTrouble>[1], clock: PlainClock) {
  const { breaker, openSinceMs, throttledUntilMs } = services.find(({ service }) => service === name) ?? {};
  if (breaker !== "open") {
    const until = throttledUntilMs === undefined ? "" : ` until ${plainTime(throttledUntilMs, clock)}`;
    return `service ${name} asked Syncline to wait${until}. Nothing is lost: Syncline goes on then`;
  }
  const since = openSinceMs === undefined ? "" : ` since ${plainTime(openSinceMs, clock)}`;
  const own = lines.filter((line) => line.policy.service === name && waitsForService(line, services));
  const names = own.map(({ policy }) => policy.name);
  const failed = own.filter(({ health }) => health === "failing").length;
  const waiting = `${counted(names.length, "policy waits", "policies wait")} for it: ${someNames(names, undefined, 10)}`;
  const later = failed === 0 ? "" : `; what failed by this (${failed}) runs again at its next time`;
  return `service ${name} is down${since}${names.length === 0 ? "" : `; ${waiting}`}. Syncline asks it again and again, and goes on by itself when it answers${later}. If it should be up, tell the people who run ${name}`;
}
