// Turns what queries find into what the API answers (schemas.ts). Pure.
import { type PolicySet, targetsOf } from "../../config/policy-set.ts";
import { toIso } from "../../core/instant.ts";
import { withoutSecretShapes } from "../../core/secrets.ts";
import type { Pause } from "../../model/pause.ts";
import { type AttentionItem, sinceOf } from "../../queries/attention.ts";
import { type AuditReport, auditToJson } from "../../queries/audit-policy.ts";
import { hoursOf, type NextDay, type Stretch } from "../../queries/next-day.ts";
import { ownersOf } from "../../queries/outages.ts";
import { describeUnusual, needsPerson, type PolicyLine, pauseOf, toAcknowledged } from "../../queries/policy-lines.ts";
import type { HandRun } from "../../queries/records.ts";
import { describeMissingRoles } from "../../queries/service-words.ts";
import type { SlotStory } from "../../queries/slot-story.ts";
import type { EndedSlot, PolicyDay } from "../../queries/slot-strips.ts";
import type { Status } from "../../queries/status.ts";
import { runningOf, slotsOf } from "../../queries/time-line.ts";

type ServiceStatus = Status["services"][number];

/** A pause as the API has it. */
export function toPauseAnswer({ scope, name, note, actor, sinceMs, untilMs, cause }: Pause) {
  const until = toIso(untilMs ?? undefined);
  return { scope, name, note, actor, since: toIso(sinceMs), until, isQuarantine: cause === "quarantine" };
}

/** A policy as the API has it. */
export function toPolicyAnswer(line: PolicyLine) {
  const { policy, health, worst, late } = line;
  const { name, service, repository = null, action, labels = {}, owner = null, where } = policy;
  const pause = pauseOf(line);
  return {
    ...{ name, service, repository, kind: action.kind, targets: targetsOf(action) ?? null, labels, owner, health },
    needsPerson: needsPerson[health],
    acknowledged: toAcknowledged(line.acknowledged),
    since: toIso(sinceOf(line)),
    inARow: worst?.inARow ?? 0,
    last: worst === undefined ? null : toLastAnswer(worst),
    lastGood: toIso(worst?.lastSuccessMs),
    usualDurationMs: line.usualMs ?? null,
    unusual: line.unusual === undefined ? null : describeUnusual(line.unusual),
    next: toIso(line.nextMs),
    late: late === undefined ? null : { deadline: toIso(late.atMs), since: toIso(late.sinceMs), why: late.why },
    openConflicts: line.openCount ?? null,
    pause: pause === undefined ? null : toPauseAnswer(pause),
    ...where,
  };
}

function toLastAnswer({ target, last }: NonNullable<PolicyLine["worst"]>) {
  const { taskId, status, evidence, confidence = null, reason, slotMs, finishedMs } = last;
  return { taskId, target, status, evidence, confidence, reason, slot: toIso(slotMs), finished: toIso(finishedMs) };
}

/** A slot as the API has it. */
export function toSlotAnswer({ slotMs, ending, durationMs, note }: EndedSlot) {
  return { slot: toIso(slotMs), ending, durationMs: durationMs ?? null, note };
}

/** A day as the API has it. */
export function toDayAnswer({ statuses, longestMs, medianMs, p95Ms, ...day }: PolicyDay) {
  const durations = { longestMs: longestMs ?? null, medianMs: medianMs ?? null, p95Ms: p95Ms ?? null };
  return { ...day, statuses: Object.fromEntries(statuses), ...durations };
}

/** A story as the API has it. */
export function toStoryAnswer(story: SlotStory) {
  const isInFlight = story.tasks.some((task) => task.isInFlight);
  return { ...story, missingRoles: isInFlight ? describeMissingRoles(story.processes) : [] };
}

/** A run by hand as the API has it. */
export function toHandRunAnswer({ givenMs, outcome, by, ...run }: HandRun) {
  return {
    ...run,
    given: toIso(givenMs),
    actor: by?.actor ?? null,
    reason: by?.reason ?? null,
    outcome: outcome ?? null,
  };
}

/** A service as the API has it. `policies`: all that the caller may see. */
export function toServiceAnswer(one: ServiceStatus, { services, policies }: PolicySet) {
  return {
    name: one.service,
    baseUrl: withoutSecretShapes(services.get(one.service)?.baseUrl ?? ""),
    breaker: one.breaker,
    openSince: toIso(one.openSinceMs),
    nextProbe: toIso(one.nextProbeMs),
    failures: one.failures,
    lastFailure: one.lastFailure ?? null,
    throttledUntil: toIso(one.throttledUntilMs),
    inFlight: one.inFlight,
    policies: policies.filter(({ service }) => service === one.service).length,
  };
}

/** An audit as the API has it. */
export function toAuditAnswer(report: AuditReport) {
  const findings = report.findings.map(({ slotMs, problem, taskId }) => ({ slot: toIso(slotMs), problem, taskId }));
  return { ...auditToJson(report), findings };
}

/** What is planned, as the API has it. */
export function toPlanAnswer({ range, line, services, peaks, nowMs }: NextDay) {
  const stretch = ({ slots, away, meets, requests }: Stretch) => ({ slots, away, meets, requests });
  return {
    ...{ asOf: toIso(nowMs), from: toIso(range.fromMs), to: toIso(range.toMs), cutAt: toIso(line.cutMs) },
    countedUntil: toIso(line.seenUntilMs),
    services: services.map((one) => ({
      ...{ service: one.service, policies: one.policies.size, ...stretch(one.all) },
      hours: hoursOf(one).map((hour) => ({ from: toIso(hour.fromMs), ...stretch(hour) })),
    })),
    peaks: peaks.map(({ fromMs, starts, policies }) => ({
      ...{ from: toIso(fromMs), starts, policies: policies.map(({ policy }) => policy) },
    })),
    slots: slotsOf(line),
    durationsUnknown: [...line.untimed],
    running: runningOf(line),
  };
}

/** What is not well, as the API has it. */
export function toAttentionAnswer(item: AttentionItem) {
  const { sinceMs, lastSuccessMs, slotMs, acknowledged, touches, heals, ...words } = item;
  const times = { since: toIso(sinceMs), lastGood: toIso(lastSuccessMs), slot: toIso(slotMs) };
  const policies = touches.slice(0, touchesMax).map(({ policy }) => policy.name);
  return {
    ...{ ...words, ...times, acknowledged: toAcknowledged(acknowledged), policies, policiesCount: touches.length },
    ...{ owner: ownersOf(touches) ?? null, healsByItself: heals },
  };
}

const touchesMax = 100;
