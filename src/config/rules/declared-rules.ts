// The rules of `apply`: what one policy may declare, and what two policies may not both declare.
// Called by policy-rules.ts and cross-rules.ts.

import type { Problem } from "../problem.ts";
import type { YamlView } from "../yaml/view.ts";
import type { Path, YamlFile } from "../yaml/yaml-file.ts";
import { policyLimits } from "./policy-limits.ts";

/** The part of policy-rules.ts's Report that is used here. */
type Report = (path: Path, message: string, options?: { readonly hint?: string; readonly place?: "key" }) => void;

/**
 * A policy declares at least one object, each with at least one field, and no more objects than one
 * slot can apply.
 */
export function checkDeclared(policy: YamlView, { report }: { readonly report: Report }): void {
  const apply = policy.at("apply");
  if (!apply.isObject) return;
  const objects = apply.entries().flatMap(([, kind]) => kind.entries());
  if (objects.length === 0)
    report(apply.path, "apply declares nothing", { hint: "name at least one object by its id" });
  if (objects.length > policyLimits.objectsMax) {
    const message = `apply declares ${objects.length} objects; ${policyLimits.objectsMax} a policy is the most`;
    report(apply.path, message, { hint: "split it into several policies", place: "key" });
  }
  for (const [, object] of objects) {
    if (object.isObject && object.entries().length === 0)
      report(object.path, "no field is declared here", { hint: "say which fields it shall have, or remove it" });
  }
}

/** Two policies that declare one field differently would undo each other's changes at each slot. */
export function declaredTwice(files: readonly { readonly file: YamlFile; readonly view: YamlView }[]): Problem[] {
  const first = new Map<string, { readonly value: unknown; readonly policy: string }>();
  return files.flatMap(({ file, view }) =>
    view
      .at("policies")
      .items()
      .flatMap((policy) => {
        const name = policy.at("name").text() ?? "";
        const owner = [policy.at("service").value, policy.at("repository").value ?? null];
        return declaredFields(policy).flatMap(({ kind, id, field, at }) => {
          const key = JSON.stringify([...owner, kind, id, field]);
          const known = first.get(key);
          if (known === undefined) first.set(key, { value: at.value, policy: name });
          if (known === undefined || known.value === at.value) return [];
          const message = `${kind}.${id}.${field} is declared differently by ${known.policy}`;
          return [file.problemAt(at.path, message, { hint: "declare it in one place only" })];
        });
      }),
  );
}

function declaredFields(policy: YamlView) {
  return policy
    .at("apply")
    .entries()
    .flatMap(([kind, objects]) =>
      objects
        .entries()
        .flatMap(([id, object]) => object.entries().map(([field, at]) => ({ kind, id, field, at }) as const)),
    );
}
