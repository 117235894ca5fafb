// Merges the `defaults` of all files, before the rules check them. cross-rules.ts reports doubled
// keys. Called by load-policies.ts.
import { viewOf, type YamlView } from "./yaml/view.ts";

/** Merges the `defaults` of files; the first file that sets a key wins. */
export function mergeDefaults(files: readonly YamlView[]): YamlView {
  const merged: Record<string, unknown> = {};
  for (const file of files) {
    for (const [key, view] of file.at("defaults").entries()) {
      if (!Object.hasOwn(merged, key)) merged[key] = view.value;
    }
  }
  return viewOf(merged, ["defaults"]);
}
