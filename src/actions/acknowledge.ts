// Acknowledges what is wrong with a policy: a person knows of it, so it stands below what is new.
// It ends when all of it is over or it gets worse, and never mutes a notice. Called by
// `syncline acknowledge` and web/.
import { type Policy, targetsOf } from "../config/policy-set.ts";
import { ConflictError } from "../core/errors.ts";
import { healths } from "../model/outcome.ts";
import { openTarget } from "../queries/open-conflicts.ts";
import { needsPerson, policyHealths, targetHealth } from "../queries/policy-lines.ts";
import { readLine } from "../queries/records.ts";
import { type Acknowledgement, acknowledgePolicy, readPolicyStates } from "../store/policy-states.ts";
import { redisTimeMs, type Store } from "../store/redis.ts";
import { type By, beginChange } from "./record-change.ts";

/** What both actions need. */
interface Parts {
  readonly store: Store;
  readonly by: By;
}

/**
 * Notes that the person of `by` knows of the policy's trouble, in place of an earlier note.
 * @throws ConflictError when nothing is wrong with it, or a task ends now.
 */
export async function acknowledge(policy: Policy, { store, by }: Parts): Promise<Acknowledgement> {
  const { name } = policy;
  const state = (await readPolicyStates(store, [name])).get(name);
  const { health, open, acknowledged: before } = await readLine({ store }, policy);
  if (!needsPerson[health]) throw new ConflictError(`policy ${name} is ${health}: there is nothing to acknowledge`);
  const named = targetsOf(policy.action);
  const ended = (state?.targets ?? []).flatMap((target) => {
    const bad = targetHealth(target);
    const isNamed = named === undefined || named.includes(target.target);
    return bad === undefined || bad === "good" || !isNamed ? [] : [[target.target, bad] as const];
  });
  // A run that ends well does not settle what is open.
  const own = open === undefined ? ended : [...ended, [openTarget, "conflicts"] as const];
  // What nothing of this shows is about the slots: missed, unplanned, late.
  const isOfSlots = health !== "quarantined" && !own.some(([, bad]) => bad === health);
  const troubles = isOfSlots ? [...own, ["", "missed"] as const] : own;
  const known = new Set<string>([health, ...own.map(([, bad]) => bad)]);
  const acknowledgement = {
    actor: by.actor,
    note: by.reason ?? "",
    sinceMs: await redisTimeMs(store),
    state: policyHealths.find((one) => known.has(one)) ?? health,
    targets: Object.fromEntries(troubles.map(([target, bad]) => [target, healths.indexOf(bad)])),
  };
  const knownMs = state?.targets[0]?.newest.finishedMs ?? 0;
  const done = { what: "acknowledge", subject: `policy ${name}`, before: before ?? null, after: acknowledgement };
  const change = await beginChange(store, by, done);
  if (!(await acknowledgePolicy(store, name, { acknowledgement, knownMs }))) {
    await change.drop();
    throw new ConflictError(`a task of policy ${name} has ended just now: look at it, then acknowledge again`);
  }
  await change.end();
  return acknowledgement;
}

/** Takes an acknowledgement back. Answers whether there was one. */
export async function endAcknowledgement({ name }: Pick<Policy, "name">, { store, by }: Parts): Promise<boolean> {
  const before = (await readPolicyStates(store, [name])).get(name)?.acknowledged;
  const change = await beginChange(store, by, { what: "acknowledge --end", subject: `policy ${name}` });
  // The command is sent again after a lost answer, and finds none then.
  const isEnded =
    (await acknowledgePolicy(store, name, { acknowledgement: undefined, knownMs: 0 })) || before !== undefined;
  await (isEnded ? change.end() : change.drop());
  return isEnded;
}
