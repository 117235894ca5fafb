// Whether there is something new to show: one short answer for all open pages. Redis makes it out
// of a few hashes, in about a millisecond for 5,000 policies.
import { policyStatesKey } from "./policy-states.ts";
import type { Store } from "./redis.ts";
import { asText, createScript } from "./script.ts";

const versionScript = createScript("live-version", asText);

/** A text that differs after an outcome, a planned slot, a pause or a quarantine. */
export function readLiveVersion(store: Store): Promise<string> {
  const { key } = store;
  return versionScript(store, [policyStatesKey(store), key("watermarks"), key("pauses"), key("quarantines")]);
}
