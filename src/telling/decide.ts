// Decides what is told of one policy when one of its tasks or slots has ended. Pure; called by pass.ts for each event, in their order.
//
//   ending ─▶ the target's fate ─▶ is it the service's doing? ─▶ what each sink should believe ─▶ a notice where it believes otherwise
//
// What may be the service's doing is not told here: it is held back as its target's `outage` until decide-service.ts knows more.
import type { NotifyRule, Policy } from "../config/policy-set.ts";
import { withFailure, withSignOfLife } from "./decide-service.ts";
import type { Ending } from "./fate.ts";
import { driftNotice, failingNotice, missedNotice, outcomeNotice, recoveredNotice, type Telling } from "./notices.ts";
import { type BadFate, type Brief, type Fate, fates, type PolicyStanding, type ServiceStanding } from "./standing.ts";

/** How a policy and its service fare. */
export interface Standings {
  readonly policy: PolicyStanding;
  readonly service: ServiceStanding;
}

/** How they fare afterwards, and who is told what. */
export interface Decision extends Standings {
  readonly tellings: readonly Telling[];
}

/** Decides after an ending. The same ending over the same standings gives the same notices. */
export function decideEnding(policy: Policy, before: Standings, ending: Ending): Decision {
  const each = tellEach(policy, ending);
  if (ending.fate === undefined) {
    return { ...before, policy: withSlotOf(before.policy, ending), tellings: each };
  }
  const isOutage = ending.outage === "yes" || (ending.outage === "while-down" && before.service.phase !== "calm");
  let { service } = before;
  if (isOutage)
    service = withFailure(service, { policy: policy.name, ending, isNew: !isPartOf(before.policy, service) });
  else if (ending.isSignOfLife) service = withSignOfLife(service, ending.atMs);
  const standing = withEnding(before.policy, ending, isOutage ? service.sinceMs : undefined);
  const settled = settleSinks(policy, standing, ending.brief);
  const unsilenced = endSilence(policy, settled.policy, ending);
  const drift = tellDrift(policy, ending);
  const tellings = [
    ...each,
    ...drift,
    ...settled.tellings,
    ...unsilenced.filter((one) => !hasSink(settled.tellings, one.sink)),
  ];
  // Its news is the outage, or the end of one.
  const isOfOutage = isOutage || before.policy.targets[ending.brief.target]?.outage !== undefined;
  const news = isOfOutage && ending.news === "changed" ? [] : tellNews(policy, ending, tellings);
  return {
    service,
    policy: { ...settled.policy, silent: isWork(ending.fate) ? null : standing.silent },
    tellings: [...tellings, ...news],
  };
}

/** What turned out not to be the service's doing is the policy's own: tells what was held back. `sinceMs`: of the window. */
export function releasePolicy(policy: Policy, standing: PolicyStanding, sinceMs: number) {
  const targets = mapTargets(standing, ({ outage, ...target }) =>
    outage === undefined || outage === sinceMs ? target : { ...target, outage },
  );
  const released = { ...standing, targets };
  return standing.last === null ? { policy: released, tellings: [] } : settleSinks(policy, released, standing.last);
}

function tellEach(policy: Policy, { outcome, brief }: Ending): Telling[] {
  const notice = outcome === undefined ? missedNotice(policy, brief) : outcomeNotice(policy, outcome);
  return rulesOf(policy).flatMap(({ sink, every }) => (every ? [{ sink, notice }] : []));
}

/** What somebody changed by hand was set again: an event, told once, whatever the state of the policy. */
function tellDrift(policy: Policy, { outcome }: Ending): Telling[] {
  if (outcome?.reason !== "drift-mended") return [];
  const notice = driftNotice(policy, outcome);
  return rulesOf(policy).flatMap(({ sink, drift }) => (drift ? [{ sink, notice }] : []));
}

/** A poll that wants to be told although its policy fares as before. */
function tellNews(policy: Policy, { outcome, news }: Ending, told: readonly Telling[]): Telling[] {
  if (news === undefined || outcome === undefined) return [];
  const isChange = ({ blocked, unknown, missed, recovery }: NotifyRule) => blocked && unknown && missed && recovery;
  return rulesOf(policy).flatMap((rule) =>
    isChange(rule) && !hasSink(told, rule.sink) ? [{ sink: rule.sink, notice: outcomeNotice(policy, outcome) }] : [],
  );
}

/** Brings each sink to what it should believe. */
function settleSinks(policy: Policy, standing: PolicyStanding, brief: Brief) {
  const told: Record<string, BadFate> = {};
  const tellings: Telling[] = [];
  for (const rule of rulesOf(policy)) {
    const { sink } = rule;
    const before = Object.hasOwn(standing.told, sink) ? standing.told[sink] : undefined;
    const after = fateFor(rule, standing);
    if (after === "as-before" || after === (before ?? "good")) {
      if (before !== undefined) told[sink] = before;
    } else if (after === "good") {
      const notice = recoveredNotice(policy, { brief, before: before ?? "failing", sinceMs: standing.badSinceMs });
      if (rule.recovery) tellings.push({ sink, notice });
    } else {
      told[sink] = after;
      const notice = hearsOfRecoveryOnly(rule) ? undefined : failingNotice(policy, after, standing);
      if (notice !== undefined) tellings.push({ sink, notice });
    }
  }
  const isBad = Object.values(standing.targets).some(({ fate }) => fate !== "good");
  return { policy: { ...standing, told, badSinceMs: isBad ? standing.badSinceMs : null }, tellings };
}

