// The options of a sandbox, with defaults and limits. cli/sandbox.ts fills them. The fields of
// activities, conflict details and sync jobs that the interface does not show (§2) are THE
// SANDBOX'S OWN CHOICE: their names are switchable, so that nothing can depend on them.

import { randomBytes } from "node:crypto";
import { type Clock, systemClock } from "../core/clock.ts";
import { UsageError } from "../core/errors.ts";
import { describeUnknownWord, findWord } from "../core/nearest-word.ts";
import type { Fault } from "./faults.ts";

/** The forms of `@odata.nextLink`. */
export const nextLinkStyles = ["absolute", "relative", "path", "query", "opaque", "wrong-host", "mixed"] as const;
/**
 * `absolute`: from the Host header; `relative`: to the service root; `path`: from the host's root;
 * `query`: only `?…`; `opaque`: `/odata/$next/TOKEN`; `wrong-host`: as behind a proxy; `mixed`:
 * another one on each page.
 */
type NextLinkStyle = (typeof nextLinkStyles)[number];

/** The forms of the token in a next link. */
export const tokenStyles = ["number", "base64", "key", "guid", "encoded"] as const;
/**
 * `number`: an offset in `$skip`. In `$skiptoken`: `base64` JSON with a key; `key`: `Id-100`;
 * `guid`: of a remembered place; `encoded`: an offset that must be percent-encoded.
 */
export type TokenStyle = (typeof tokenStyles)[number];

/** The orders of a list. */
export const listOrders = ["ascending", "descending", "hash", "shuffled"] as const;
/** New items come last; first; anywhere, and stay there; or each first page has a new order. */
export type ListOrder = (typeof listOrders)[number];

/** The options of a sandbox. All are optional. */
export interface SandboxOptions {
  /** TCP port; 0 takes a free one. Default 0. */
  readonly port?: number;
  /** Address to listen on. Default 127.0.0.1. */
  readonly host?: string;
  /** Path before `/odata` and `/api`, such as `/sync`. Default none. */
  readonly basePath?: string;
  /** The bearer token. Default: a random one. */
  readonly token?: string;
  /** A second token without the rights of service-interface §5.2. Default none. */
  readonly limitedToken?: string;
  /** Number of sync jobs, 1 to 10,000; their ids are 1 to this. Default 20. */
  readonly jobs?: number;
  /** Synchronization activities at the start, 0 to 50,000. Default 250. */
  readonly activities?: number;
  /** The same seed gives the same data and chance. Default 1. */
  readonly seed?: number;
  /** Shortest and longest run in milliseconds. Default 1 to 4 seconds. */
  readonly runMs?: readonly [number, number];
  /** Destination repository keys, default HR. Each gets an equal block of sync jobs. */
  readonly repositories?: readonly string[];
  /** Items on a page, 1 to 1,000. Default 100. */
  readonly pageSize?: number;
  /** Names of the fields of activities and conflict details. Default plain. */
  readonly shape?: ShapeName;
  /** Single names that differ from the shape; undefined leaves a field out. */
  readonly fieldNames?: Partial<FieldNames>;
  /** How `@odata.nextLink` looks. Default absolute. */
  readonly nextLinkStyle?: NextLinkStyle;
  /** How the token in it looks. Default number. */
  readonly tokenStyle?: TokenStyle;
  /** The order of every list. Default ascending. */
  readonly order?: ListOrder;
  /** True: every full page has a link, so that a list may end with an empty page. Default false. */
  readonly emptyLastPage?: boolean;
  /** True: a run that left an approval goes on until the approval is gone. Default false. */
  readonly approvalsBlock?: boolean;
  /** Status for a missing thing where service-interface §7 documents no 404. Default 400. */
  readonly missingStatus?: 400 | 404;
  /** What goes wrong, and when. Default nothing. */
  readonly faults?: readonly Fault[];
  /** Where the time comes from. Default the machine's clock. */
  readonly clock?: Clock;
  /** Called with an error that is a bug of the sandbox; the caller got a 500. Default: ignored. */
  readonly onBug?: (error: unknown) => void;
}

/** The options with everything filled in. */
export type SandboxSettings = Required<Omit<SandboxOptions, "limitedToken" | "shape" | "fieldNames">> & {
  readonly limitedToken: string | undefined;
  readonly fieldNames: FieldNames;
};

const limits = {
  port: [0, 65_535],
  jobs: [1, 10_000],
  activities: [0, 50_000],
  seed: [0, 2 ** 31 - 1],
  pageSize: [1, 1_000],
} as const;

/** Fills in the defaults. @throws UsageError naming the option that is out of its range. */
export function toSettings(options: SandboxOptions): SandboxSettings {
  const { shape = "plain", fieldNames, ...given } = options;
  const settings: SandboxSettings = {
    port: 0,
    host: "127.0.0.1",
    basePath: "",
    token: randomBytes(24).toString("base64url"),
    limitedToken: undefined,
    jobs: 20,
    activities: 250,
    seed: 1,
    runMs: [1_000, 4_000],
    repositories: ["HR"],
    pageSize: 100,
    nextLinkStyle: "absolute",
    tokenStyle: "number",
    order: "ascending",
    emptyLastPage: false,
    approvalsBlock: false,
    missingStatus: 400,
    faults: [],
    clock: systemClock,
    onBug: () => {},
    ...given,
    fieldNames: toFieldNames(shape, fieldNames),
  };
  checkSettings(settings);
  return settings;
}

function checkSettings(settings: SandboxSettings): void {
  for (const name of ["port", "jobs", "activities", "seed", "pageSize"] as const) {
    const [lowest, highest] = limits[name];
    const value = settings[name];
    if (Number.isInteger(value) && value >= lowest && value <= highest) continue;
    throw new UsageError(`sandbox: ${name} is ${value}; it must be a whole number from ${lowest} to ${highest}`);
  }
  const [shortest, longest] = settings.runMs;
  if (!(shortest >= 0 && shortest <= longest && longest <= 86_400_000)) {
    throw new UsageError(`sandbox: a run takes ${shortest} to ${longest} ms; write shortest, longest, at most 24 h`);
  }
  if (!/^(\/[A-Za-z0-9._~-]+){0,8}$/.test(settings.basePath)) {
    throw new UsageError(`sandbox: base path "${settings.basePath}" must look like /sync: one slash first, none last`);
  }
  for (const token of [settings.token, settings.limitedToken]) {
    if (token === undefined || /^[A-Za-z0-9._~+/=-]{1,512}$/.test(token)) continue;
    throw new UsageError("sandbox: a token is 1 to 512 of the characters A-Z a-z 0-9 . _ ~ + / = -");
  }
  if (settings.token === settings.limitedToken) throw new UsageError("sandbox: the two tokens must differ");
  const keys = settings.repositories;
  const keysFine = keys.length >= 1 && keys.length <= 100 && keys.every((key) => /^[^\s/]{1,64}$/.test(key));
  if (!keysFine || new Set(keys).size !== keys.length) {
    throw new UsageError(
      "sandbox: give 1 to 100 different repository keys of 1 to 64 characters, without spaces and /",
    );
  }
}

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
