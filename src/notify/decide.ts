// Decides which notices the end of a task or slot causes for its policy. Pure; called by
// evaluate.ts for each event, in order.
//
//   ending ─▶ the target's health ─▶ is it the service's fault? ─▶ what each sink is told
//     └─▶ a notice for each sink that was last notified of something else
//
// What may be the service's fault waits as its target's `outage` until decide-service.ts knows
// more.
import { type NotifyRule, type Policy, targetsOf } from "../config/policy-set.ts";
import type { AddressedNotice, Notice } from "../model/notice.ts";
import type { LongRun } from "../model/notify-event.ts";
import { findingsOf, healths } from "../model/outcome.ts";
import { targetFromMasks } from "../model/task.ts";
import type { Unusual } from "../model/unusual.ts";
import { type AlertEvent, didWork, type MasksRead } from "./alert-event.ts";
import type {
  BadHealth,
  Brief,
  NotifiedHealth,
  PolicyAlertState,
  ServiceAlertState,
  TargetAlertState,
} from "./alert-state.ts";
import { withFailure, withSignOfLife } from "./decide-service.ts";
import {
  driftNotice,
  failingNotice,
  longRunNotice,
  missedNotice,
  outcomeNotice,
  recoveredNotice,
  removedNotice,
  unusualNotice,
} from "./notices.ts";

/** The alert state of a policy and of its service. */
interface AlertStates {
  readonly policy: PolicyAlertState;
  readonly service: ServiceAlertState;
}

/** The new alert state of a policy, and its notices. */
export interface PolicyDecision {
  readonly policy: PolicyAlertState;
  readonly notices: readonly AddressedNotice[];
}

/** After an outage, so many policies that fail as they did in it are notified one by one. */
const toldSinglyMax = 20;

/** Decides at the end of a task or slot. The same event and states give the same notices. */
export function decideEvent(policy: Policy, before: AlertStates, event: AlertEvent): AlertStates & PolicyDecision {
  const each = [...everyNotices(policy, event), ...driftNotices(policy, event), ...unusualNotices(policy, event)];
  const { brief, health, isSuccess, atMs, news } = event;
  if (health === undefined) return { ...before, notices: each };
  const mayBeOutage =
    event.servicesFault === "yes" || (event.servicesFault === "while-down" && before.service.phase !== "calm");
  let { service } = before;
  if (mayBeOutage) {
    const isNew = !isPartOf(policy.name, before.policy, service);
    const known = before.policy.targets[brief.target];
    // A target that fails again for the same reason weighs on both sides, so such targets alone
    // make no outage. After an outage that hid its last failure this holds for the first
    // `toldSinglyMax` policies only.
    const isRepeated =
      known?.brief.reason === brief.reason && (known.outage === undefined || service.count < toldSinglyMax);
    const isStill = known !== undefined && !didWork(known.health);
    service = withFailure(service, { policy: policy.name, event, isNew, isRepeated, isStill });
  } else if (event.isSignOfLife) service = withSignOfLife(service, atMs);
  const conflictsMax = policy.follow.conflictsMax ?? 0;
  const after = withEvent(before.policy, event, {
    conflictsMax,
    outage: mayBeOutage ? service.sinceMs : undefined,
  });
  const isUncounted = didWork(health) && event.stillConflicts === undefined && hasLeft(before.policy, brief.target);
  const updated = notifySinks(policy, after, { key: brief.key, ending: brief, isUncounted });
  const ofPolicy = new Set(updated.notices.map(({ sink }) => sink));
  const notices = [...each, ...updated.notices];
  if (isSuccess)
    notices.push(...noLongerStale(policy, updated.policy, event).filter(({ sink }) => !ofPolicy.has(sink)));
  // The notice of the outage covers it.
  const isOfOutage = mayBeOutage || before.policy.targets[brief.target]?.outage !== undefined;
  if (!(isOfOutage && news === "changed")) notices.push(...newsNotices(policy, event, notices));
  return { service, policy: { ...updated.policy, stale: isSuccess ? null : after.stale }, notices };
}

/** Notifies what waited since then: the service is not down, and the policy fails by itself. */
export function releaseOwnFailures(policy: Policy, before: PolicyAlertState, sinceMs: number): PolicyDecision {
  const released = ({ outage, ...target }: TargetAlertState): TargetAlertState =>
    outage === undefined || outage === sinceMs ? target : { ...target, outage };
  const targets = Object.entries(before.targets).map(([name, target]) => [name, released(target)]);
  return notifySinks(policy, { ...before, targets: Object.fromEntries(targets) }, { key: `released/${sinceMs}` });
}

