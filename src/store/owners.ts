// The owners of a prefix. Processes announce theirs once a second; the first owner holds the prefix
// until its processes have been silent for 15 seconds.
import type { Store } from "./redis.ts";
import { asTexts, createScript } from "./script.ts";

/** The holder of a prefix, and other owners with live processes. */
export interface Owners {
  readonly holder: string | undefined;
  readonly others: readonly string[];
}

const announceScript = createScript("announce-owner", asTexts);

/** Announces a process of this owner, and takes the prefix where no other owner holds it. */
export function announceOwner(store: Store, owner: string): Promise<Owners> {
  return ask(store, owner);
}

/** Reads the holder of the prefix and the other owners. */
export function readOwners(store: Store): Promise<Owners> {
  return ask(store, "");
}

async function ask(store: Store, owner: string): Promise<Owners> {
  const [holder = "", ...others] = await announceScript(store, [store.key("owners")], [owner]);
  return { holder: holder === "" ? undefined : holder, others: others.toSorted() };
}

/** The error for two owners under one prefix, with the cure. */
export function foreignOwner(owners: readonly string[]): string {
  return `policies of ${owners.join(" and ")} run under one prefix, and each would run the other's; give each a --prefix of its own`;
}
