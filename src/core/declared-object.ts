// What an `apply` policy declares: objects of the service with the fields they shall have.

/** The kinds of declared objects, for people. Source: service-interface §4.1 (the four updates). */
export const declaredKinds = {
  syncJob: "sync job",
  docMask: "document mask",
  driveTarget: "drive-type target",
  siteTarget: "site-type target",
} as const;

/** One of the four kinds. */
export type DeclaredKind = keyof typeof declaredKinds;

/** One object and its declared fields; other fields stay as they are. `id`: a whole number. */
export interface DeclaredObject {
  readonly kind: DeclaredKind;
  readonly id: number;
  readonly fields: Readonly<Record<string, string>>;
}

/** The service and repository of an object; null: the service's default repository. */
export interface ObjectPlace {
  readonly service: string;
  readonly repository: string | null;
}

/** The object's name as a task's target and in Redis: `syncJob-42`. */
export function objectName({ kind, id }: Pick<DeclaredObject, "kind" | "id">): string {
  return `${kind}-${id}`;
}

/** What a name of `objectName` names, without its fields. */
export function parseObjectName(name: string): DeclaredObject {
  const [kind = "", id = ""] = name.split("-");
  return { kind: kind as DeclaredKind, id: Number(id), fields: {} };
}

/** The object's name for a person: `sync job 42`. */
export function showObject({ kind, id }: Pick<DeclaredObject, "kind" | "id">): string {
  return `${declaredKinds[kind]} ${id}`;
}
