// Reads how fresh the inputs of policies are (`needs`): an input of planning. Called by app.ts.
import { type Policy, targetsOf } from "../config/policy-set.ts";
import type { ReadInputs } from "../schedule/contracts.ts";
import { allGoodMs, readPolicyStates } from "../store/policy-states.ts";
import type { Store } from "../store/redis.ts";

/** Makes the reader of inputs; a policy that is not configured any more never was good. */
export function createInputReader(policyOf: (name: string) => Policy | undefined, store: Store): ReadInputs {
  return async (names) => {
    const states = await readPolicyStates(store, names);
    const instants = names.flatMap((name) => {
      const [policy, state] = [policyOf(name), states.get(name)];
      const goodMs = policy && state && allGoodMs(state, targetsOf(policy.action));
      return goodMs === undefined ? [] : [[name, goodMs] as const];
    });
    return new Map(instants);
  };
}
