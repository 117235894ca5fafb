// The fields of activities, conflict details and sync jobs that the interface does not show (§2):
// THE SANDBOX'S OWN CHOICE. Their names are switchable, so that nothing can depend on them.
import { UsageError } from "../core/errors.ts";
import { describeUnknownWord, findWord } from "./suggest.ts";

/** What the fields of a synchronization activity mean, in the order of the plain shape. */
export const activityRoles = ["activityId", "syncJobId", "state", "startedAt", "finishedAt", "itemsProcessed"] as const;
/** What the fields of a conflict detail mean, in the order of the plain shape. */
export const conflictRoles = ["conflictId", "syncJobId", "itemName", "detectedAt"] as const;
/** What the further fields of a sync job mean. */
const syncJobRoles = ["isActive"] as const;

/** The meaning of a field that the interface does not show. */
export type Role = (typeof activityRoles)[number] | (typeof conflictRoles)[number] | (typeof syncJobRoles)[number];
/** A name for each meaning; undefined leaves the field out. */
export type FieldNames = Readonly<Record<Role, string | undefined>>;

/** The names of the ready-made shapes. */
export const shapeNames = ["plain", "opaque", "keyless"] as const;
/** `opaque`: meaningless names; `keyless`: descriptive ones without the entity's own id. */
export type ShapeName = (typeof shapeNames)[number];

const roles: readonly Role[] = [...new Set<Role>([...activityRoles, ...conflictRoles, ...syncJobRoles])];
const plain = namesBy((role) => role);
const shapes: Readonly<Record<ShapeName, FieldNames>> = {
  plain,
  opaque: namesBy((_, index) => `f${index + 1}`),
  keyless: { ...plain, activityId: undefined, conflictId: undefined },
};

/** Sync jobs have no further field unless it is named. */
function namesBy(nameOf: (role: Role, index: number) => string): FieldNames {
  const named = Object.fromEntries(roles.map((role, index) => [role, nameOf(role, index)]));
  return { ...(named as Record<Role, string>), isActive: undefined };
}

/** The field names of a shape, with some replaced. @throws UsageError when two are the same. */
export function toFieldNames(shape: ShapeName, replaced: Partial<FieldNames> = {}): FieldNames {
  const names = { ...shapes[shape], ...replaced };
  for (const entity of [activityRoles, conflictRoles, syncJobRoles]) {
    const documented = entity === syncJobRoles ? ["syncJobId", "name"] : [];
    const used = [...documented, ...entity.map((role) => names[role]).filter((name) => name !== undefined)];
    const twice = used.find((name, index) => used.indexOf(name) !== index);
    if (twice !== undefined) throw new UsageError(`fields: two fields of one entity are named "${twice}"; rename one`);
  }
  return names;
}

/** Reads `activityId=a,state=b`; an empty name leaves the field out. @throws UsageError */
export function parseFieldNames(text: string): Partial<FieldNames> {
  const names: Partial<Record<Role, string | undefined>> = {};
  for (const pair of text.split(",")) {
    const [left = "", right, ...rest] = pair.split("=").map((part) => part.trim());
    if (right === undefined || rest.length > 0) throw new UsageError(`fields: "${pair}" is not FIELD=NAME`);
    const role = findWord(left, roles);
    if (role === undefined) throw new UsageError(`fields: ${describeUnknownWord(left, "a field", roles)}`);
    if (right !== "" && !/^[A-Za-z_][A-Za-z0-9_]{0,63}$/.test(right)) {
      throw new UsageError(`fields: "${right}" is not a name: use letters, digits and _, at most 64, no digit first`);
    }
    names[role] = right === "" ? undefined : right;
  }
  return names;
}

/** Writes an entity under the names of a shape; leaves out meanings without a name. */
export function shapeEntity(
  entity: Readonly<Record<string, unknown>>,
  order: readonly Role[],
  names: FieldNames,
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(order.flatMap((role) => (names[role] === undefined ? [] : [[names[role], entity[role]]])));
}
