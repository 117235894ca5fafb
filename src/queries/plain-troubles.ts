// What a trouble means, for people who wait for the data and do not run Syncline: what happened and
// since when, whether Syncline goes on by itself, and who must do what. Pure.
import { showNear } from "../core/instant.ts";
import type { OutcomeReason } from "../model/outcome.ts";
import { type AttentionItem, quarantineNote, sinceOf, whomToAsk, wordsOfEnd } from "./attention.ts";
import { describeOpen } from "./open-conflicts.ts";
import { describeHeldUp, hasFailedByOutage, healsByItself } from "./outages.ts";
import type { PolicyHealth, PolicyLine } from "./policy-lines.ts";
import type { Status } from "./status.ts";

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
  "no-access": "the service did not let Syncline do it",
  unreachable: "the service did not answer",
  "server-error": "the service had an error",
  throttled: "the service asked to wait for too long",
  "bad-answer": "the service's answer made no sense",
  "answer-lost": "no answer of the service is known",
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

/** What is wrong, whether it heals by itself or what a person must do, and whom to ask. */
export function troubleOf(item: AttentionItem, services: Status["services"], clock: PlainClock): string {
  const [line] = item.touches;
  if (item.about !== "policy" || line === undefined) return otherTrouble(item, services, clock);
  const { acknowledged } = item;
  const known = acknowledged === undefined ? [] : [`Known to ${acknowledged.actor}: ${acknowledged.note}`];
  const told =
    item.state === "unusual"
      ? [unusualTrouble(item, clock)]
      : [`${happened(line, clock)}${besides(line, clock)}`, ...remedy(line, clock)];
  return [`${item.name}: ${told.join(". ")}`, asSentence(whomToAsk(item)), ...known].join(". ");
}

function unusualTrouble({ what, sinceMs }: AttentionItem, clock: PlainClock): string {
  return `ended well ${whenOf(sinceMs ?? clock.nowMs, clock)}, but is ${what}. A person should look whether all is there`;
}

function asSentence(words: string): string {
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
}

function happened(line: PolicyLine, clock: PlainClock): string {
  const { health, worst, open, policy, underWayMs } = line;
  const from = sinceOf(line);
  const at = from === undefined ? "" : ` ${whenOf(from, clock)}`;
  const since = from === undefined ? "" : ` since ${plainTime(from, clock)}`;
  switch (health) {
    case "quarantined":
      return `stopped by Syncline${since}, as it kept failing (${quarantineNote(line)})`;
    case "unknown":
      if (worst?.last.kind === "poll") return `its list could not be judged${since}${reasonOf(line)}`;
      return `not known${since} whether it ran well${reasonOf(line)}; its data may be old, or done in part`;
    case "missed":
      // A missed slot is noted when it was found.
      return `did not run in time${line.missedMs === undefined ? at : `, as was found${at}`}; its data is older than planned`;
    case "late":
      return underWayMs === undefined
        ? `late${since}, when it should have been done${worst?.weight === "bad" ? `: ${endOf(line)}` : ""}`
        : `late${since}, when it should have been done: its run of ${plainTime(underWayMs, clock)} has not ended yet`;
    case "unplanned":
      return `should have begun${at}, and has not`;
    case "blocked":
      return `waits for an approval${since}; until then its changes are not made`;
    case "conflicts":
      if (open !== undefined)
        return `${describeOpen(open, policy.service)}${since}, counted ${whenOf(open.atMs, clock)}: these records differ until they are settled`;
      return `ran${at}, and left new conflicts: these records differ until they are settled`;
    default:
      return endOf(line, badInARow(worst) > 1 ? since : at);
  }
}

/** What a line's health does not say. */
function besides({ health, late, open, policy }: PolicyLine, clock: PlainClock): string {
  const isLate = late !== undefined && health !== "late";
  const words = [
    ...(isLate ? [`; late since ${plainTime(late.sinceMs, clock)}, when it should have been done`] : []),
    ...(open === undefined || health === "conflicts"
      ? []
      : [`; ${describeOpen(open, policy.service)}, counted ${whenOf(open.atMs, clock)}`]),
  ];
  return words.join("");
}

/** How many bad ends in a row there are. Without a bad weight the row is that of successes. */
function badInARow(worst: PolicyLine["worst"]): number {
  return worst?.weight === "bad" ? worst.inARow : 1;
}

function endOf(line: PolicyLine, when = ""): string {
  const { worst, isOfSeveral } = line;
  const what = plainEnd(worst?.last.status ?? "failed");
  const job = isOfSeveral && worst?.last.kind === "run" ? ` (sync job ${worst.target})` : "";
  const again = badInARow(worst) > 1 ? `, ${badInARow(worst)} times in a row` : "";
  return `${what}${job}${again}${when}${reasonOf(line)}`;
}

