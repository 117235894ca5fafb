// The declared state beside the live and the last applied one: `syncline plan --state`, and what
// `apply` inspects and shows first. Reads only.

import { createService } from "../app/create-service.ts";
import type { InspectDependencies } from "../apply/apply-dependencies.ts";
import { describeBlock, type FieldDifference, knownValue, showValue } from "../apply/differences.ts";
import { type Inspection, inspect } from "../apply/inspect.ts";
import { MaskCache } from "../apply/mask-cache.ts";
import type { Policy, PolicySet } from "../config/policy-set.ts";
import { systemClock } from "../core/clock.ts";
import { type DeclaredObject, declaredKinds, objectName, showObject } from "../core/declared-object.ts";
import { UsageError } from "../core/errors.ts";
import { silentLog } from "../core/event-log.ts";
import { toIso } from "../core/instant.ts";
import { counted, someNames } from "../core/plain-text.ts";
import { ServiceError, type SyncService } from "../service/client.ts";
import { escapeControls } from "../service/error-body.ts";
import { DeclaredMemory } from "../store/declared-memory.ts";
import type { RedisTarget, Store } from "../store/redis.ts";
import type { CommandIo, ExitCode, Screen } from "./command-io.ts";
import { explainServiceError } from "./service-call.ts";
import { findPolicy, withStore } from "./shared-options.ts";
import { paint, showPlace, toTable } from "./table.ts";

/**
 * Prints the state and sets the exit code: 0 nothing to do, 1 an object is missing or unreadable,
 * 2 something differs, 3 the service is unreachable.
 */
export async function showState(
  options: Omit<DeclaredOptions, "isForgetting">,
  { isJson }: { readonly isJson: boolean },
): Promise<void> {
  const { io } = options;
  await withDeclared({ ...options, isForgetting: false }, async (items) => {
    const inspected = await inspectAll(items, io);
    const fields = await readOnlyFields(items);
    if (isJson) io.out(JSON.stringify({ v: 1, objects: stateToJson(inspected), readOnlyFields: fields }));
    else {
      io.out(stateToText(inspected, io));
      for (const { service, field, since, said } of fields)
        io.out(`${service} does not take ${field}, found ${since}${said === "" ? "" : `: ${said}`}`);
    }
    io.exitCode = exitCodeOf(inspected);
  });
}

/** What could not be inspected comes before what differs. */
function exitCodeOf(inspected: readonly InspectedItem[]): ExitCode {
  const codes = inspected.flatMap(({ error }) => (error === undefined ? [] : [explainServiceError(error).exitCode]));
  if (codes.includes(3)) return 3;
  const states = new Set(inspected.map(stateOf));
  if (states.has("unreadable") || states.has("missing")) return 1;
  return states.has("differs") || states.has("blocked") ? 2 : 0;
}

async function readOnlyFields(items: readonly DeclaredItem[]) {
  const memories = new Map(items.map(({ parts }) => [parts.place.service, parts.memory]));
  const found = [];
  for (const [service, memory] of memories) {
    for (const kind of ["syncJob", "docMask", "driveTarget", "siteTarget"] as const) {
      for (const { field, said, atMs, isCertain } of await memory.readOnly(service, kind))
        if (isCertain)
          found.push({ service, field: `${field} of any ${declaredKinds[kind]}`, since: toIso(atMs), said });
    }
  }
  return found;
}

/** `differs`: `apply` would send something. `blocked`: the service does not take the change. */
export type ObjectState = "same" | "differs" | "blocked" | "missing" | "unreadable";

const colourOf = { same: "green", differs: "yellow", blocked: "red", missing: "red", unreadable: "red" } as const;

const wordOf: Readonly<Record<ObjectState, string>> = {
  same: "as declared",
  differs: "differs",
  blocked: "not taken",
  missing: "not there",
  unreadable: "not readable",
};

/** The state of an inspected object. */
export function stateOf({ inspection }: InspectedItem): ObjectState {
  if (inspection === undefined) return "unreadable";
  if (inspection.state === "missing") return "missing";
  if (inspection.differences.some(({ block }) => block === undefined)) return "differs";
  return inspection.differences.length > 0 ? "blocked" : "same";
}

/** One table a policy, and a line with the counts. */
export function stateToText(inspected: readonly InspectedItem[], screen: Screen): string {
  if (inspected.length === 0) return "No policy declares anything (apply).";
  const policies = [...new Set(inspected.map(({ policy }) => policy))];
  const blocks = policies.map((policy) => {
    const rows = inspected.filter((item) => item.policy === policy).flatMap((item) => rowsOf(item, screen.colours));
    const title = `${policy.name} (${showPlace(policy.service, policy.repository)})`;
    const table = toTable(["object", "state", "field", "declared", "live", "last applied", ""], rows, screen);
    return `${paint("bold", title, screen.colours)}\n${table}`;
  });
  return [...blocks, countLine(inspected)].join("\n\n");
}

function countLine(inspected: readonly InspectedItem[]): string {
  const states = inspected.map(stateOf);
  const counts = (Object.keys(wordOf) as ObjectState[]).flatMap((state) => {
    const count = states.filter((one) => one === state).length;
    return count === 0 ? [] : [`${count} ${state === "differs" ? "to change" : wordOf[state]}`];
  });
  return `${counted(inspected.length, "object")}: ${counts.join(", ")}`;
}