/** Notes the sync jobs that the masks name. That they could be read ends their own failure. */
export function decideMasks(
  policy: Policy,
  before: PolicyAlertState,
  { brief, slotMs, syncJobs }: MasksRead,
): PolicyDecision {
  if (targetsOf(policy.action) !== undefined || slotMs < (before.masks?.slotMs ?? slotMs))
    return { policy: before, notices: [] };
  const { [targetFromMasks]: lookup, ...others } = before.targets;
  const isOver = lookup !== undefined && lookup.slotMs <= slotMs;
  const targets = isOver ? others : before.targets;
  const after = { ...before, targets, masks: { slotMs, syncJobs: [...syncJobs] } };
  return removeUnnamed(policy, after, { key: brief.key, at: brief.at, ...(isOver ? { ending: brief } : {}) });
}

/**
 * Forgets targets that the policy no longer names; whether they recovered is not known. A sink that
 * was notified of such a target, and of no other bad one, is notified of the removal.
 */
export function removeUnnamed(
  policy: Policy,
  before: PolicyAlertState,
  cause: Pick<Cause, "key" | "at" | "ending">,
): PolicyDecision {
  const masks = targetsOf(policy.action) === undefined ? before.masks : null;
  const named = namedBy(policy, before);
  const isUnnamed = ([name]: readonly [string, unknown]) => named !== undefined && !named.has(name);
  const all = Object.entries(before.targets);
  const removed = new Map(all.filter(isUnnamed));
  if (removed.size === 0 && cause.ending === undefined) return { policy: { ...before, masks }, notices: [] };
  const key = [cause.key, ...[...removed.values()].map(({ brief }) => brief.key)].join("/");
  const targets = Object.fromEntries(all.filter((one) => !isUnnamed(one)));
  return notifySinks(policy, { ...before, targets, masks }, { ...cause, key, removed });
}

/** The targets of a policy, and '' for its slots; undefined while the masks are not read yet. */
function namedBy({ action }: Policy, { masks }: PolicyAlertState): ReadonlySet<string> | undefined {
  const fixed = targetsOf(action);
  if (fixed !== undefined) return new Set(["", ...fixed]);
  return masks === null ? undefined : new Set(["", targetFromMasks, ...masks.syncJobs]);
}

/** A notice for each sink whose rule wants it. */
function forSinks({ notify = [] }: Policy, notice: Notice, wants: (rule: NotifyRule) => boolean): AddressedNotice[] {
  return notify.filter(wants).map(({ sink }) => ({ sink, notice }));
}

function everyNotices(policy: Policy, { outcome, brief }: AlertEvent): AddressedNotice[] {
  const notice = outcome === undefined ? missedNotice(policy, brief) : outcomeNotice(policy, outcome);
  return forSinks(policy, notice, ({ every }) => every);
}

/** A change by hand was set back: one notice, whatever the state of the policy. */
function driftNotices(policy: Policy, { outcome }: AlertEvent): AddressedNotice[] {
  if (outcome?.reason !== "drift-corrected") return [];
  return forSinks(policy, driftNotice(policy, outcome), ({ drift }) => drift);
}

/** An unusual run: one notice, unless it was told while it went on. */
function unusualNotices(policy: Policy, { outcome }: AlertEvent): AddressedNotice[] {
  if (outcome === undefined) return [];
  const isTold = ({ what, value, usual }: Unusual) => what === "duration" && value > usual && outcome.toldLong === true;
  const findings = findingsOf(outcome).filter((finding) => !isTold(finding));
  if (findings.length === 0) return [];
  return forSinks(policy, unusualNotice(policy, outcome, findings), ({ unusual }) => unusual);
}

/** The notices of a run that goes on for unusually long. */
export function longRunNotices(policy: Policy, run: LongRun): AddressedNotice[] {
  return forSinks(policy, longRunNotice(policy, run), ({ unusual }) => unusual);
}

/** A poll may ask for a notice although its policy's health is the same. */
function newsNotices(
  policy: Policy,
  { outcome, news }: AlertEvent,
  sent: readonly AddressedNotice[],
): AddressedNotice[] {
  if (news === undefined || outcome === undefined) return [];
  const notified = new Set(sent.map(({ sink }) => sink));
  return forSinks(policy, outcomeNotice(policy, outcome), ({ sink, change }) => change && !notified.has(sink));
}

function noLongerStale(
  policy: Policy,
  { stale, notified }: PolicyAlertState,
  { brief, health }: AlertEvent,
): AddressedNotice[] {
  if (stale === null) return [];
  const notice = recoveredNotice(policy, { brief, before: "stale", sinceMs: stale.sinceMs });
  // A sink that was told of an unmet expectation hears "recovered" when it is met.
  const isToldBad = (rule: NotifyRule) =>
    !didWork(health) && !wantsRecoveryOnly(rule) && Object.hasOwn(notified, rule.sink);
  return forSinks(policy, notice, (rule) => rule.recovery && stale.sinks.includes(rule.sink) && !isToldBad(rule));
}

