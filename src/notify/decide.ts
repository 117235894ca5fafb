// Decides which notices the end of a task or slot causes for its policy. Pure; called by
// evaluate.ts for each event, in order.
//
//   ending ─▶ the target's health ─▶ is it the service's fault? ─▶ what each sink should know
//     └─▶ a notice for each sink that was last told otherwise
//
// What may be the service's fault waits as its target's `outage` until decide-service.ts knows
// more.
import { type NotifyRule, type Policy, targetsOf } from "../config/policy-set.ts";
import { targetFromMasks } from "../model/task.ts";
import {
  type BadHealth,
  type Brief,
  healths,
  type PolicyAlertState,
  type PolicyHealth,
  type ServiceAlertState,
  type TargetState,
} from "./alert-state.ts";
import { withFailure, withSignOfLife } from "./decide-service.ts";
import type { AlertEvent } from "./health.ts";
import {
  type AddressedNotice,
  driftNotice,
  failingNotice,
  missedNotice,
  outcomeNotice,
  recoveredNotice,
  removedNotice,
} from "./notices.ts";

/** The alert state of a policy and of its service. */
export interface AlertStates {
  readonly policy: PolicyAlertState;
  readonly service: ServiceAlertState;
}

/** The new alert state of a policy, and its notices. */
export interface PolicyDecision {
  readonly policy: PolicyAlertState;
  readonly notices: readonly AddressedNotice[];
}

/** The same, with the alert state of its service. */
export type Decision = AlertStates & PolicyDecision;

/** Decides after an ending. The same ending and alert state give the same notices. */
export function decideEvent(policy: Policy, before: AlertStates, ending: AlertEvent): Decision {
  const each = [...tellEach(policy, ending), ...tellDrift(policy, ending)];
  if (ending.health === undefined) return { ...before, notices: each };
  const isOutage = ending.outage === "yes" || (ending.outage === "while-down" && before.service.phase !== "calm");
  let { service } = before;
  if (isOutage)
    service = withFailure(service, {
      policy: policy.name,
      ending,
      isNew: !isPartOf(policy.name, before.policy, service),
    });
  else if (ending.isSignOfLife) service = withSignOfLife(service, ending.atMs);
  const alertState = withEnding(before.policy, ending, isOutage ? service.sinceMs : undefined);
  const settled = settleSinks(policy, alertState, { key: ending.brief.key, ending: ending.brief });
  const unsilenced = endSilence(policy, settled.policy, ending);
  const notices = [...each, ...settled.notices, ...unsilenced.filter((one) => !hasSink(settled.notices, one.sink))];
  // Its notice is that of the outage.
  const isOfOutage = isOutage || before.policy.targets[ending.brief.target]?.outage !== undefined;
  const news = isOfOutage && ending.news === "changed" ? [] : tellNews(policy, ending, notices);
  return {
    service,
    policy: { ...settled.policy, silent: isWork(ending.health) ? null : alertState.silent },
    notices: [...notices, ...news],
  };
}

/**
 * Notifies what waited: the failures were not the service's fault. `sinceMs`: the start of the
 * window.
 */
export function releasePolicy(policy: Policy, alertState: PolicyAlertState, sinceMs: number): PolicyDecision {
  const targets = Object.fromEntries(
    Object.entries(alertState.targets).map(([name, { outage, ...target }]) => [
      name,
      outage === undefined || outage === sinceMs ? target : { ...target, outage },
    ]),
  );
  return settleSinks(policy, { ...alertState, targets }, { key: `released/${sinceMs}` });
}

/**
 * Notes the sync jobs that the masks name from this slot on. That they could be read ends their own
 * failure.
 */
export function decideMasks(
  policy: Policy,
  before: PolicyAlertState,
  { brief, slotMs, syncJobs }: { readonly brief: Brief; readonly slotMs: number; readonly syncJobs: readonly string[] },
): PolicyDecision {
  if (targetsOf(policy.action) !== undefined || slotMs < (before.masks?.slotMs ?? slotMs))
    return { policy: before, notices: [] };
  const { [targetFromMasks]: lookup, ...others } = before.targets;
  const isOver = lookup !== undefined && lookup.slotMs <= slotMs;
  const alertState = {
    ...before,
    targets: isOver ? others : before.targets,
    masks: { slotMs, syncJobs: [...syncJobs] },
  };
  return removeUnnamed(policy, alertState, { key: brief.key, at: brief.at, ...(isOver ? { ending: brief } : {}) });
}

/**
 * Forgets targets that the policy no longer names. That is no recovery: their health is not known.
 * A sink that was told of such a target, and of no other bad one, is told of the removal. `at`:
 * when the notifier sees it.
 */
