// The present state of each policy: how each of its sync jobs ended last, since when, how many in a
// row, and how long its successes took. history.ts writes it with each outcome, in one step;
// `status` and `report` read it. A hash a policy: lua/include/policy-state.lua.

import * as z from "zod";
import {
  figuresOf,
  findingsOf,
  healthOfStatus,
  healths,
  type Outcome,
  outcomeSchema,
  weightOf,
} from "../model/outcome.ts";
import { taskId } from "../model/task.ts";
import { measures, medianOf, type RunFigures, type Unusual } from "../model/unusual.ts";
import type { Store } from "./redis.ts";
import { asFlag, batchesOf, createScript, pairsOf, readFields, readHashes } from "./script.ts";

const { kind, status, evidence, confidence, reason, origin } = outcomeSchema.shape;
const findingSchema = z.tuple([z.enum(measures), z.number(), z.number()]);
const lastSchema = z.tuple([
  ...[kind, status, evidence, confidence.unwrap().nullable(), reason, origin, z.int(), z.array(findingSchema)],
] as const);

/** How a target's last task ended. */
interface LastOutcome extends Pick<Outcome, "taskId" | "kind" | "status" | "evidence" | "reason" | "origin"> {
  readonly confidence: Outcome["confidence"];
  readonly slotMs: number;
  readonly finishedMs: number;
  /** What is unusual about a run. */
  readonly findings: readonly Unusual[];
}

/** The state of one target (a sync job, list or object) of a policy. */
export interface TargetState {
  readonly target: string;
  /**
   * The end that speaks for it: its last one; where that was skipped, what it does not mend before
   * it; a bad one until one is good.
   */
  readonly last: LastOutcome;
  /** Its last task, also one that was skipped or missed. */
  readonly newest: Pick<LastOutcome, "taskId" | "slotMs" | "finishedMs" | "status">;
  /**
   * What the last outcome with a weight says (model/outcome.ts): skipped, missed and blocked have
   * none. Undefined: there was no other.
   */
  readonly weight: "success" | "bad" | undefined;
  /** When the weight became what it is, and how many outcomes of this weight came since. */
  readonly sinceMs: number | undefined;
  readonly inARow: number;
  readonly lastSuccessMs: number | undefined;
  readonly lastBadMs: number | undefined;
  /** The newest 20 that ended well, oldest first. */
  readonly runs: readonly RunFigures[];
}

const acknowledgementSchema = z.object({
  actor: z.string(),
  note: z.string(),
  sinceMs: z.int(),
  state: z.string(),
  targets: z.record(z.string(), z.int()),
});

/**
 * A person knows of a policy's trouble. `state`: in which it was. `targets`: those in trouble ('':
 * its slots), each with the place of its health in `healths`. The outcome that ends all of it, or
 * shows more or worse of it, ends the acknowledgement in the same step.
 */
export type Acknowledgement = Readonly<z.infer<typeof acknowledgementSchema>>;

/** The state of a policy with at least one outcome, or an acknowledgement. */
export interface PolicyState {
  readonly policy: string;
  /** The first end of a task that Redis knows; undefined: none has ended. */
  readonly firstMs: number | undefined;
  /** 100, bad ones first, then those that ended last, and up to 50 more; newest first. */
  readonly targets: readonly TargetState[];
  /** When targets were last left out, because there were more than 150. */
  readonly cutMs: number | undefined;
  readonly acknowledged: Acknowledgement | undefined;
}

const acknowledgeScript = createScript("acknowledge", asFlag);

/** States of one call: the largest have 150 targets. */
const statesAtOnce = 20;

