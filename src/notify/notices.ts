// Makes notices from alert states, and of new items from what the mapping extracts: ids, titles and
// data, without secrets; and adds what people need beside them. Pure.
import type { Policy, PolicySet } from "../config/policy-set.ts";
import { fillLink } from "../config/schema/notify.ts";
import { formatRoughly } from "../core/duration.ts";
import { showClock, toIso } from "../core/instant.ts";
import { defined } from "../core/json.ts";
import { cutText, toPlainText } from "../core/plain-text.ts";
import { hashText } from "../core/stable-hash.ts";
import type { Late } from "../model/deadline.ts";
import { type Feed, feedId, type ItemFacts } from "../model/feed.ts";
import type { Notice } from "../model/notice.ts";
import type { LongRun } from "../model/notify-event.ts";
import type { Outcome } from "../model/outcome.ts";
import { parseTaskId } from "../model/task.ts";
import { type Unusual, unusualWords } from "../model/unusual.ts";
import type { BadHealth, Brief, NotifiedHealth, ServiceAlertState, TargetAlertState } from "./alert-state.ts";

const titleCharactersMax = 300;
const detailCharactersMax = 4_000;
const targetsNamedMax = 10;
const policiesNamedMax = 20;

/** After this a notice of a deadline says how late it is told itself. */
const reportedLateMs = 300_000;

type NoticePolicy = Pick<Policy, "name" | "service" | "timezone">;

/** How one task ended: for sinks with `every`; of a poll, by `notifyOn`, also with `change`. */
export function outcomeNotice(policy: NoticePolicy, outcome: Outcome): Notice {
  const { v: _version, coveredSlots: _covered, detail, ...fields } = outcome;
  const words = `${outcome.status} (${outcome.reason})${targetText(outcome.target)}`;
  const data = { ...fields, detail: cutText(detail, detailCharactersMax) };
  return make("outcome", about(policy, outcome.finishedAt, words), [outcome.taskId, data]);
}

/** A change by hand of a declared object was set back. */
export function driftNotice(policy: NoticePolicy, outcome: Outcome): Notice {
  const words = `drift corrected${targetText(outcome.target)}`;
  return make("drift", about(policy, outcome.finishedAt, words), [outcome.taskId, endOf(outcome)]);
}

/** A run ended well, and otherwise than is usual for its sync job. */
export function unusualNotice(policy: NoticePolicy, outcome: Outcome, findings: readonly Unusual[]): Notice {
  const { taskId, target, finishedAt, durationMs, activities = null, newConflicts } = outcome;
  const words = `unusual run (${unusualWords(findings)})${targetText(target)}`;
  const unusual = findings.map((finding) => ({ ...finding }));
  const data = { ...endOf(outcome), durationMs, activities, newConflicts, unusual };
  return make("unusual", about(policy, finishedAt, words), [taskId, data]);
}

function endOf({ taskId: task, status, reason, target, slot, detail }: Outcome): Notice["data"] {
  return { status, reason, target, slot, task, detail: cutText(detail, detailCharactersMax) };
}

/** A run takes unusually long and goes on. */
export function longRunNotice(policy: NoticePolicy, run: LongRun): Notice {
  const { taskId, target, slotMs, sentAtMs, atMs, usualMs } = run;
  const [took, usual] = [atMs - sentAtMs, usualMs].map((ms) => formatRoughly(ms, Math.round));
  const words = `runs for ${took}, usually ${usual}, and goes on${targetText(target)}`;
  const data = { target, slot: toIso(slotMs), task: taskId, since: toIso(sentAtMs), usualMs };
  return make("unusual", about(policy, toIso(atMs), words), [`${taskId}/goes-on`, data]);
}

/** A missed slot, for sinks with `every`. */
export function missedNotice(policy: NoticePolicy, brief: Brief): Notice {
  return make("outcome", about(policy, brief.at, brief.detail), [brief.key, dataOf(brief)]);
}

