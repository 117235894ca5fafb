// What a refused PUT means: the kind of ending, and which field is to blame. Pure; used by apply-object.ts. The status decides; the service's
// own words are asked for one thing only, which field it names, and never believed when sending fields one by one can tell.
import type { ServiceError } from "../service/client.ts";

/**
 * What to do after a PUT that failed. `field`: a field was refused. `changed`: somebody changed the object since it was read (412). `wants-etag`: it
 * can be changed only by who names the version (428). `missing`: 404. `not-done`: refused or not sent. `unknown`: it may have happened.
 */
export type PutFailure = "field" | "changed" | "wants-etag" | "missing" | "not-done" | "unknown";

const byStatus: Readonly<Partial<Record<number, PutFailure>>> = {
  400: "field",
  404: "missing",
  412: "changed",
  422: "field",
  428: "wants-etag",
};

/** Says what a failed PUT means. Source: service-interface §7; 412, 422 and 428 are not documented and mean what HTTP says. */
export function readPutFailure({ status, kind, sent }: ServiceError): PutFailure {
  const known = status === undefined ? undefined : byStatus[status];
  if (known !== undefined) return known;
  if (sent === "no") return "not-done";
  return kind === "server" || kind === "unknown" || kind === "contract" || kind === "cancelled"
    ? "unknown"
    : "not-done";
}

/** Who is to blame for a 400, as far as one answer can tell. */
export interface Blame {
  /** undefined: send the fields one by one to find out. */
  readonly field: string | undefined;
  /** The service says in words that the field cannot be changed at all, whatever the value and the object. */
  readonly isReadOnly: boolean;
  readonly said: string;
}

const readOnlyWords = /read[\s-]?only|immutable|(not|cannot|can't)\s+(be\s+)?(updat|chang|modif|edit|writ|set\b)/i;

/** Finds the field that a 400 is about. One field alone is to blame itself (Assumption A10); of several, the one that the answer names, if it names one only. */
export function findBlame(fields: readonly string[], answer: string | undefined): Blame {
  const said = answer ?? "";
  const named = fields.filter((field) => new RegExp(`(^|[^A-Za-z0-9_])${field}($|[^A-Za-z0-9_])`, "i").test(said));
  const only = fields.length === 1 ? fields : named;
  const field = only.length === 1 ? only[0] : undefined;
  return { field, isReadOnly: field !== undefined && readOnlyWords.test(said), said };
}
