// What an `apply` policy declares: objects of the service and the fields that they shall have. Made by config/, named in tasks, worked on by declared/.

/** The kinds of objects that can be declared, and what a person calls them. Source: service-interface §4.1 (the four updates) */
export const declaredKinds = {
  syncJob: "sync job",
  docMask: "document mask",
  driveTarget: "drive-type target",
  siteTarget: "site-type target",
} as const;

/** One of the four kinds. */
export type DeclaredKind = keyof typeof declaredKinds;

/** One object and what its fields shall be: those that are declared and no others. `id`: a whole number. */
export interface DeclaredObject {
  readonly kind: DeclaredKind;
  readonly id: number;
  readonly fields: Readonly<Record<string, string>>;
}

/** Whose objects these are: of one repository of a service; null for the repository that the service takes by itself. */
export interface ObjectOwner {
  readonly service: string;
  readonly repository: string | null;
}

/** The object's name as a task's target and in Redis: `syncJob-42`. */
export function objectName({ kind, id }: Pick<DeclaredObject, "kind" | "id">): string {
  return `${kind}-${id}`;
}

/** The object's name for a person: `sync job 42`. */
export function showObject({ kind, id }: Pick<DeclaredObject, "kind" | "id">): string {
  return `${declaredKinds[kind]} ${id}`;
}