/** `alert`: the target that the notice describes; `bad`: all of which the sink is notified. */
interface Failing {
  readonly health: BadHealth;
  readonly alert: TargetAlertState;
  readonly bad: readonly string[];
  readonly at: string;
  readonly causeKey: string;
}

/** A policy fares worse, or fails differently. */
export function failingNotice(policy: NoticePolicy, { health, alert, bad, at, causeKey }: Failing): Notice {
  const { brief, inRow, sinceMs } = alert;
  const inRowText = health === "failing" && inRow > 1 ? `, ${inRow} slots in a row` : "";
  const why = health === "conflicts" ? `${brief.newConflicts ?? 0} new` : brief.reason;
  const words = `${health} (${why})${targetText(brief.target)}${inRowText}`;
  const names = bad.filter((target) => target !== "");
  const data = { ...dataOf(brief), state: health, inRow, since: toIso(sinceMs), ...namedTargets(names) };
  return make("failing", about(policy, at, words), [`${causeKey}/${health}`, data]);
}

interface Recovered {
  readonly brief: Brief;
  readonly before: BadHealth | "stale";
  readonly sinceMs: number;
  readonly isUncounted?: boolean | undefined;
}

/**
 * A policy is good again, as this ending shows, or had a success again. `isUncounted`: whether its
 * earlier conflicts are settled is not known.
 */
export function recoveredNotice(
  policy: NoticePolicy,
  { brief, before, sinceMs, isUncounted = false }: Recovered,
): Notice {
  const forMs = Date.parse(brief.at) - sinceMs;
  const after = forMs > 0 ? ` after ${formatRoughly(forMs, Math.round)}` : "";
  const data = { ...dataOf(brief), before, since: toIso(sinceMs) };
  const ended = isUncounted && before === "conflicts" ? "ended well" : "recovered";
  const unknown = isUncounted ? "; whether the earlier conflicts are settled was not counted" : "";
  const words = `${ended}${after} (was ${before})${unknown}`;
  return make("recovered", about(policy, brief.at, words), [`${brief.key}/${before}/${sinceMs}`, data]);
}

interface Removed extends Pick<Failing, "alert" | "at" | "causeKey"> {
  readonly before: NotifiedHealth;
  readonly targets: readonly string[];
}

/** The policy no longer names `targets`; the health of `alert`, one of them, is not known. */
export function removedNotice(policy: NoticePolicy, { alert, before, targets, at, causeKey }: Removed): Notice {
  const { brief } = alert;
  const { health, sinceMs } = before;
  const who = subjectOf(brief.target);
  const words = `${who} is not in the policy any more; it is not known to have recovered (was ${health})`;
  const data = { ...dataOf(brief), before: health, since: toIso(sinceMs), ...namedTargets(targets) };
  return make("removed", about(policy, at, words), [`${causeKey}/${health}/${sinceMs}`, data]);
}

/** A policy had no success for two intervals. */
export function staleNotice(policy: NoticePolicy, sinceMs: number, nowMs: number): Notice {
  const words = `no success for ${formatRoughly(nowMs - sinceMs, Math.round)}, two intervals or more`;
  return make("stale", about(policy, toIso(nowMs), words), [String(sinceMs), { since: toIso(sinceMs) }]);
}

/** A policy missed its deadline. `nowMs`: a notice long after it says so. */
export function lateNotice(policy: NoticePolicy, { atMs, sinceMs, fromMs, why }: Late, nowMs: number): Notice {
  const { timezone } = policy;
  const behindMs = nowMs - atMs;
  const told = behindMs > reportedLateMs ? ` (reported ${formatRoughly(behindMs, Math.round)} after the deadline)` : "";
  const before = sinceMs < atMs ? `, late since ${showClock(sinceMs, timezone, atMs)}` : "";
  const words = `late for ${showClock(atMs, timezone, nowMs)}${told}${before}: ${why}`;
  const data = { deadline: toIso(atMs), from: toIso(fromMs), since: toIso(sinceMs), detail: why };
  return make("late", about(policy, toIso(nowMs), words), [String(atMs), data]);
}