/** Reads the states of these policies, or of all with an outcome, as far as there is one. */
export async function readPolicyStates(
  store: Store,
  policies?: readonly string[],
): Promise<ReadonlyMap<string, PolicyState>> {
  const states = new Map<string, PolicyState>();
  for (const batch of batchesOf(policies ?? (await store.redis.hkeys(store.key("outcomes-kept"))))) {
    const keys = batch.map((policy) => policyStateKey(store, policy));
    const read = await Promise.all([...batchesOf(keys, statesAtOnce)].map((some) => readHashes(store, some)));
    for (const [index, fields] of read.flat().entries()) {
      const state = parseState(batch[index] ?? "", Object.fromEntries(pairsOf(fields)));
      if (state !== undefined) states.set(state.policy, state);
    }
  }
  return states;
}

/** When the first task that Redis knows of ended, of each policy with an outcome. */
export async function readFirstEnds(store: Store): Promise<ReadonlyMap<string, number>> {
  const first = new Map<string, number>();
  const policies = await store.redis.hkeys(store.key("outcomes-kept"));
  const keys = policies.map((policy) => policyStateKey(store, policy));
  for (const [index, [head]] of (await readFields(store, keys, ["policy"])).entries())
    if (head !== undefined) first.set(policies[index] ?? "", firstMsOf(head));
  return first;
}

/** Reads the states of these policies, as `readPolicyStates` does. */
export type ReadStates = (policies: readonly string[]) => Promise<ReadonlyMap<string, PolicyState>>;

/** More states than these are not remembered. */
const rememberedMax = 100_000;

/**
 * Makes a reader that remembers states and asks only for those that have changed since: for a
 * process that looks again and again. `epoch`: another number when Redis may have lost writes.
 */
export function rememberStates(store: Store, epoch: () => number): ReadStates {
  const states = new Map<string, PolicyState | undefined>();
  let [numberSeen, epochSeen] = [0, epoch()];
  const read: ReadStates = async (policies) => {
    const known = epoch();
    const numbers = await store.redis.zrangebyscore(changedPoliciesKey(store), numberSeen, "+inf", "WITHSCORES");
    const changed = new Map(pairsOf(numbers));
    // The newest number is never lower, unless this is the memory of another Redis.
    const newest = changed.get("");
    if (newest === undefined || known !== epochSeen || states.size > rememberedMax) states.clear();
    for (const [name, number] of changed) if (Number(number) > numberSeen) states.delete(name);
    [numberSeen, epochSeen] = [Number(newest ?? 0), known];
    const asked = policies.filter((name) => !states.has(name));
    const found = asked.length === 0 ? undefined : await readPolicyStates(store, asked);
    for (const name of asked) states.set(name, found?.get(name));
    const answer = new Map<string, PolicyState>();
    for (const name of policies) {
      const state = states.get(name);
      if (state !== undefined) answer.set(name, state);
    }
    return answer;
  };
  // One after the other: an older answer must not replace a newer one.
  let last: Promise<unknown> = Promise.resolve();
  return (policies) => {
    const mine = last.then(() => read(policies));
    last = mine.catch(() => {});
    return mine;
  };
}

/**
 * Notes that a person knows of a policy's trouble; undefined ends that. Answers whether it did:
 * not when a task ended after `knownMs`, or there is nothing to end.
 */
export function acknowledgePolicy(
  store: Store,
  policy: string,
  { acknowledgement, knownMs }: { readonly acknowledgement: Acknowledgement | undefined; readonly knownMs: number },
): Promise<boolean> {
  const text = acknowledgement === undefined ? "" : JSON.stringify(acknowledgement);
  return acknowledgeScript(store, [policyStateKey(store, policy), changedPoliciesKey(store)], [policy, text, knownMs]);
}

/**
 * The target that speaks for its policy: one whose weight is bad, the longest first; else one whose
 * last outcome needs a look, in the order unknown (cancelled), missed, failed, blocked, conflicts;
 * else one without a weight; else the one whose successes began last. `isCurrent` leaves out
 * targets that the policy no longer has.
 */
