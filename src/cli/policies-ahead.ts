// The policies to look ahead with, for `plan` and `simulate`: those of --config, or those that run;
// and what Redis knows of the time ahead, where a command wants it.
import type { PolicySet } from "../config/policy-set.ts";
import { OutOfReachError } from "../core/errors.ts";
import { type KnownAhead, readKnownAhead } from "../queries/time-line.ts";
import type { CommandIo } from "./command-io.ts";
import { withStore } from "./connections.ts";
import { loadPoliciesOrThrow, policySetFor, redisTarget, type SetOptions } from "./shared-options.ts";

/** The policies. `known`: undefined when Redis is not asked, or does not answer. */
export interface PoliciesAhead {
  readonly set: PolicySet;
  readonly known: KnownAhead | undefined;
}

/**
 * Reads them. Without Redis, the files of --config are enough: what is not known then is said.
 * @throws UsageError for files with problems; OutOfReachError without files and Redis.
 */
export async function readPoliciesAhead(
  options: SetOptions,
  wantsKnown: boolean,
  io: CommandIo,
): Promise<PoliciesAhead> {
  const { config } = options;
  if (config !== undefined && !wantsKnown) return { set: await loadPoliciesOrThrow(config, io), known: undefined };
  try {
    return await withStore(redisTarget(options, io), async (store) => {
      const set = await policySetFor(options, store, io);
      return { set, known: wantsKnown ? await readKnownAhead(store, set) : undefined };
    });
  } catch (error) {
    if (config === undefined || !(error instanceof OutOfReachError)) throw error;
    io.err(`${error.message} Neither pauses nor usual durations are known.`);
    return { set: await loadPoliciesOrThrow(config, io), known: undefined };
  }
}
