// The `defaults` of all files as one. Called by load-policies.ts, before the rules look at them; that no key stands twice is cross-rules.ts's.
import { type View, viewOf } from "./view.ts";

/** Merges the `defaults` of files; the first file that sets a key wins. */
export function mergeDefaults(files: readonly View[]): View {
  const merged: Record<string, unknown> = {};
  for (const file of files) {
    for (const [key, view] of file.at("defaults").entries()) {
      if (!Object.hasOwn(merged, key)) merged[key] = view.value;
    }
  }
  return viewOf(merged, ["defaults"]);
}
