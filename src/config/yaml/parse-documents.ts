// Reads YAML that is no policy file: manifests of Kubernetes, several documents in one text. Called
// by `syncline import`.
import { parseAllDocuments } from "yaml";
import { errorText } from "../../core/errors.ts";

const aliasesMax = 100;

/** The values of the documents, without empty ones; or what is wrong with the first wrong one. */
export function parseDocuments(text: string): { readonly values: readonly unknown[] } | { readonly problem: string } {
  const values: unknown[] = [];
  try {
    for (const document of parseAllDocuments(text, { merge: true, uniqueKeys: false, logLevel: "error" })) {
      const [error] = document.errors;
      if (error !== undefined) throw error;
      const value: unknown = document.toJS({ maxAliasCount: aliasesMax });
      if (value !== null) values.push(value);
    }
  } catch (error) {
    // Also the error for more aliases than the limit.
    return { problem: errorText(error).split("\n")[0] ?? "" };
  }
  return { values };
}