/** Why a sink may have to be notified now: an ending, the end of a window, or a removed target. */
interface Cause {
  /** The id of the cause, the same whenever it is decided. */
  readonly key: string;
  /** When it happened; not set when it is the ending of the notified target. */
  readonly at?: string;
  readonly ending?: Brief;
  /** The ending did its work, and its target's earlier conflicts were not counted. */
  readonly isUncounted?: boolean;
  readonly removed?: ReadonlyMap<string, TargetAlertState>;
}

/** Notifies each sink that was last notified of something else, or of a removed target. */
function notifySinks(policy: Policy, state: PolicyAlertState, cause: Cause): PolicyDecision {
  const notified: Record<string, NotifiedHealth> = {};
  const notices: AddressedNotice[] = [];
  for (const rule of policy.notify ?? []) {
    const { sink } = rule;
    const before = Object.hasOwn(state.notified, sink) ? state.notified[sink] : undefined;
    const wasRemoved = before !== undefined && cause.removed?.has(before.target) === true;
    const { wanted, isHidden } = badTargets(rule, state);
    const worst = worstOf(wanted, cause.ending?.target);
    const uncounted = cause.isUncounted || before?.isUncounted ? { isUncounted: true as const } : {};
    // No notice: the same health stands, or a target that the rule does not want is still bad.
    if (before !== undefined && !wasRemoved && (worst?.health === before.health || (worst === undefined && isHidden))) {
      notified[sink] = { ...before, ...uncounted };
    } else if (worst !== undefined) {
      const { health, alert } = worst;
      notified[sink] = {
        health,
        target: alert.brief.target,
        sinceMs: wasRemoved || !before ? alert.sinceMs : before.sinceMs,
        ...uncounted,
      };
      if (wantsRecoveryOnly(rule)) continue;
      const bad = wanted.map((one) => one.alert.brief.target);
      const at = cause.ending?.at ?? cause.at ?? alert.brief.at;
      notices.push({ sink, notice: failingNotice(policy, { health, alert, bad, at, causeKey: cause.key }) });
    } else if (before !== undefined && rule.recovery) {
      const notice = endNotice(policy, before, cause, rule);
      if (notice !== undefined) notices.push({ sink, notice });
    }
  }
  const former = notifyFormerSinks(policy, state, cause);
  return {
    policy: { ...state, notified: { ...former.notified, ...notified } },
    notices: [...notices, ...former.notices],
  };
}

/** A sink that no rule names any more is notified of the end of what it heard, and no more. */
function notifyFormerSinks(
  policy: Policy,
  { notified, targets }: PolicyAlertState,
  cause: Cause,
): Pick<PolicyAlertState, "notified"> & Pick<PolicyDecision, "notices"> {
  const sinksNamed = new Set((policy.notify ?? []).map(({ sink }) => sink));
  const former = Object.entries(notified).filter(([sink]) => !sinksNamed.has(sink));
  if (Object.values(targets).some(({ health }) => health !== "good"))
    return { notified: Object.fromEntries(former), notices: [] };
  const notices = former.flatMap(([sink, before]) => {
    const notice = endNotice(policy, before, cause);
    return notice === undefined ? [] : [{ sink, notice }];
  });
  return { notified: {}, notices };
}

/** Nothing is bad any more of what a sink was notified: it ended well, or is no longer named. */
function endNotice(policy: Policy, before: NotifiedHealth, cause: Cause, rule?: NotifyRule): Notice | undefined {
  const { key, at, ending, removed = new Map<string, TargetAlertState>() } = cause;
  const { health, sinceMs, target } = before;
  const isUncounted = cause.isUncounted === true || before.isUncounted === true;
  const bad = [...removed.values()].filter((alert) => isBadFor(rule, alert));
  const newest = () => bad.toSorted((a, b) => (a.brief.at < b.brief.at ? 1 : -1))[0];
  const alert = removed.get(target) ?? newest();
  // It has recovered when each bad one ended well: of one that is removed this is not known.
  if (alert === undefined)
    return ending && recoveredNotice(policy, { brief: ending, before: health, sinceMs, isUncounted });
  // A sink with `recovery` alone was notified of no failure that this could end.
  if (rule !== undefined && wantsRecoveryOnly(rule)) return undefined;
  return removedNotice(policy, {
    alert,
    before,
    targets: [...removed.keys()],
    at: at ?? alert.brief.at,
    causeKey: key,
  });
}

interface BadTarget {
  readonly health: BadHealth;
  readonly alert: TargetAlertState;
}