export function worstTarget(
  { targets }: Pick<PolicyState, "targets">,
  isCurrent: (target: string) => boolean = () => true,
): TargetState | undefined {
  const [worst] = targets.filter(({ target }) => isCurrent(target)).toSorted(worstFirst);
  return worst;
}

/** The median of the newest runs of all targets that ended well; undefined without any. */
export function usualDurationMs({ targets }: Pick<PolicyState, "targets">): number | undefined {
  return medianOf(targets.flatMap(({ runs }) => runs.flatMap(({ duration }) => duration ?? [])));
}

/** Reads the newest runs of one target of a policy that ended well, oldest first. */
export async function readRuns(
  store: Store,
  { policy, target }: Pick<Outcome, "policy" | "target">,
): Promise<readonly RunFigures[]> {
  const name = JSON.stringify(target);
  const line = await store.redis.hget(policyStateKey(store, policy), name);
  return line === null ? [] : parseTarget(policy, name, line).runs;
}

/**
 * The oldest of the last successes of all targets; undefined: one never had any. Where targets are
 * not named, those of the newest slot count.
 */
export function oldestSuccessMs(
  { targets, cutMs }: PolicyState,
  named: readonly string[] | undefined,
): number | undefined {
  const newestMs = Math.max(...targets.map(({ newest }) => newest.slotMs));
  const byName = new Map(targets.map((state) => [state.target, state]));
  const states =
    named?.map((target) => byName.get(target)) ?? targets.filter(({ newest }) => newest.slotMs === newestMs);
  // Of more than 150 targets those that are well and ended longest ago are left out first.
  const known = cutMs === undefined ? states : states.filter((state) => state !== undefined);
  const instants = known.map((state) => state?.lastSuccessMs ?? Number.NEGATIVE_INFINITY);
  const oldestMs = Math.min(...instants);
  return Number.isFinite(oldestMs) ? oldestMs : undefined;
}

/** Key of a policy's state. */
export function policyStateKey({ key }: Pick<Store, "key">, policy: string): string {
  return key("policy-state", policy);
}

/**
 * Key of the policies by the number of their newest outcome or acknowledgement; the member '' has
 * the newest number of all, and moves on with recorded slots, too.
 */
export function changedPoliciesKey({ key }: Pick<Store, "key">): string {
  return key("changed-policies");
}

/** What lua/include/policy-state.lua needs of an outcome. */
export function stateArguments(outcome: Outcome): (string | number)[] {
  const { kind, target, status, evidence, confidence = null, reason, origin, slot } = outcome;
  const sign = { success: "+", bad: "-", nothing: "" }[weightOf(outcome)];
  const findings = findingsOf(outcome).map(({ what, value, usual }) => [what, value, usual] as const);
  const known = [kind, status, evidence, confidence, reason, origin, Date.parse(slot), findings] as const;
  const run = sign === "+" && outcome.durationMs !== null ? toDigits(figuresOf(outcome)) : "";
  const health = healthOfStatus[status];
  return [
    JSON.stringify(target),
    sign,
    run,
    JSON.stringify(known),
    health === undefined ? "" : healths.indexOf(health),
  ];
}

function parseState(
  policy: string,
  { policy: head, acknowledged, ...lines }: Record<string, string>,
): PolicyState | undefined {
  if (head === undefined && acknowledged === undefined) return undefined;
  const targets = Object.entries(lines).map(([target, line]) => parseTarget(policy, target, line));
  const cutMs = Number(head?.slice(13, 26) ?? 0);
  return {
    policy,
    firstMs: head === undefined ? undefined : firstMsOf(head),
    targets: targets.toSorted((a, b) => b.newest.finishedMs - a.newest.finishedMs),
    cutMs: cutMs === 0 ? undefined : cutMs,
    acknowledged: acknowledged === undefined ? undefined : acknowledgementSchema.parse(JSON.parse(acknowledged)),
  };
}

function firstMsOf(head: string): number {
  return Number(head.slice(0, 13));
}