function reasonOf({ worst }: PolicyLine): string {
  if (worst === undefined) return "";
  const { reason } = worst.last;
  return `: ${Object.entries(plainReasons).find(([known]) => known === reason)?.[1] ?? reason.replaceAll("-", " ")}`;
}

/** Whether it heals by itself, or who must do what; and when Syncline runs it again. */
function remedy(line: PolicyLine, clock: PlainClock): string[] {
  const { health, nextMs, waitingMs, pauses, worst, policy } = line;
  const { service } = policy;
  if (healsByItself(line)) {
    if (waitingMs !== undefined) return [`Heals by itself: its run goes on when ${service} answers`];
    const unless = health === "failing" ? `, if ${service} works then` : "";
    const next = nextMs === undefined ? "" : ` ${whenOf(nextMs, clock)}`;
    return [`Heals by itself: Syncline runs it again${next}${unless}. A person may run it by hand before`];
  }
  const must = wish(line);
  // Running again settles no conflict.
  if (health === "unplanned" || health === "conflicts") return [must];
  if (pauses.some(({ untilMs }) => untilMs === null))
    return [must, "Syncline does not try again until a person resumes it"];
  if (nextMs === undefined) return [must, "Syncline does not try again by itself"];
  const isVain = health === "failing" && ["refused", "no-access"].includes(worst?.last.reason ?? "");
  return [
    must,
    `Syncline runs it again ${whenOf(nextMs, clock)}${isVain ? ", and that fails again until it is mended" : ""}`,
  ];
}

/** Who must do what. */
function wish(line: PolicyLine): string {
  const { health, worst, nextMs, policy, underWayMs } = line;
  const { service } = policy;
  // A poll only reads: what hindered it is the trouble.
  switch (health === "unknown" && worst?.last.kind === "poll" ? "failing" : health) {
    case "quarantined":
      return "A person must mend the cause, then resume it";
    case "unknown":
      return `A person must look at ${service} whether the data is right`;
    case "missed":
    case "late":
      return underWayMs === undefined
        ? "A person must run it by hand, or let it wait"
        : `It may end by itself. A person should look at ${service} what it waits for, and not start it again`;
    case "unplanned":
      return "The people who run Syncline must look";
    case "blocked":
      return `A person must decide at ${service}`;
    case "conflicts":
      return `A person must settle them at ${service}`;
    default:
      if (worst?.last.reason === "no-access") return `A person must check what ${service} lets Syncline do`;
      return hasFailedByOutage(line) && nextMs === undefined
        ? `A person must run it by hand when ${service} works again`
        : `A person must look at ${service} for the cause`;
  }
}

function otherTrouble(item: AttentionItem, services: Status["services"], clock: PlainClock): string {
  const { about, name, what, state, sinceMs, nextStep } = item;
  const since = sinceMs === undefined ? "" : ` since ${plainTime(sinceMs, clock)}`;
  const care = "The people who run Syncline";
  switch (about) {
    case "service":
      return state === "down" ? outageTrouble(item, since) : throttleTrouble(item, services, clock);
    case "list": {
      if (state !== "unreadable") return `${name} takes long to read${since}. Nothing is lost. ${care} may look`;
      const isOfApprovals = name.startsWith("approvals of ");
      const then = isOfApprovals ? "No run is found to wait for one meanwhile" : "Runs that need it end uncertain";
      return `${name} cannot be read${since}. ${then}. ${care} must look`;
    }
    default: {
      const subject = about === "sink" ? `messages to ${name}` : "Syncline itself";
      return `${subject}: ${what}${since}. ${care} must act: ${nextStep}`;
    }
  }
}

function throttleTrouble(item: AttentionItem, services: Status["services"], clock: PlainClock): string {
  const { name, heals, sinceMs = clock.nowMs } = item;
  if (!heals)
    return `service ${name} has asked Syncline to wait again and again since ${plainTime(sinceMs, clock)}. Runs come late. The people who run Syncline must ask it for less`;
  const { throttledUntilMs } = services.find(({ service }) => service === name) ?? {};
  const until = throttledUntilMs === undefined ? "" : ` until ${plainTime(throttledUntilMs, clock)}`;
  return `service ${name} asked Syncline to wait${until}. Nothing is lost: Syncline goes on then`;
}

function outageTrouble(item: AttentionItem, since: string): string {
  const { name, touches } = item;
  const held = touches.length === 0 ? [] : [asSentence(describeHeldUp(touches)), asSentence(whomToAsk(item))];
  const heals = "Heals by itself: Syncline asks it again and again, and goes on when it answers";
  return [
    `service ${name} is down${since}`,
    heals,
    `If it should be up, tell the people who run ${name}`,
    ...held,
  ].join(". ");
}
