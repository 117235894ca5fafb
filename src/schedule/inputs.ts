// The inputs of policies (`needs`): which of them planning asks for. Called by the scheduler and by
// chains.
import type { Policy } from "../config/policy-set.ts";
import type { ReadInputs } from "./contracts.ts";

/** Reads the inputs of these policies; undefined when they need none. */
export async function readInputsOf(
  policies: readonly (Policy | undefined)[],
  read: ReadInputs | undefined,
): Promise<ReadonlyMap<string, number> | undefined> {
  const names = new Set(policies.flatMap((policy) => policy?.needs?.policy ?? []));
  return names.size === 0 ? undefined : read?.([...names]);
}
