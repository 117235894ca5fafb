// Brings one object to its declared state: inspect it, PUT what differs, inspect again, until
// nothing is left that can be changed. A PUT may be repeated (Assumption A11). The record notes
// each change before it is sent, so the next caller repeats an interrupted PUT. Called by
// tasks/apply.ts and `syncline apply`.
//
//   inspect ─▶ nothing differs ─▶ done
//     └─▶ PUT what differs
//           ├─▶ taken: inspect again, since the service may have kept the old value
//           ├─▶ 400: find the refused field; the others go on
//           ├─▶ 412: inspect and PUT again, at most twice; a drive or site target with If-Match: *
//           ├─▶ 428: a drive or site target that went without a version goes again with If-Match: *
//           ├─▶ 201 for a drive or site target: it was not there, and nothing more is sent
//           └─▶ no answer: the caller tries again later, and inspects first

import type { DeclaredObject } from "../core/declared-object.ts";
import { type AppliedRecord, type FieldChange, type FieldRefusal, noRecord } from "../model/applied-record.ts";
import { ServiceError } from "../service/client.ts";
import type { ApplyDependencies } from "./apply-dependencies.ts";
import { describeCreated, type FieldDifference, type Knowledge, knownValue } from "./differences.ts";
import { etagOf, type Inspection, inspect, putFields } from "./inspect.ts";

const byStatus: Readonly<Partial<Record<number, PutFailure>>> = {
  400: "field",
  404: "missing",
  412: "stale",
  422: "field",
  428: "wants-etag",
};

