// `syncline plan --state`: compares the declared state with the live and the last applied one.
// Reads only. Called by plan.ts.
import { declaredKinds } from "../../core/declared-object.ts";
import type { DeclaredMemory } from "../../store/declared-memory.ts";
import { explainServiceError } from "../api-error.ts";
import type { ExitCode } from "../command-io.ts";
import { type DeclaredItem, type ItemLook, lookAtAll, type SessionOptions, withDeclared } from "./session.ts";
import { stateOf, stateToJson, stateToText } from "./state-text.ts";

/**
 * Prints the state and sets the exit code: 0 nothing to do, 2 something differs, 1 an object is
 * missing or unreadable, 3 the service is unreachable.
 */
export async function showState(
  options: Omit<SessionOptions, "isForgetting">,
  { isJson }: { readonly isJson: boolean },
): Promise<void> {
  const { io } = options;
  await withDeclared({ ...options, isForgetting: false }, async (items) => {
    const looks = await lookAtAll(items, io);
    const fields = await readOnlyFields(items);
    if (isJson) io.out(JSON.stringify({ objects: stateToJson(looks), readOnlyFields: fields }));
    else {
      io.out(stateToText(looks, io.colours));
      for (const { service, field, since, said } of fields)
        io.out(`${service} does not take ${field}, found ${since}${said === "" ? "" : `: ${said}`}`);
    }
    io.exitCode = exitCodeOf(looks);
  });
}

/** The exit code of all inspections: what could not be inspected comes before what differs. */
function exitCodeOf(looks: readonly ItemLook[]): ExitCode {
  const codes = looks.flatMap(({ error }) => (error === undefined ? [] : [explainServiceError(error).exitCode]));
  if (codes.includes(3)) return 3;
  const states = new Set(looks.map(stateOf));
  if (states.has("unreadable") || states.has("missing")) return 1;
  return states.has("differs") || states.has("blocked") ? 2 : 0;
}

async function readOnlyFields(items: readonly DeclaredItem[]) {
  const memories = new Map<string, Pick<DeclaredMemory, "readOnly">>();
  for (const { parts } of items) memories.set(parts.owner.service, parts.memory);
  const found = [];
  for (const [service, memory] of memories) {
    for (const kind of ["syncJob", "docMask", "driveTarget", "siteTarget"] as const) {
      for (const { field, said, atMs, isCertain } of await memory.readOnly(service, kind))
        if (isCertain)
          found.push({
            service,
            field: `${field} of any ${declaredKinds[kind]}`,
            since: new Date(atMs).toISOString(),
            said,
          });
    }
  }
  return found;
}