export function removeUnnamed(
  policy: Policy,
  alertState: PolicyAlertState,
  cause: Pick<Cause, "key" | "at" | "ending">,
): PolicyDecision {
  const masks = targetsOf(policy.action) === undefined ? alertState.masks : null;
  const named = namedBy(policy, alertState);
  const isGone = ([name]: readonly [string, unknown]) => named !== undefined && !named.has(name);
  const all = Object.entries(alertState.targets);
  const removed = new Map(all.filter(isGone));
  if (removed.size === 0 && cause.ending === undefined) return { policy: { ...alertState, masks }, notices: [] };
  const key = [cause.key, ...[...removed.values()].map(({ brief }) => brief.key)].join("/");
  const targets = Object.fromEntries(all.filter((one) => !isGone(one)));
  return settleSinks(policy, { ...alertState, targets, masks }, { ...cause, key, removed });
}

/**
 * The targets that a policy names, and '' for its slots; undefined while the masks are not read
 * yet.
 */
function namedBy({ action }: Policy, { masks }: PolicyAlertState): ReadonlySet<string> | undefined {
  const own = targetsOf(action);
  if (own !== undefined) return new Set(["", ...own]);
  return masks === null ? undefined : new Set(["", targetFromMasks, ...masks.syncJobs]);
}

function tellEach(policy: Policy, { outcome, brief }: AlertEvent): AddressedNotice[] {
  const notice = outcome === undefined ? missedNotice(policy, brief) : outcomeNotice(policy, outcome);
  return rulesOf(policy).flatMap(({ sink, every }) => (every ? [{ sink, notice }] : []));
}

/** Notifies a drift (a change by hand was set back): once, whatever the state of the policy. */
function tellDrift(policy: Policy, { outcome }: AlertEvent): AddressedNotice[] {
  if (outcome?.reason !== "drift-corrected") return [];
  const notice = driftNotice(policy, outcome);
  return rulesOf(policy).flatMap(({ sink, drift }) => (drift ? [{ sink, notice }] : []));
}

/** Notifies a poll that asks for it although its policy's health is the same. */
function tellNews(policy: Policy, { outcome, news }: AlertEvent, told: readonly AddressedNotice[]): AddressedNotice[] {
  if (news === undefined || outcome === undefined) return [];
  const isChange = ({ blocked, unknown, missed, recovery }: NotifyRule) => blocked && unknown && missed && recovery;
  return rulesOf(policy).flatMap((rule) =>
    isChange(rule) && !hasSink(told, rule.sink) ? [{ sink: rule.sink, notice: outcomeNotice(policy, outcome) }] : [],
  );
}

/** Why a sink may have to be notified now: an ending, the end of a window, or a removed target. */
interface Cause {
  /** The id of the cause, the same whenever it is decided. */
  readonly key: string;
  /** When it happened; not set when it is the ending of the notified target. */
  readonly at?: string;
  readonly ending?: Brief;
  readonly removed?: ReadonlyMap<string, TargetState>;
}

type Told = PolicyAlertState["told"][string];

/** Notifies each sink that was last told something else, or was told of a removed target. */
function settleSinks(policy: Policy, alertState: PolicyAlertState, cause: Cause): PolicyDecision {
  const told: Record<string, Told> = {};
  const notices: AddressedNotice[] = [];
  for (const rule of rulesOf(policy)) {
    const { sink } = rule;
    const before = Object.hasOwn(alertState.told, sink) ? alertState.told[sink] : undefined;
    const isGone = before !== undefined && cause.removed?.has(before.target) === true;
    const { heard, isHidden } = hear(rule, alertState);
    const worst = worstOf(heard, cause.ending?.target);
    // Something else is wrong that this sink is not told of. It hears of an end only when that has
    // ended, too.
    if (before !== undefined && !isGone && (worst?.health === before.health || (worst === undefined && isHidden))) {
      told[sink] = before;
    } else if (worst !== undefined) {
      const { health, alertState: own } = worst;
      told[sink] = { health, target: own.brief.target, sinceMs: isGone || !before ? own.sinceMs : before.sinceMs };
      if (hearsOfRecoveryOnly(rule)) continue;
      const bad = heard.map((one) => one.alertState.brief.target);
      const at = cause.ending?.at ?? cause.at ?? own.brief.at;
      notices.push({ sink, notice: failingNotice(policy, { health, own, bad, at, causeKey: cause.key }) });
    } else if (before !== undefined && rule.recovery) notices.push(...tellEnd(policy, rule, before, cause));
  }
  return { policy: { ...alertState, told }, notices };
}

/**
 * Notifies a sink that nothing it was told of is bad any more: it ended well, or is no longer the
 * policy's.
 */
function tellEnd(
  policy: Policy,
  rule: NotifyRule,
  before: Told,
  { key, at, ending, removed = new Map() }: Cause,
): AddressedNotice[] {
  const { sink } = rule;
  const { health, sinceMs, target } = before;
  if (ending !== undefined && !removed.has(target))
    return [{ sink, notice: recoveredNotice(policy, { brief: ending, before: health, sinceMs }) }];
  const newest = () => [...removed.values()].toSorted((a, b) => (a.brief.at < b.brief.at ? 1 : -1))[0];
  const own = removed.get(target) ?? newest();
  // A sink with `recovery` alone was told of no failure that this could end.
  if (own === undefined || hearsOfRecoveryOnly(rule)) return [];
  const targets = [...removed.keys()];
  const notice = removedNotice(policy, { own, before, targets, at: at ?? own.brief.at, causeKey: key });
  return [{ sink, notice }];
}