/** What a sink should believe. `as-before`: something is wrong that it is not told of, so it hears neither of it nor of an end. */
function fateFor(rule: NotifyRule, { targets, inRow }: PolicyStanding): Fate | "as-before" {
  let worst: Fate = "good";
  let isHidden = false;
  for (const { fate, conflicts, outage } of Object.values(targets)) {
    const told = outage === undefined ? toldFate(rule, { fate, conflicts, inRow }) : undefined;
    if (told !== undefined && fates.indexOf(told) > fates.indexOf(worst)) worst = told;
    else if (told === undefined && !isWork(fate)) isHidden = true;
  }
  return worst === "good" && isHidden ? "as-before" : worst;
}

/** As what a sink hears of a target; undefined when it does not. */
function toldFate(
  rule: NotifyRule,
  { fate, conflicts, inRow }: { readonly fate: Fate; readonly conflicts: number; readonly inRow: number },
): BadFate | undefined {
  const { conflicts: most } = rule;
  const isMany = typeof most === "number" ? conflicts > most : most === "judged" && fate === "conflicts";
  if (isWork(fate)) return isMany ? "conflicts" : undefined;
  if (hearsOfRecoveryOnly(rule)) return fate === "good" || fate === "conflicts" ? undefined : fate;
  if (fate === "failing") return inRow >= (rule.failuresInRow ?? Number.POSITIVE_INFINITY) ? fate : undefined;
  return fate !== "good" && fate !== "conflicts" && rule[fate] ? fate : undefined;
}

function hearsOfRecoveryOnly(rule: NotifyRule): boolean {
  const { recovery, failuresInRow, conflicts, blocked, unknown, missed } = rule;
  return recovery && failuresInRow === undefined && conflicts === undefined && !blocked && !unknown && !missed;
}

function endSilence(policy: Policy, standing: PolicyStanding, { fate, brief }: Ending): Telling[] {
  const { silent } = standing;
  if (silent === null || fate === undefined || !isWork(fate)) return [];
  const notice = recoveredNotice(policy, { brief, before: "silent", sinceMs: silent.sinceMs });
  const hears = (rule: NotifyRule) => rule.recovery && silent.sinks.includes(rule.sink);
  return rulesOf(policy).flatMap((rule) => (hears(rule) ? [{ sink: rule.sink, notice }] : []));
}

/** Whether the policy did its work, whatever it found. */
function isWork(fate: Fate): boolean {
  return fate === "good" || fate === "conflicts";
}

function withEnding(standing: PolicyStanding, ending: Ending, outage: number | undefined): PolicyStanding {
  const { brief, fate = "good", conflicts, slotMs, atMs } = ending;
  const { slots, targets } = withSlotOf(standing, ending);
  const { [brief.target]: _mine, ...others } = targets;
  const next: Record<string, PolicyStanding["targets"][string]> = { ...others };
  // A slot that did something says that they are no longer missed.
  if (isWork(fate) && (next[""]?.slotMs ?? slotMs) <= slotMs) delete next[""];
  if (fate !== "good" || conflicts > 0)
    next[brief.target] = { fate, conflicts, slotMs, ...(outage === undefined ? {} : { outage }) };
  const isFailing = Object.values(next).some((target) => target.fate === "failing");
  const counts = fate === "failing" && slotMs !== standing.countedSlotMs;
  return {
    ...standing,
    slots,
    targets: next,
    inRow: isFailing ? standing.inRow + (counts ? 1 : 0) : 0,
    countedSlotMs: isFailing ? (counts ? slotMs : standing.countedSlotMs) : 0,
    badSinceMs: fate === "good" ? standing.badSinceMs : (standing.badSinceMs ?? atMs),
    last: fate === "good" && conflicts === 0 ? standing.last : brief,
  };
}

/** Notes the slot. A target that neither of the newest two slots had is the policy's no longer. */
function withSlotOf(standing: PolicyStanding, { slotMs, brief }: Ending): PolicyStanding {
  const slots = [...new Set([...standing.slots, slotMs])].sort((a, b) => b - a).slice(0, 2);
  const oldestMs = slots.length < 2 ? Number.NEGATIVE_INFINITY : (slots[1] ?? 0);
  const kept = Object.entries(standing.targets).flatMap(([name, target]) => {
    if (name === brief.target) return [[name, { ...target, slotMs: Math.max(target.slotMs, slotMs) }] as const];
    return target.slotMs < oldestMs ? [] : [[name, target] as const];
  });
  return { ...standing, slots, targets: Object.fromEntries(kept) };
}

function mapTargets<Target extends PolicyStanding["targets"][string]>(
  { targets }: PolicyStanding,
  map: (target: PolicyStanding["targets"][string]) => Target,
): Record<string, Target> {
  return Object.fromEntries(Object.entries(targets).map(([name, target]) => [name, map(target)]));
}

function isPartOf({ targets }: PolicyStanding, { phase, sinceMs }: ServiceStanding): boolean {
  return phase !== "calm" && Object.values(targets).some(({ outage }) => outage === sinceMs);
}

function rulesOf({ notify = [] }: Policy): readonly NotifyRule[] {
  return notify;
}

function hasSink(tellings: readonly Telling[], sink: string): boolean {
  return tellings.some((telling) => telling.sink === sink);
}