/** A policy that was late has ended well. */
export function lateEndedNotice(policy: NoticePolicy, { atMs, sinceMs }: Late, endedWellMs: number): Notice {
  const behind = formatRoughly(endedWellMs - sinceMs, Math.round);
  const deadline = showClock(sinceMs, policy.timezone, endedWellMs);
  const words = `recovered, ${behind} after its deadline ${deadline} (was late)`;
  const data = { before: "late", deadline: toIso(atMs), since: toIso(sinceMs) };
  return make("recovered", about(policy, toIso(endedWellMs), words), [`late/${sinceMs}/${endedWellMs}`, data]);
}

/** A service is down: one notice for all of its policies. */
export function serviceDownNotice(service: string, state: ServiceAlertState): Notice {
  const { count, policies, sinceMs, reason, hadBreaker } = state;
  const since = toIso(sinceMs);
  const who =
    count === 0
      ? "its policies wait for it, and none has failed yet"
      : `${count} ${count === 1 ? "policy fails" : "policies fail"}`;
  const first = policies.slice(0, 3).join(", ");
  const title = `service ${service} is down: ${who}${first === "" ? "" : ` (${first}${count > 3 ? ", …" : ""})`}`;
  const named = { policiesCount: count, policies: policies.slice(0, policiesNamedMax) };
  const data = { since, ...named, reason, breaker: hadBreaker };
  return make("service-down", { policy: null, service, at: since, title }, [String(sinceMs), data]);
}

/** A service is up again. */
export function serviceUpNotice(service: string, state: ServiceAlertState, untilMs: number): Notice {
  const { count, policies, sinceMs } = state;
  const durationMs = Math.max(0, untilMs - sinceMs);
  const who = count === 0 ? "" : `; ${count} ${count === 1 ? "policy" : "policies"} had failed`;
  const title = `service ${service} is up again after ${formatRoughly(durationMs, Math.round)}${who}`;
  const until = toIso(untilMs);
  const named = { policiesCount: count, policies: policies.slice(0, policiesNamedMax) };
  const data = { since: toIso(sinceMs), until, durationMs, ...named };
  return make("service-up", { policy: null, service, at: until, title }, [String(sinceMs), data]);
}

/** No policy with a sink or heartbeat names the service any more; its health is not known. */
export function serviceRemovedNotice(service: string, { sinceMs }: ServiceAlertState, nowMs: number): Notice {
  const title = `service ${service} is watched no more; it is not known to be up again (was down)`;
  const data = { before: "down", since: toIso(sinceMs) };
  return make("removed", { policy: null, service, at: toIso(nowMs), title }, [String(sinceMs), data]);
}

/** The token of a service expires and cannot be renewed. */
export function tokenNotice(service: string, expiresAtMs: number, nowMs: number): Notice {
  const title = `the token of service ${service} expires in ${formatRoughly(expiresAtMs - nowMs, Math.round)} and cannot be renewed`;
  const head = { policy: null, service, at: toIso(nowMs), title };
  return make("token-expiring", head, [String(expiresAtMs), { expiresAt: toIso(expiresAtMs) }]);
}

type Head = Pick<Notice, "policy" | "service" | "at" | "title">;

/** The title begins with the policy's name. */
function about({ name, service }: NoticePolicy, at: string, words: string): Head {
  return { policy: name, service, at, title: `${name}: ${words}` };
}

/** The id is a hash of the kind and the cause, so a repeated notice has the same id. */
function make(kind: Notice["kind"], head: Head, [key, data]: readonly [string, Notice["data"]]): Notice {
  const orderKey = head.policy ?? `service:${head.service}`;
  const id = `${kind}-${hashText(JSON.stringify([kind, orderKey, key]), 32)}`;
  return { v: 1, id, kind, orderKey, ...head, title: cutText(head.title, titleCharactersMax), data };
}

/** A missed slot and the reading of masks have no task. */
function dataOf({ key, at: _at, ...fields }: Brief): Notice["data"] {
  return parseTaskId(key) === undefined ? fields : { ...fields, task: key };
}

function namedTargets(names: readonly string[]): Notice["data"] {
  return { targets: names.slice(0, targetsNamedMax), targetsCount: names.length };
}