/** How many digits to the base of 36 each figure has: a duration of up to two years. */
const figureWidths = [
  ["duration", 7],
  ["activities", 5],
  ["conflicts", 4],
] as const;
const runWidth = 16;

/** The figures of one run without a gap; hyphens where one is not known. */
function toDigits(run: RunFigures): string {
  const texts = figureWidths.map(([figure, width]) => {
    const value = run[figure];
    if (value === undefined) return "-".repeat(width);
    return Math.min(Math.round(value), 36 ** width - 1)
      .toString(36)
      .padStart(width, "0");
  });
  return texts.join("");
}

function parseRuns(text: string): RunFigures[] {
  const figureAt = (from: number, to: number) =>
    text[from] === "-" ? undefined : Number.parseInt(text.slice(from, to), 36);
  return Array.from({ length: text.length / runWidth }, (_, index) => {
    const from = index * runWidth;
    return {
      duration: figureAt(from, from + 7),
      activities: figureAt(from + 7, from + 12),
      conflicts: figureAt(from + 12, from + 16),
    };
  });
}

function parseTarget(policy: string, target: string, line: string): TargetState {
  const [finished = "", sign = "", since = "", inARow = "", success = "", bad = "", runs = "", last = "", worse = ""] =
    line.split("\t");
  const name = { policy, target: String(JSON.parse(target)) };
  const newest = parseLast(name, finished, last);
  return {
    target: name.target,
    last: worse === "" ? newest : parseLast(name, worse.slice(0, 13), worse.slice(13)),
    newest: {
      taskId: newest.taskId,
      slotMs: newest.slotMs,
      finishedMs: newest.finishedMs,
      status: newest.status,
    },
    weight: sign === "" ? undefined : sign === "+" ? "success" : "bad",
    sinceMs: toNumber(since),
    inARow: Number(inARow),
    lastSuccessMs: toNumber(success),
    lastBadMs: toNumber(bad),
    runs: parseRuns(runs),
  };
}

function parseLast(name: Pick<Outcome, "policy" | "target">, finished: string, text: string): LastOutcome {
  const [kind, status, evidence, confidence, reason, origin, slotMs, findings] = lastSchema.parse(JSON.parse(text));
  return {
    ...{ taskId: taskId({ ...name, kind, slotMs, origin }), kind, status, evidence, reason, origin, slotMs },
    ...{ confidence: confidence ?? undefined, finishedMs: Number(finished) },
    findings: findings.map(([what, value, usual]) => ({ what, value, usual })),
  };
}

function toNumber(text: string): number | undefined {
  return text === "" ? undefined : Number(text);
}

function worstFirst(a: TargetState, b: TargetState): number {
  const rank = rankOf(a) - rankOf(b);
  if (rank !== 0) return rank;
  const since = (a.sinceMs ?? 0) - (b.sinceMs ?? 0);
  return a.weight === "success" ? -since : since;
}

function rankOf({ weight, last }: TargetState): number {
  if (weight === "bad") return 0;
  // In the order of the healths of policies.
  const place = ["unknown", "missed", "failed", "blocked", "conflicts"].indexOf(last.status);
  if (place >= 0) return 1 + place;
  return weight === undefined ? 6 : 7;
}

/** How long Redis keeps the last success of a policy, in milliseconds. */
export const successKeptMs = 400 * 86_400_000;

/** When each of these policies last succeeded; those without a success are left out. */
export async function readLastSuccesses(
  store: Store,
  policies: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const found = new Map<string, number>();
  for (const batch of batchesOf(policies)) {
    const answers = await store.redis.mget(batch.map((policy) => lastSuccessKey(store, policy)));
    for (const [index, policy] of batch.entries()) if (answers[index]) found.set(policy, Number(answers[index]));
  }
  return found;
}

/** Key of a policy's last success. */
export function lastSuccessKey({ key }: Pick<Store, "key">, policy: string): string {
  return key("last-success", policy);
}
