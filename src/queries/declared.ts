// The objects that apply policies declare, each with how it was applied last. Called by the API.

import { targetsOf } from "../config/policy-set.ts";
import { toIso } from "../core/instant.ts";
import { readPolicyStates } from "../store/policy-states.ts";
import type { QueryContext } from "./query-context.ts";

/** Reads them, by policy in the order of the files. */
export async function readDeclared({ store, set }: QueryContext) {
  const applying = set.policies.filter(({ action }) => action.kind === "apply");
  const states = await readPolicyStates(
    store,
    applying.map(({ name }) => name),
  );
  return applying.flatMap(({ name: policy, service, repository = null, action }) => {
    const ended = new Map(states.get(policy)?.targets.map(({ target, last }) => [target, last]));
    return (targetsOf(action) ?? []).map((object) => {
      const last = ended.get(object);
      const told = last && { status: last.status, reason: last.reason, finished: toIso(last.finishedMs) };
      return { policy, service, repository, object, last: told ?? null };
    });
  });
}