function targetText(target: string): string {
  return target === "" ? "" : `, ${subjectOf(target)}`;
}

/** A target in words: a sync job by its number. */
export function subjectOf(target: string): string {
  return /^\d+$/.test(target) ? `sync job ${target}` : target;
}

/** A new item, and its place in the order of discovery. */
export interface NewItem extends ItemFacts {
  readonly firstSeq: number;
  readonly seenAtMs: number | undefined;
}

/** The most items that a notice names: this keeps its data under 16 KiB. */
const itemsNamedMax = 20;
/** The most items of one walk that notices name; `count` counts them all. */
const itemsPerWalkMax = 10_000;
const namedInTitleMax = 3;
const charactersMax = { id: 100, label: 80, syncJobId: 40, labelInTitle: 60 };

/** Notices about these items in order, a few each. The same items give the same ids. */
export function itemNotices(feed: Feed, items: readonly NewItem[], nowMs: number): Notice[] {
  const notices: Notice[] = [];
  const named = items.slice(0, itemsPerWalkMax);
  const unnamed = items.length - named.length;
  for (let from = 0; from < named.length; from += itemsNamedMax) {
    const part = named.slice(from, from + itemsNamedMax);
    const data = {
      list: feed.list,
      repository: feed.repository,
      count: items.length,
      first: from + 1,
      items: part.map(toData),
      ...(unnamed === 0 ? {} : { unnamed }),
    };
    notices.push({
      v: 1,
      id: `items-${hashText(JSON.stringify([feedId(feed), part.map(({ firstSeq, id }) => [firstSeq, id])]), 32)}`,
      kind: "items",
      at: toIso(part.at(-1)?.seenAtMs ?? nowMs),
      orderKey: feedId(feed),
      policy: null,
      service: feed.service,
      title: titleOf(feed, part, { from, count: items.length }),
      data,
    });
  }
  return notices;
}

function titleOf(
  { list, repository }: Feed,
  part: readonly NewItem[],
  { from, count }: { from: number; count: number },
) {
  const where = `${list}${repository === null ? "" : ` of ${toPlainText(repository, charactersMax.labelInTitle)}`}`;
  const names = part
    .slice(0, namedInTitleMax)
    .map(({ id, label }) => toPlainText(label ?? id, charactersMax.labelInTitle));
  const which = from === 0 ? "" : `, from number ${from + 1}`;
  const more = part.length > namedInTitleMax ? ", …" : "";
  return cutText(`${where}: ${count} new${which} (${names.join(", ")}${more})`, titleCharactersMax);
}

function toData({ id, label, syncJobId, startedAtMs, finished, succeeded }: NewItem): Record<string, string | boolean> {
  return {
    id: toPlainText(id, charactersMax.id),
    ...(label === undefined ? {} : { label: toPlainText(label, charactersMax.label) }),
    ...(syncJobId === undefined ? {} : { syncJobId: toPlainText(syncJobId, charactersMax.syncJobId) }),
    ...(startedAtMs === undefined ? {} : { startedAt: toIso(startedAtMs) }),
    ...defined({ finished, succeeded }),
  };
}

type Settings = Pick<PolicySet, "policies" | "notifications">;

/** The notice with zone and owner of its policy, and the link of `notifications.link`. */
export function withContext(notice: Notice, set: Settings, policy?: Policy): Notice {
  const timezone = policy?.timezone ?? zoneOfService(set, notice.service);
  const { link: template } = set.notifications;
  const link = template === undefined ? undefined : fillLink(template, notice);
  return {
    ...notice,
    ...(policy?.owner === undefined ? {} : { data: { ...notice.data, owner: policy.owner } }),
    ...defined({ timezone, link }),
  };
}

/** The zone that all policies of a service have; undefined when they differ. */
function zoneOfService({ policies }: Settings, service: string | null): string | undefined {
  const zone = policies.find((one) => one.service === service)?.timezone;
  return policies.every((one) => one.service !== service || one.timezone === zone) ? zone : undefined;
}
