// Makes notices: their ids, titles and data. Pure; called by the decisions. Holds no secret: it says what outcomes and policies say.
import type { Policy } from "../config/policy-set.ts";
import { formatDuration } from "../core/duration.ts";
import { hashText } from "../core/stable-hash.ts";
import type { Notice } from "../tasks/notice.ts";
import type { Outcome } from "../tasks/outcome.ts";
import type { BadFate, Brief, PolicyStanding, ServiceStanding } from "./standing.ts";

/** A notice for one sink. */
export interface Telling {
  readonly sink: string;
  readonly notice: Notice;
}

const titleCharactersMax = 300;
const targetsNamedMax = 10;
const policiesNamedMax = 20;

type Told = Pick<Policy, "name" | "service">;

/** How one task ended, for those who are told each. */
export function outcomeNotice({ name, service }: Told, outcome: Outcome): Notice {
  const { v: _version, coveredSlots: _covered, detail, ...fields } = outcome;
  const title = `${name}: ${outcome.status} (${outcome.reason})${targetText(outcome.target)}`;
  return make("outcome", { policy: name, service, at: outcome.finishedAt, title }, [
    outcome.taskId,
    { ...fields, detail: detail.slice(0, 4_000) },
  ]);
}

/** Somebody changed by hand what is declared, and it was set again. */
export function driftNotice({ name, service }: Told, outcome: Outcome): Notice {
  const { taskId, status, reason, target, slot, finishedAt, detail } = outcome;
  const title = `${name}: drift mended${targetText(target)}`;
  return make("drift", { policy: name, service, at: finishedAt, title }, [
    taskId,
    { status, reason, target, slot, task: taskId, detail: detail.slice(0, 4_000) },
  ]);
}

/** A slot that was missed, for those who are told each. */
export function missedNotice({ name, service }: Told, brief: Brief): Notice {
  return make("outcome", { policy: name, service, at: brief.at, title: `${name}: ${brief.detail}` }, [
    brief.key,
    dataOf(brief),
  ]);
}

/** A policy fares worse, or otherwise badly. `fate`: what the sink is told. */
export function failingNotice({ name, service }: Told, fate: BadFate, standing: PolicyStanding): Notice | undefined {
  const { last, inRow, targets, badSinceMs } = standing;
  if (last === null) return undefined;
  const rows = fate === "failing" && inRow > 1 ? `, ${inRow} slots in a row` : "";
  // What is left when another target has got better: the last bad ending was not of this kind.
  const own = targets[last.target];
  const isOwn = own !== undefined && (own.fate === fate || (fate === "conflicts" && own.fate === "good"));
  const why = fate === "conflicts" ? `${last.newConflicts ?? 0} new` : last.reason;
  const title = `${name}: ${fate}${isOwn ? ` (${why})${targetText(last.target)}` : ""}${rows}`;
  const names = Object.keys(targets).filter((target) => target !== "");
  const data = {
    ...dataOf(last),
    state: fate,
    inRow,
    since: toIso(badSinceMs),
    targets: names.slice(0, targetsNamedMax),
  };
  return make("failing", { policy: name, service, at: last.at, title }, [
    `${last.key}/${fate}`,
    { ...data, targetsCount: names.length },
  ]);
}

/** A policy is good again, or speaks again. `brief`: the ending that shows it. */
export function recoveredNotice(
  { name, service }: Told,
  {
    brief,
    before,
    sinceMs,
  }: { readonly brief: Brief; readonly before: BadFate | "silent"; readonly sinceMs: number | null },
): Notice {
  const forMs = sinceMs === null ? 0 : Date.parse(brief.at) - sinceMs;
  const after = forMs > 0 ? ` after ${roughly(forMs)}` : "";
  const data = { ...dataOf(brief), before, since: toIso(sinceMs) };
  const title = `${name}: recovered${after} (was ${before})`;
  return make("recovered", { policy: name, service, at: brief.at, title }, [`${brief.key}/${before}`, data]);
}

/** A policy had no success for two intervals. */
export function silentNotice({ name, service }: Told, sinceMs: number, nowMs: number): Notice {
  const title = `${name}: no success for ${roughly(nowMs - sinceMs)}, two intervals or more`;
  return make("silent", { policy: name, service, at: new Date(nowMs).toISOString(), title }, [
    String(sinceMs),
    { since: toIso(sinceMs) },
  ]);
}

/** A service is down: one message for all of its policies. */
export function serviceDownNotice(service: string, standing: ServiceStanding, at: string): Notice {
  const { count, policies, sinceMs, reason, hadBreaker } = standing;
  const who = count === 0 ? "no policy has failed yet" : `${count} ${count === 1 ? "policy fails" : "policies fail"}`;
  const first = policies.slice(0, 3).join(", ");
  const title = `service ${service} is down: ${who}${first === "" ? "" : ` (${first}${count > 3 ? ", …" : ""})`}`;
  const data = {
    since: toIso(sinceMs),
    policiesCount: count,
    policies: policies.slice(0, policiesNamedMax),
    reason,
    breaker: hadBreaker,
  };
  return make("service-down", { policy: null, service, at, title }, [String(sinceMs), data]);
}

/** A service is well again. */
export function serviceUpNotice(service: string, standing: ServiceStanding, untilMs: number): Notice {
  const { count, policies, sinceMs } = standing;
  const durationMs = Math.max(0, untilMs - sinceMs);
  const who = count === 0 ? "" : `; ${count} ${count === 1 ? "policy" : "policies"} had failed`;
  const title = `service ${service} is up again after ${roughly(durationMs)}${who}`;
  const until = new Date(untilMs).toISOString();
  const data = {
    since: toIso(sinceMs),
    until,
    durationMs,
    policiesCount: count,
    policies: policies.slice(0, policiesNamedMax),
  };
  return make("service-up", { policy: null, service, at: until, title }, [String(sinceMs), data]);
}

/** The token of a service runs out and cannot be renewed. */
export function tokenNotice(service: string, expiresAtMs: number, nowMs: number): Notice {
  const title = `the token of service ${service} expires in ${roughly(expiresAtMs - nowMs)} and cannot be renewed`;
  return make("token-expiring", { policy: null, service, at: new Date(nowMs).toISOString(), title }, [
    String(expiresAtMs),
    { expiresAt: toIso(expiresAtMs) },
  ]);
}

type Head = Pick<Notice, "policy" | "service" | "at" | "title">;

/** The id rests on what is told and by what it is known, so the same thing has the same id whenever it is told. */
function make(kind: Notice["kind"], head: Head, [key, data]: readonly [string, Notice["data"]]): Notice {
  const orderKey = head.policy ?? `service:${head.service}`;
  const id = `${kind}-${hashText(JSON.stringify([kind, orderKey, key]), 32)}`;
  return { v: 1, id, kind, orderKey, ...head, title: head.title.slice(0, titleCharactersMax), data };
}

function dataOf({ key, at: _at, ...fields }: Brief): Notice["data"] {
  return { ...fields, task: key };
}

function targetText(target: string): string {
  return target === "" ? "" : /^\d+$/.test(target) ? `, sync job ${target}` : `, ${target}`;
}

function toIso(instantMs: number | null): string | null {
  return instantMs === null ? null : new Date(instantMs).toISOString();
}

/** A duration for people: in the largest unit of which there are at least two. */
function roughly(durationMs: number): string {
  const unitMs = [86_400_000, 3_600_000, 60_000].find((unit) => durationMs >= 2 * unit) ?? 1_000;
  return formatDuration(Math.max(0, Math.round(durationMs / unitMs)) * unitMs);
}