const readOnlyWords = /read[\s-]?only|immutable|(not|cannot|can't)\s+(be\s+)?(updat|chang|modif|edit|writ|set\b)/i;

/** What an answer must say of a field that it does not name. */
const readOnlyFieldWords = /(read[\s-]?only|immutable)\s+(propert|field)/i;

/** Words of a refusal that is about this value, this object or this moment. */
const momentWords = /\b(while|when|because|until|already|exists|in use|duplicate|mode|could not|was not)\b/i;

/** The longest field value of the service that is remembered; declared values are shorter. */
const textMax = 4_096;

/** Each round finishes a field, repeats after a 412, or begins to send fields one by one. */
const roundsMax = 16;
const staleMax = 2;

/**
 * How applying an object ended. `changes`: what this caller changed, also before an interruption.
 * `blocked`: fields that still differ and were refused or ignored. `unread`: declared fields that
 * no read shows.
 */
export type ApplyResult = { readonly changes: readonly FieldChange[] } & (
  | { readonly end: "done"; readonly blocked: readonly FieldDifference[]; readonly unread: readonly string[] }
  | { readonly end: "missing" | "precondition"; readonly detail: string }
  | { readonly end: "busy"; readonly holder: string; readonly isSent: boolean }
  | { readonly end: "failed"; readonly error: ServiceError; readonly isSent: boolean }
);

type FoundInspection = Extract<Inspection, { readonly state: "found" }>;

/** Applies one object, one caller at a time. A failure of the service becomes a result. */
export async function applyObject(object: DeclaredObject, deps: ApplyDependencies): Promise<ApplyResult> {
  const { memory, place, by } = deps;
  // What this caller did at an earlier attempt counts as its own.
  const before = async () => ownOf(await memory.record(place, object), by);
  const holder = await memory.hold(place, object, by);
  if (holder !== by) return { end: "busy", holder, ...(await before()) };
  try {
    return await new ApplyRun(object, deps).toTheEnd();
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return { end: "failed", error, ...(await before()) };
  } finally {
    // Without Redis the hold ends by itself.
    await memory.letGo(place, object, by).catch(() => {});
  }
}

/** What a caller has changed, and whether it may have changed more. */
function ownOf({ sent, changed, by: last }: AppliedRecord, by: string) {
  return { isSent: sent.some((one) => one.by === by), changes: last === by ? changed : [] };
}

class ApplyRun {
  readonly #object: DeclaredObject;
  readonly #deps: ApplyDependencies;
  /** The fields whose change the service answered with a success in this run. */
  readonly #taken = new Map<string, FieldChange>();
  /** Those of them that stayed as they were. */
  readonly #ignored = new Set<string>();
  #record: AppliedRecord = noRecord;
  #kept = "";
  /** True after a 400 that did not name one of several fields: they go out one by one. */
  #isSingly = false;
  #staleCount = 0;
  #isStale = false;
  #isReadAgain = false;
  /** Sent as If-Match instead of a version, for objects that cannot be read. */
  #ifAny: "*" | undefined;

  constructor(object: DeclaredObject, deps: ApplyDependencies) {
    this.#object = object;
    this.#deps = deps;
  }

  /** @throws ServiceError when the object cannot be read. */
  async toTheEnd(): Promise<ApplyResult> {
    const { memory, place, by } = this.#deps;
    for (let round = 1; round <= roundsMax; round += 1) {
      if (round > 1) {
        // A round may outlast the hold: another caller may have taken the object.
        const other = await memory.hold(place, this.#object, by);
        if (other !== by) return { end: "busy", holder: other, ...ownOf(this.#record, by) };
      }
      const look = await inspect(this.#object, this.#deps, { isFresh: round > 1, isStale: this.#isStale });
      // An earlier caller has published its own changes.
      this.#record = look.record.by === by ? look.record : { ...look.record, by, changed: [] };
      this.#kept = JSON.stringify(look.record);
      if (look.state === "missing") return { end: "missing", detail: look.detail, changes: this.#record.changed };
      this.#record = noteInspection(this.#object, look.knowledge, this.#record);
      const open = await this.#openOf(look);
      if (open.length === 0) return await this.#done(look);
      const holder = look.syncJobId === undefined ? undefined : await this.#deps.holder(look.syncJobId);
      if (holder !== undefined) {
        await this.#keep();
        return { end: "busy", holder, ...ownOf(this.#record, by) };
      }
      const ended = await this.#put(this.#batchOf(open, look), look);
      if (ended !== undefined) return ended;
    }
    throw new Error(`${roundsMax} rounds did not bring an object to an end`);
  }

  /** The fields still to send. One that stayed the same after a success counts as ignored. */
  async #openOf({ differences }: FoundInspection): Promise<readonly FieldDifference[]> {
    for (const { field, before, after, block } of differences) {
      const taken = this.#taken.get(field);
      if (taken === undefined || block !== undefined) continue;
      // The value differs from before the change, or the answer showed the new one: the service
      // shows it late or in another way, or another client changed it. The next slot decides.
      if ((taken.isBeforeKnown && taken.before !== before) || this.#record.returned[field] === after) continue;
      const atMs = await this.#deps.memory.nowMs();
      this.#record = noteRefused(this.#record, taken, { value: after, how: "ignored", before, said: "", atMs });
      this.#ignored.add(field);
    }
    return differences.filter(({ field, block }) => block === undefined && !this.#taken.has(field));
  }

  async #done({ differences, knowledge }: FoundInspection): Promise<ApplyResult> {
    await this.#keep();
    const howOf = (field: string) => (this.#ignored.has(field) ? "ignored" : "altered");
    const blocked = differences.map((one) => ({ ...one, block: one.block ?? { how: howOf(one.field), said: "" } }));
    const unread = Object.keys(this.#object.fields).filter((field) => knownValue(field, knowledge).from !== "live");
    return { end: "done", blocked, unread, changes: this.#record.changed };
  }

  /** The fields of the next PUT. Fields that were refused without a reason go last, one by one. */
  #batchOf(open: readonly FieldDifference[], { readOnly }: FoundInspection): readonly FieldDifference[] {
    const isSuspect = ({ field }: FieldDifference) => readOnly.some((known) => known.field === field);
    const trusted = open.filter((one) => !isSuspect(one));
    if (trusted.length > 0 && !this.#isSingly) return trusted;
    return (trusted.length > 0 ? trusted : open).slice(0, 1);
  }

  async #put(batch: readonly FieldDifference[], look: FoundInspection): Promise<ApplyResult | undefined> {
    const changes = batch.map(({ block: _, ...change }) => change);
    const ifMatch = this.#ifAny ?? look.etag;
    const openBefore = this.#record.sent;
    this.#record = noteSent(this.#record, changes, this.#deps.by);
    await this.#keep();
    try {
      const body = Object.fromEntries(changes.map(({ field, after }) => [field, after]));
      const entity = await putFields(this.#object, body, { ...this.#deps, ifMatch });
      this.#record = noteTaken(this.#record, changes, { fields: fieldsOf(entity), etag: etagOf(entity) });
      for (const change of changes) this.#taken.set(change.field, change);
      this.#ifAny = undefined;
      this.#isStale = false;
      await this.#keep();
      await this.#unlearn(changes, look);
      return undefined;
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      return await this.#onFailure(error, changes, { ...look, openBefore, isVersioned: ifMatch !== undefined });
    }
  }

  async #onFailure(
    error: ServiceError,
    changes: readonly FieldChange[],
    {
      openBefore,
      isReadable,
      isVersioned,
    }: { readonly openBefore: AppliedRecord["sent"]; readonly isReadable: boolean; readonly isVersioned: boolean },
  ): Promise<ApplyResult | undefined> {
    if (error.status === 201 && !isReadable) return await this.#onCreated(changes, openBefore);
    const failure = readPutFailure(error);
    // A request that surely did nothing says nothing about one before that got no answer.
    if (failure !== "in-doubt") this.#record = { ...this.#record, sent: openBefore };
    if (failure === "field") await this.#blame(error, changes);
    if (failure === "stale") this.#staleCount += 1;
    const mayRepeat =
      failure === "field" ||
      (failure === "stale" && isVersioned && this.#staleCount <= staleMax) ||
      (failure === "wants-etag" && !isVersioned && !isReadable);
    if (mayRepeat && failure !== "field" && !isReadable) {
      // A drive or site target cannot be read: `*` overlooks no change that could have been seen.
      this.#ifAny = "*";
      this.#isStale = failure === "stale";
    }
    await this.#keep();
    if (mayRepeat) return undefined;
    if (failure === "in-doubt" && error.kind === "contract" && isReadable && !this.#isReadAgain) {
      // A success of the wrong shape: read the object to see whether it worked.
      this.#isReadAgain = true;
      return undefined;
    }
    const told = { changes: this.#record.changed };
    if (failure === "missing") return { end: "missing", detail: error.message, ...told };
    if (failure === "stale" || failure === "wants-etag") return { end: "precondition", detail: error.message, ...told };
    const isSent = failure === "in-doubt" || openBefore.some(({ by }) => by === this.#deps.by);
    return { end: "failed", error, isSent, ...told };
  }

  /** There was no such drive or site target, and the service created one: a person must decide. */
  async #onCreated(changes: readonly FieldChange[], sent: AppliedRecord["sent"]): Promise<ApplyResult> {
    const createdAtMs = await this.#deps.memory.nowMs();
    const changed = lastOfEach([...this.#record.changed, ...changes]);
    // What was known was of an object that is no more.
    this.#record = { ...noRecord, by: this.#record.by, sent, changed, createdAtMs };
    await this.#keep();
    return { end: "missing", detail: describeCreated(createdAtMs), changes: changed };
  }

  /** Finds and remembers the refused field, or has the fields sent one by one. */
  async #blame({ answer }: ServiceError, changes: readonly FieldChange[]): Promise<void> {
    const names = changes.map((change) => change.field);
    const { field, isReadOnly, said } = findBlame(names, answer);
    const change = changes.find((one) => one.field === field);
    if (change === undefined) {
      this.#isSingly = true;
      return;
    }
    const { memory, place } = this.#deps;
    const atMs = await memory.nowMs();
    const { before, after: value } = change;
    this.#record = noteRefused(this.#record, change, { value, how: "refused", before, said, atMs });
    const sent = this.#record.sent.filter((one) => one.field !== change.field || one.after !== value);
    this.#record = { ...this.#record, sent };
    if (isReadOnly || changes.length === 1)
      await memory.learn(place.service, this.#object.kind, { field: change.field, said, atMs, isCertain: isReadOnly });
  }

  /** A field that was changed is not read-only: forgets that it was. */
  async #unlearn(changes: readonly FieldChange[], { readOnly }: FoundInspection): Promise<void> {
    const { memory, place, forgetBeforeMs } = this.#deps;
    for (const { field } of changes) {
      if (forgetBeforeMs !== undefined || readOnly.some((known) => known.field === field))
        await memory.unlearn(place.service, this.#object.kind, field);
    }
  }

  async #keep(): Promise<void> {
    const text = JSON.stringify(this.#record);
    if (text === this.#kept) return;
    await this.#deps.memory.remember(this.#deps.place, this.#object, this.#record);
    this.#kept = text;
  }
}

/** The declarable fields that an entity shows. Source: service-interface §2 */
function fieldsOf(entity: Readonly<Record<string, unknown>>): Readonly<Record<string, string | null>> {
  const names = ["name", "siteName", "siteId", "folderName", "folderId"];
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = entity[name];
      return typeof value === "string" || value === null ? [[name, value]] : [];
    }),
  );
}

/** Notes what an inspection shows: matching fields are applied, matching sent ones changed. */
function noteInspection(object: DeclaredObject, knowledge: Knowledge, record: AppliedRecord): AppliedRecord {
  const applied = { ...record.applied };
  const refused = { ...record.refused };
  const changed = [...record.changed];
  const sent: AppliedRecord["sent"][number][] = [];
  for (const { by, ...change } of record.sent) {
    const known = knownValue(change.field, knowledge);
    const isChanged = known.from === "live" && known.value === change.after;
    // A field that cannot be read stays open until the service answers, and so does one that still
    // shows the old value: the request may take effect later.
    const isOpen = known.from !== "live" || (known.value === change.before && by === record.by);
    if (isChanged) changed.push(change);
    else if (isOpen) sent.push({ ...change, by });
  }
  for (const [field, value] of Object.entries(object.fields)) {
    const known = knownValue(field, knowledge);
    if (known.from === "unknown" || known.value !== value) continue;
    applied[field] = value;
    delete refused[field];
  }
  return { ...record, applied, refused, sent, changed: lastOfEach(changed) };
}

/** Notes that these fields are sent now. */
function noteSent(record: AppliedRecord, changes: readonly FieldChange[], by: string): AppliedRecord {
  return { ...record, sent: lastOfEach([...record.sent, ...changes.map((change) => ({ ...change, by }))]) };
}

/** Notes a success: the values it shows count; where it shows none, the sent ones do. */
function noteTaken(
  { createdAtMs: _, ...record }: AppliedRecord,
  changes: readonly FieldChange[],
  { fields, etag }: { readonly fields: Readonly<Record<string, string | null>>; readonly etag: string | undefined },
): AppliedRecord {
  const taken = changes.filter(({ field, after }) => !(field in fields) || fields[field] === after);
  const altered = changes.flatMap((change) => {
    const shown = fields[change.field];
    const isOther = typeof shown === "string" && shown !== change.before && shown !== change.after;
    return isOther && change.isBeforeKnown ? [{ ...change, after: shown.slice(0, textMax) }] : [];
  });
  const applied = { ...record.applied };
  for (const { field, after } of taken) applied[field] = after;
  const cut = Object.entries(fields).map(([field, value]) => [field, value?.slice(0, textMax) ?? null] as const);
  // A field missing in the answer: drop the older value that would contradict it.
  const before = Object.entries(record.returned).filter(([field]) => !isAmong(field, changes));
  return {
    ...record,
    sent: record.sent.filter(({ field }) => !isAmong(field, changes)),
    applied,
    changed: lastOfEach([...record.changed, ...taken, ...altered]),
    returned: Object.fromEntries([...before, ...cut]),
    etag: etag ?? null,
  };
}

/** Notes that the service refused this field. */
function noteRefused(record: AppliedRecord, { field }: FieldChange, refusal: FieldRefusal): AppliedRecord {
  const { [field]: _applied, ...applied } = record.applied;
  const changed = record.changed.filter((change) => change.field !== field);
  return {
    ...record,
    applied: refusal.how === "ignored" ? applied : record.applied,
    changed: refusal.how === "ignored" ? changed : record.changed,
    refused: { ...record.refused, [field]: refusal },
  };
}

function isAmong(field: string, changes: readonly FieldChange[]): boolean {
  return changes.some((change) => change.field === field);
}

function lastOfEach<Change extends FieldChange>(changes: readonly Change[]): Change[] {
  return [...new Map(changes.map((change) => [change.field, change])).values()];
}

/**
 * What to do after a failed PUT. `stale`: the object changed since it was read (412).
 * `wants-etag`: a change must name the version (428). `not-done`: refused or not sent.
 */
export type PutFailure = "field" | "stale" | "wants-etag" | "missing" | "not-done" | "in-doubt";

/** Source: service-interface §7; 412, 422 and 428 are not documented and mean what HTTP says. */
export function readPutFailure({ status, kind, sent }: ServiceError): PutFailure {
  const known = status === undefined || kind === "contract" ? undefined : byStatus[status];
  if (known !== undefined) return known;
  if (sent === "no") return "not-done";
  return kind === "server" || kind === "answer-lost" || kind === "contract" || kind === "cancelled"
    ? "in-doubt"
    : "not-done";
}

/** Which field a 400 is about, as far as one answer says. */
interface Blame {
  /** undefined: send the fields one by one to find out. */
  readonly field: string | undefined;
  /** The service says that the field can never be changed, whatever the value and the object. */
  readonly isReadOnly: boolean;
  readonly said: string;
}

/**
 * Finds the refused field: the only one sent (Assumption A12), or the only one that the answer
 * names.
 */
export function findBlame(fields: readonly string[], answer: string | undefined): Blame {
  const said = answer ?? "";
  const named = fields.filter((field) => new RegExp(`(^|[^A-Za-z0-9_])${field}($|[^A-Za-z0-9_])`, "i").test(said));
  const only = fields.length === 1 ? fields : named;
  const field = only.length === 1 ? only[0] : undefined;
  const words = field !== undefined && named.includes(field) ? readOnlyWords : readOnlyFieldWords;
  return { field, isReadOnly: field !== undefined && words.test(said) && !momentWords.test(said), said };
}