function rowsOf(item: InspectedItem, colours: boolean): string[][] {
  const state = stateOf(item);
  const word = paint(colourOf[state], wordOf[state], colours);
  const head = [showObject(item.object), word];
  const bare = (note: string) => [[...head, "", "", "", "", escapeControls(note)]];
  if (item.inspection === undefined) return bare(item.error?.message ?? "");
  if (item.inspection.state === "missing") return bare(item.inspection.detail);
  const { differences } = item.inspection;
  if (differences.length === 0) return bare("");
  return differences.map((difference, index) => {
    const [declared, live] = [showValue(difference.after), liveText(item, difference.field)];
    return [
      ...(index === 0 ? head : ["", ""]),
      difference.field,
      paint("green", declared, colours),
      paint("red", live, colours),
      appliedText(item, difference.field),
      noteOf(difference),
    ];
  });
}

function liveText({ inspection }: InspectedItem, field: string): string {
  if (inspection?.state !== "found") return "";
  const known = knownValue(field, inspection.knowledge);
  if (known.from === "live") return showValue(known.value);
  return inspection.isReadable ? "not shown" : "cannot be read";
}

function appliedText({ inspection }: InspectedItem, field: string): string {
  const applied = inspection?.record.applied[field];
  return applied === undefined ? "never" : showValue(applied);
}

function noteOf(difference: FieldDifference): string {
  if (difference.block !== undefined) return escapeControls(describeBlock(difference));
  return difference.isDrift ? "changed by hand" : "";
}

/** For machines: one object for each declared object. */
function stateToJson(inspected: readonly InspectedItem[]): object[] {
  return inspected.map((item) => ({
    policy: item.policy.name,
    service: item.policy.service,
    repository: item.policy.repository ?? null,
    object: objectName(item.object),
    state: stateOf(item),
    problem: item.error?.message ?? (item.inspection?.state === "missing" ? item.inspection.detail : null),
    fields: Object.entries(item.object.fields).map(([field, declared]) => fieldToJson(item, field, declared)),
  }));
}

function fieldToJson({ inspection }: InspectedItem, field: string, declared: string): object {
  if (inspection?.state !== "found") return { field, declared };
  const known = knownValue(field, inspection.knowledge);
  const difference = inspection.differences.find((one) => one.field === field);
  return {
    field,
    declared,
    live: known.from === "live" ? known.value : null,
    isLiveKnown: known.from === "live",
    lastApplied: inspection.record.applied[field] ?? null,
    differs: difference !== undefined,
    isDrift: difference?.isDrift ?? false,
    notTaken: difference?.block === undefined ? null : describeBlock(difference),
  };
}

/** One declared object and what inspecting it needs. */
export interface DeclaredItem {
  readonly policy: Policy;
  readonly object: DeclaredObject;
  readonly parts: InspectDependencies;
}

/** The result of one inspection; `error`: it failed. */
export type InspectedItem = DeclaredItem & {
  readonly inspection: Inspection | undefined;
  readonly error: ServiceError | undefined;
};

/** Whose declared objects are wanted. `names`: of policies; empty for all that declare any. */
export interface DeclaredOptions {
  readonly set: PolicySet;
  readonly names: readonly string[];
  readonly redis: RedisTarget;
  readonly io: CommandIo;
  /** Asks again for what the service refused before (`apply --retry-refused`). */
  readonly isForgetting: boolean;
}

/**
 * Runs `use` with the declared objects, in the order of the files.
 * @throws UsageError when a named policy does not exist or declares nothing.
 */
export async function withDeclared(
  options: DeclaredOptions,
  use: (items: readonly DeclaredItem[], store: Store) => Promise<void>,
): Promise<void> {
  const { set, io } = options;
  const policies = declaring(options);
  await withStore(options.redis, async (store) => {
    const clients = new Map<string, SyncService>();
    const masks = new MaskCache();
    const memory = new DeclaredMemory(store);
    const sinceMs = systemClock.monotonicMs();
    try {
      const forgetting = options.isForgetting ? { forgetBeforeMs: (await memory.nowMs()) + 1 } : {};
      const items = policies.flatMap((policy) => {
        const settings = set.services.get(policy.service);
        if (policy.action.kind !== "apply" || settings === undefined) return [];
        const { service: name, repository = null } = policy;
        const client =
          clients.get(name) ?? createService(settings, { variables: io.settings.variables, log: silentLog });
        clients.set(name, client);
        const place = { service: name, repository };
        const parts = { place, service: client, masks, memory, signal: io.signal, sinceMs, ...forgetting };
        return policy.action.objects.map((object) => ({ policy, object, parts }));
      });
      await use(items, store);
    } finally {
      for (const client of clients.values()) client.close();
    }
  });
}

/** Inspects every object, one after the other. Changes nothing. */
export async function inspectAll(items: readonly DeclaredItem[], io: CommandIo): Promise<InspectedItem[]> {
  const inspected: InspectedItem[] = [];
  for (const item of items) {
    io.progress?.(`${inspected.length + 1} of ${items.length}: ${showObject(item.object)}`);
    try {
      inspected.push({ ...item, inspection: await inspect(item.object, item.parts, anyReading), error: undefined });
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      inspected.push({ ...item, inspection: undefined, error });
    }
  }
  io.progress?.("");
  return inspected;
}

const anyReading = { isFresh: false, isStale: false };

function declaring({ set, names }: Pick<DeclaredOptions, "set" | "names">): readonly Policy[] {
  const all = set.policies.filter(({ action }) => action.kind === "apply");
  for (const name of names) {
    if (all.some((policy) => policy.name === name)) continue;
    findPolicy(set, name);
    const known = all.map((policy) => policy.name);
    throw new UsageError(
      `policy ${name} declares nothing (apply); ${known.length === 0 ? "no policy does" : `those that do: ${someNames(known)}`}`,
    );
  }
  return names.length === 0 ? all : all.filter(({ name }) => names.includes(name));
}
