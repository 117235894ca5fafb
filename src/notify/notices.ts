// Makes notices: ids, titles and data. They hold no secret, only what outcomes and policies hold.
// Pure; called by decide.ts, decide-service.ts and evaluate.ts.
import type { Policy } from "../config/policy-set.ts";
import { formatDuration } from "../core/duration.ts";
import { hashText } from "../core/stable-hash.ts";
import type { Notice } from "../model/notice.ts";
import type { Outcome } from "../model/outcome.ts";
import type { BadHealth, Brief, ServiceAlertState, TargetState } from "./alert-state.ts";

/** A notice for one sink. */
export interface AddressedNotice {
  readonly sink: string;
  readonly notice: Notice;
}

const titleCharactersMax = 300;
const targetsNamedMax = 10;
const policiesNamedMax = 20;

type Told = Pick<Policy, "name" | "service">;

/** How one task ended, for sinks with `every`. */
export function outcomeNotice({ name, service }: Told, outcome: Outcome): Notice {
  const { v: _version, coveredSlots: _covered, detail, ...fields } = outcome;
  const title = `${name}: ${outcome.status} (${outcome.reason})${targetText(outcome.target)}`;
  return make("outcome", { policy: name, service, at: outcome.finishedAt, title }, [
    outcome.taskId,
    { ...fields, detail: detail.slice(0, 4_000) },
  ]);
}

/** A change by hand of a declared object was set back. */
export function driftNotice({ name, service }: Told, outcome: Outcome): Notice {
  const { taskId, status, reason, target, slot, finishedAt, detail } = outcome;
  const title = `${name}: drift corrected${targetText(target)}`;
  return make("drift", { policy: name, service, at: finishedAt, title }, [
    taskId,
    { status, reason, target, slot, task: taskId, detail: detail.slice(0, 4_000) },
  ]);
}

/** A missed slot, for sinks with `every`. */
export function missedNotice({ name, service }: Told, brief: Brief): Notice {
  return make("outcome", { policy: name, service, at: brief.at, title: `${name}: ${brief.detail}` }, [
    brief.key,
    dataOf(brief),
  ]);
}

/**
 * What a sink is told of a policy. `own`: the target that the notice names; `bad`: all bad targets
 * that this sink is told of; `causeKey`: the id of the cause.
 */
interface Failing {
  readonly health: BadHealth;
  readonly own: TargetState;
  readonly bad: readonly string[];
  readonly at: string;
  readonly causeKey: string;
}

/**
 * A policy fares worse, or fails differently. The notice describes only the target that it names.
 */
export function failingNotice({ name, service }: Told, { health, own, bad, at, causeKey }: Failing): Notice {
  const { brief, inRow, sinceMs } = own;
  const rows = health === "failing" && inRow > 1 ? `, ${inRow} slots in a row` : "";
  const why = health === "conflicts" ? `${brief.newConflicts ?? 0} new` : brief.reason;
  const title = `${name}: ${health} (${why})${targetText(brief.target)}${rows}`;
  const names = bad.filter((target) => target !== "");
  const data = { ...dataOf(brief), state: health, inRow, since: toIso(sinceMs), ...targetsOf(names) };
  return make("failing", { policy: name, service, at, title }, [`${causeKey}/${health}`, data]);
}

/**
 * A policy is good again, or had a success again. `brief`: the ending that shows it; `sinceMs`:
 * since when it was not.
 */
export function recoveredNotice(
  { name, service }: Told,
  { brief, before, sinceMs }: { readonly brief: Brief; readonly before: BadHealth | "stale"; readonly sinceMs: number },
): Notice {
  const forMs = Date.parse(brief.at) - sinceMs;
  const after = forMs > 0 ? ` after ${roughly(forMs)}` : "";
  const data = { ...dataOf(brief), before, since: toIso(sinceMs) };
  const title = `${name}: recovered${after} (was ${before})`;
  return make("recovered", { policy: name, service, at: brief.at, title }, [`${brief.key}/${before}/${sinceMs}`, data]);
}

/**
 * The policy no longer names `targets`, so what a sink was told of them is over. `own`: the target
 * that it was told of; its health is not known.
 */
export function removedNotice(
  { name, service }: Told,
  {
    own: { brief },
    before,
    targets,
    at,
    causeKey,
  }: {
    readonly own: TargetState;
    readonly before: { readonly health: BadHealth; readonly sinceMs: number };
    readonly targets: readonly string[];
    readonly at: string;
    readonly causeKey: string;
  },
): Notice {
  const { health, sinceMs } = before;
  const who = subjectOf(brief.target);
  const title = `${name}: ${who} is not in the policy any more; it is not known to have recovered (was ${health})`;
  const data = { ...dataOf(brief), before: health, since: toIso(sinceMs), ...targetsOf(targets) };
  return make("removed", { policy: name, service, at, title }, [`${causeKey}/${health}/${sinceMs}`, data]);
}

/** A policy had no success for two intervals. */
export function staleNotice({ name, service }: Told, sinceMs: number, nowMs: number): Notice {
  const title = `${name}: no success for ${roughly(nowMs - sinceMs)}, two intervals or more`;
  return make("stale", { policy: name, service, at: new Date(nowMs).toISOString(), title }, [
    String(sinceMs),
    { since: toIso(sinceMs) },
  ]);
}

/** A service is down: one notice for all of its policies. */
export function serviceDownNotice(service: string, alertState: ServiceAlertState, at: string): Notice {
  const { count, policies, sinceMs, reason, hadBreaker } = alertState;
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

/** A service is up again. */
export function serviceUpNotice(service: string, alertState: ServiceAlertState, untilMs: number): Notice {
  const { count, policies, sinceMs } = alertState;
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

/** The token of a service expires and cannot be renewed. */
export function tokenNotice(service: string, expiresAtMs: number, nowMs: number): Notice {
  const title = `the token of service ${service} expires in ${roughly(expiresAtMs - nowMs)} and cannot be renewed`;
  return make("token-expiring", { policy: null, service, at: new Date(nowMs).toISOString(), title }, [
    String(expiresAtMs),
    { expiresAt: toIso(expiresAtMs) },
  ]);
}

type Head = Pick<Notice, "policy" | "service" | "at" | "title">;

/** The id is a hash of the kind and the cause, so a repeated notice has the same id. */
function make(kind: Notice["kind"], head: Head, [key, data]: readonly [string, Notice["data"]]): Notice {
  const orderKey = head.policy ?? `service:${head.service}`;
  const id = `${kind}-${hashText(JSON.stringify([kind, orderKey, key]), 32)}`;
  return { v: 1, id, kind, orderKey, ...head, title: head.title.slice(0, titleCharactersMax), data };
}

function dataOf({ key, at: _at, ...fields }: Brief): Notice["data"] {
  return { ...fields, task: key };
}

/** The first few names, and their number. */
function targetsOf(names: readonly string[]): Notice["data"] {
  return { targets: names.slice(0, targetsNamedMax), targetsCount: names.length };
}

function targetText(target: string): string {
  return target === "" ? "" : `, ${subjectOf(target)}`;
}

function subjectOf(target: string): string {
  return /^\d+$/.test(target) ? `sync job ${target}` : target;
}

function toIso(instantMs: number | null): string | null {
  return instantMs === null ? null : new Date(instantMs).toISOString();
}

/** A duration for people: in the largest unit of which there are at least two. */
function roughly(durationMs: number): string {
  const unitMs = [86_400_000, 3_600_000, 60_000].find((unit) => durationMs >= 2 * unit) ?? 1_000;
  return formatDuration(Math.max(0, Math.round(durationMs / unitMs)) * unitMs);
}