/** The bad targets that a rule wants. `isHidden`: something is wrong that it does not want. */
function badTargets(rule: NotifyRule, { targets }: PolicyAlertState): { wanted: BadTarget[]; isHidden: boolean } {
  const wanted: BadTarget[] = [];
  let isHidden = false;
  for (const alert of Object.values(targets)) {
    const health = alert.outage === undefined ? wantedHealth(rule, alert) : undefined;
    if (health !== undefined) wanted.push({ health, alert });
    else if (!didWork(alert.health)) isHidden = true;
  }
  return { wanted, isHidden };
}

/** The worst target; of several the one that has just ended, or else the last one. */
function worstOf(bad: readonly BadTarget[], ended: string | undefined): BadTarget | undefined {
  const isWorse = (a: BadTarget, b: BadTarget) => {
    if (a.health !== b.health) return healths.indexOf(a.health) > healths.indexOf(b.health);
    if (b.alert.brief.target === ended) return false;
    return a.alert.brief.target === ended || a.alert.brief.at >= b.alert.brief.at;
  };
  return bad.reduce<BadTarget | undefined>((worst, one) => (!worst || isWorse(one, worst) ? one : worst), undefined);
}

/** The health under which a sink is notified of a target; undefined when it is not. */
function wantedHealth(rule: NotifyRule, { health, conflicts, inRow }: TargetAlertState): BadHealth | undefined {
  const { conflicts: most } = rule;
  const isMany = typeof most === "number" ? conflicts > most : most === "judged" && health === "conflicts";
  const otherwise = isMany ? "conflicts" : undefined;
  if (didWork(health)) return otherwise;
  if (wantsRecoveryOnly(rule)) return health;
  if (health === "failing") return inRow >= (rule.failuresInRow ?? Number.POSITIVE_INFINITY) ? health : otherwise;
  return rule[health] ? health : otherwise;
}

/** Whether a target keeps a sink from hearing "recovered"; a former sink has no rule. */
function isBadFor(rule: NotifyRule | undefined, alert: TargetAlertState): boolean {
  if (rule === undefined) return alert.health !== "good";
  return !didWork(alert.health) || wantedHealth(rule, alert) !== undefined;
}

function wantsRecoveryOnly(rule: NotifyRule): boolean {
  const { recovery, failuresInRow, conflicts, blocked, unknown, missed } = rule;
  return recovery && failuresInRow === undefined && conflicts === undefined && !blocked && !unknown && !missed;
}

function withEvent(
  state: PolicyAlertState,
  event: AlertEvent,
  { conflictsMax, outage }: { readonly conflictsMax: number; readonly outage: number | undefined },
): PolicyAlertState {
  const { brief, health = "good", conflicts, stillConflicts, slotMs, atMs } = event;
  const { [brief.target]: before, ...targets } = state.targets;
  // A slot that did something ends a missed slot.
  if (didWork(health) && (targets[""]?.slotMs ?? slotMs) <= slotMs) delete targets[""];
  const left = leftBy(before);
  const open = conflicts + (stillConflicts ?? 0);
  // As many as a sink was notified of, while they are known to be open.
  const most = Math.max(conflicts, Math.min(left?.conflicts ?? 0, open));
  if (health === "good" && left !== undefined && (stillConflicts ?? 0) > 0 && open > conflictsMax) {
    targets[brief.target] = { ...left, health: "conflicts", conflicts: most, slotMs, inRow: 0 };
  } else if (health !== "good" || conflicts > 0) {
    const inRow = before?.slotMs === slotMs ? before.inRow : (before?.inRow ?? 0) + 1;
    targets[brief.target] = {
      ...{ health, conflicts: health === "conflicts" ? most : conflicts, slotMs, brief },
      sinceMs: before?.health === health ? before.sinceMs : atMs,
      inRow: health === "failing" ? Math.max(1, inRow) : 0,
      ...(outage === undefined ? {} : { outage }),
      ...(didWork(health) || left === undefined ? {} : { left }),
    };
  }
  return { ...state, targets };
}

/** Whether an earlier run of this target left conflicts, also within what its policy takes. */
function hasLeft({ targets }: PolicyAlertState, name: string): boolean {
  const target = Object.hasOwn(targets, name) ? targets[name] : undefined;
  return leftBy(target) !== undefined || (target?.conflicts ?? 0) > 0;
}

/** The conflicts that a target left at its last end that was no worse. */
function leftBy(target: TargetAlertState | undefined): TargetAlertState["left"] {
  if (target?.health !== "conflicts") return target?.left;
  const { conflicts, sinceMs, brief } = target;
  return { conflicts, sinceMs, brief };
}

/** Whether a policy counts to this outage already. */
function isPartOf(
  name: string,
  { targets }: PolicyAlertState,
  { phase, sinceMs, policies }: ServiceAlertState,
): boolean {
  if (phase === "calm") return false;
  return policies.includes(name) || Object.values(targets).some(({ outage }) => outage === sinceMs);
}