interface Heard {
  readonly health: BadHealth;
  readonly alertState: TargetState;
}

/**
 * The bad targets that a sink is told of. `isHidden`: something is wrong that it is not told of.
 */
function hear(rule: NotifyRule, { targets }: PolicyAlertState): { heard: Heard[]; isHidden: boolean } {
  const heard: Heard[] = [];
  let isHidden = false;
  for (const alertState of Object.values(targets)) {
    const health = alertState.outage === undefined ? toldHealth(rule, alertState) : undefined;
    if (health !== undefined) heard.push({ health, alertState });
    else if (!isWork(alertState.health)) isHidden = true;
  }
  return { heard, isHidden };
}

/** The worst target; of several the one that has just ended, or else the last one. */
function worstOf(heard: readonly Heard[], target: string | undefined): Heard | undefined {
  let worst: Heard | undefined;
  for (const one of heard) if (worst === undefined || isWorse(one, worst, target)) worst = one;
  return worst;
}

function isWorse(a: Heard, b: Heard, target: string | undefined): boolean {
  if (a.health !== b.health) return healths.indexOf(a.health) > healths.indexOf(b.health);
  if (b.alertState.brief.target === target) return false;
  return a.alertState.brief.target === target || a.alertState.brief.at >= b.alertState.brief.at;
}

/** The health under which a sink is told of a target; undefined when it is not. */
function toldHealth(rule: NotifyRule, { health, conflicts, inRow }: TargetState): BadHealth | undefined {
  const { conflicts: most } = rule;
  const isMany = typeof most === "number" ? conflicts > most : most === "judged" && health === "conflicts";
  const otherwise = isMany ? "conflicts" : undefined;
  if (isWork(health)) return otherwise;
  if (hearsOfRecoveryOnly(rule)) return health;
  if (health === "failing") return inRow >= (rule.failuresInRow ?? Number.POSITIVE_INFINITY) ? health : otherwise;
  return rule[health] ? health : otherwise;
}

function hearsOfRecoveryOnly(rule: NotifyRule): boolean {
  const { recovery, failuresInRow, conflicts, blocked, unknown, missed } = rule;
  return recovery && failuresInRow === undefined && conflicts === undefined && !blocked && !unknown && !missed;
}

function endSilence(policy: Policy, alertState: PolicyAlertState, { health, brief }: AlertEvent): AddressedNotice[] {
  const { silent } = alertState;
  if (silent === null || health === undefined || !isWork(health)) return [];
  const notice = recoveredNotice(policy, { brief, before: "stale", sinceMs: silent.sinceMs });
  const hears = (rule: NotifyRule) => rule.recovery && silent.sinks.includes(rule.sink);
  return rulesOf(policy).flatMap((rule) => (hears(rule) ? [{ sink: rule.sink, notice }] : []));
}

/** Whether the policy did its work, whatever it found. */
function isWork(health: PolicyHealth): health is "good" | "conflicts" {
  return health === "good" || health === "conflicts";
}

function withEnding(alertState: PolicyAlertState, ending: AlertEvent, outage: number | undefined): PolicyAlertState {
  const { brief, health = "good", conflicts, slotMs, atMs } = ending;
  const { [brief.target]: before, ...others } = alertState.targets;
  const targets: Record<string, TargetState> = { ...others };
  // A slot that did something ends a missed slot.
  if (isWork(health) && (targets[""]?.slotMs ?? slotMs) <= slotMs) delete targets[""];
  if (health !== "good" || conflicts > 0) {
    const inRow = before?.slotMs === slotMs ? before.inRow : (before?.inRow ?? 0) + 1;
    targets[brief.target] = {
      ...{ health, conflicts, slotMs, brief },
      sinceMs: before?.health === health ? before.sinceMs : atMs,
      inRow: health === "failing" ? Math.max(1, inRow) : 0,
      ...(outage === undefined ? {} : { outage }),
    };
  }
  return { ...alertState, targets };
}

/** Whether a policy counts to this outage. Only its first 200 policies are known by name. */
function isPartOf(
  name: string,
  { targets }: PolicyAlertState,
  { phase, sinceMs, policies }: ServiceAlertState,
): boolean {
  if (phase === "calm") return false;
  return policies.includes(name) || Object.values(targets).some(({ outage }) => outage === sinceMs);
}

function rulesOf({ notify = [] }: Policy): readonly NotifyRule[] {
  return notify;
}

function hasSink(notices: readonly AddressedNotice[], sink: string): boolean {
  return notices.some((addressed) => addressed.sink === sink);
}
