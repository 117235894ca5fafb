// Brings one object to what is declared: look, PUT what differs, look again, until nothing differs that can be changed. Called by work/apply.ts and
// `syncline apply`. A PUT may be repeated (Assumption A9), so an interrupted one is: what went out without an answer is in the record before it goes out.
//
//   look ─▶ nothing differs ─▶ done          PUT ─▶ taken ─▶ look (the service may have kept the old value)
//     └──▶ PUT what differs ─┘                 ├─▶ 400: the field is named or found one by one; the others go on
//                                              ├─▶ 412, 428: the version that was read, again, at most twice
//                                              └─▶ no answer: the caller tries again later, and looks first
import type { DeclaredObject } from "../core/declared-object.ts";
import { ServiceError } from "../service/client.ts";
import { type AppliedRecord, type FieldChange, noRecord } from "../tasks/applied-record.ts";
import type { Difference } from "./differences.ts";
import { etagOf, putFields } from "./live-object.ts";
import { type Look, lookAt } from "./look.ts";
import { noteRefused, noteSent, noteTaken, settleLook, takeOver, withoutSent } from "./object-record.ts";
import type { ApplyParts } from "./ports.ts";
import { findBlame, readPutFailure } from "./put-refusal.ts";

/** Every round settles at least one of four fields, or is one of two repetitions after a 412, or the first of sending one by one. */
const roundsMax = 16;
const staleMax = 2;

/** How applying an object ended. `changes`: what this caller changed, also before it was interrupted. `blocked`: what differs and was not taken. */
export type Applied = { readonly changes: readonly FieldChange[] } & (
  | { readonly end: "done"; readonly blocked: readonly Difference[] }
  | { readonly end: "missing" | "precondition"; readonly detail: string }
  | { readonly end: "busy"; readonly holder: string }
  | { readonly end: "failed"; readonly error: ServiceError; readonly isSent: boolean }
);

type Found = Extract<Look, { readonly state: "found" }>;

/** Applies one object. Failures of the service are answers here; only a bug, or a Redis out of reach, throws. */
export async function applyObject(object: DeclaredObject, parts: ApplyParts): Promise<Applied> {
  const run = new ApplyRun(object, parts);
  try {
    return await run.toTheEnd();
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return { end: "failed", error, isSent: false, changes: run.changes() };
  }
}

class ApplyRun {
  readonly #object: DeclaredObject;
  readonly #parts: ApplyParts;
  /** What was answered with a success in this run, by field. */
  readonly #taken = new Map<string, FieldChange>();
  #record: AppliedRecord = noRecord;
  #kept = "";
  /** Nobody knows which of several fields a 400 was about. */
  #isSingly = false;
  #staleCount = 0;
  #isStale = false;
  #isReadAgain = false;
  /** Sent as If-Match instead of a version, for what cannot be read. */
  #ifAny: "*" | undefined;

  constructor(object: DeclaredObject, parts: ApplyParts) {
    this.#object = object;
    this.#parts = parts;
  }

  /** What this caller changed so far. */
  changes(): readonly FieldChange[] {
    return this.#record.by === this.#parts.by ? this.#record.changed : [];
  }

  /** @throws ServiceError when the object cannot be read. */
  async toTheEnd(): Promise<Applied> {
    for (let round = 1; round <= roundsMax; round += 1) {
      const look = await lookAt(this.#object, this.#parts, {
        isFresh: round > 1,
        isStale: this.#isStale,
      });
      this.#record = takeOver(look.record, this.#parts.by);
      this.#kept = JSON.stringify(look.record);
      if (look.state === "missing") return { end: "missing", detail: look.detail, changes: this.changes() };
      this.#record = settleLook(this.#object, look.knowledge, this.#record);
      const open = await this.#openOf(look);
      if (open.length === 0) return await this.#done(look);
      const holder = look.syncJobId === undefined ? undefined : await this.#parts.holder(look.syncJobId);
      if (holder !== undefined) {
        await this.#keep();
        return { end: "busy", holder, changes: this.changes() };
      }
      const ended = await this.#put(this.#batchOf(open, look), look);
      if (ended !== undefined) return ended;
    }
    throw new Error(`${roundsMax} rounds did not bring an object to an end`);
  }

  /** What may still be sent. What was answered with a success and is not there is noted as ignored. */
  async #openOf({ differences }: Found): Promise<readonly Difference[]> {
    for (const { field, before, after, block } of differences) {
      const taken = this.#taken.get(field);
      // Another value than before the change: somebody else was at it in between, and the next slot will see.
      if (taken === undefined || block !== undefined || (taken.isBeforeKnown && taken.before !== before)) continue;
      const atMs = await this.#parts.memory.nowMs();
      this.#record = noteRefused(this.#record, taken, { value: after, how: "ignored", before, said: "", atMs });
    }
    return differences.filter(({ field, block }) => block === undefined && !this.#taken.has(field));
  }

  async #done({ differences }: Found): Promise<Applied> {
    await this.#keep();
    const blocked = differences.map((one) => ({ ...one, block: one.block ?? { how: "ignored", said: "" } }) as const);
    return { end: "done", blocked, changes: this.changes() };
  }

  /** What goes out together: what was refused before without a word goes alone, after everything else. */
  #batchOf(open: readonly Difference[], { readOnly }: Found): readonly Difference[] {
    const isSuspect = ({ field }: Difference) => readOnly.some((known) => known.field === field);
    const trusted = open.filter((one) => !isSuspect(one));
    if (trusted.length > 0 && !this.#isSingly) return trusted;
    return (trusted.length > 0 ? trusted : open).slice(0, 1);
  }

  async #put(batch: readonly Difference[], look: Found): Promise<Applied | undefined> {
    const changes = batch.map(({ block: _, ...change }) => change);
    const ifMatch = this.#ifAny ?? look.etag;
    this.#record = noteSent(this.#record, changes);
    await this.#keep();
    try {
      const body = Object.fromEntries(changes.map(({ field, after }) => [field, after]));
      const entity = await putFields(this.#object, body, { ...this.#parts, ifMatch });
      this.#record = noteTaken(this.#record, changes, { fields: fieldsOf(entity), etag: etagOf(entity) });
      for (const change of changes) this.#taken.set(change.field, change);
      this.#ifAny = undefined;
      this.#isStale = false;
      await this.#keep();
      await this.#unlearn(changes, look);
      return undefined;
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      return await this.#onFailure(error, changes, { ...look, isVersioned: ifMatch !== undefined });
    }
  }

  async #onFailure(
    error: ServiceError,
    changes: readonly FieldChange[],
    { isReadable, isVersioned }: { readonly isReadable: boolean; readonly isVersioned: boolean },
  ): Promise<Applied | undefined> {
    const failure = readPutFailure(error);
    if (failure !== "unknown") this.#record = withoutSent(this.#record, changes);
    if (failure === "field") await this.#blame(error, changes);
    if (failure === "changed") this.#staleCount += 1;
    const mayRepeat =
      failure === "field" ||
      (failure === "changed" && isVersioned && this.#staleCount <= staleMax) ||
      (failure === "wants-etag" && !isVersioned && !isReadable);
    if (mayRepeat && failure !== "field" && !isReadable) {
      // There is no version to read for a target: "whatever it is now" overlooks nothing that could have been seen.
      this.#ifAny = "*";
      this.#isStale = failure === "changed";
    }
    await this.#keep();
    if (mayRepeat) return undefined;
    if (failure === "unknown" && error.kind === "contract" && isReadable && !this.#isReadAgain) {
      // A success of the wrong shape: whether it was one can be read.
      this.#isReadAgain = true;
      return undefined;
    }
    const told = { changes: this.changes() };
    if (failure === "missing") return { end: "missing", detail: error.message, ...told };
    if (failure === "changed" || failure === "wants-etag")
      return { end: "precondition", detail: error.message, ...told };
    return { end: "failed", error, isSent: failure === "unknown", ...told };
  }

  /** Finds the field that was refused, and remembers it; or has them sent one by one. */
  async #blame({ answer }: ServiceError, changes: readonly FieldChange[]): Promise<void> {
    const { field, isReadOnly, said } = findBlame(
      changes.map((change) => change.field),
      answer,
    );
    const change = changes.find((one) => one.field === field);
    if (change === undefined) {
      this.#isSingly = true;
      return;
    }
    const { memory, owner } = this.#parts;
    const atMs = await memory.nowMs();
    const { before, after: value } = change;
    this.#record = noteRefused(this.#record, change, { value, how: "refused", before, said, atMs });
    if (isReadOnly || changes.length === 1)
      await memory.learn(owner.service, this.#object.kind, { field: change.field, said, atMs, isCertain: isReadOnly });
  }

  /** What was taken is not read-only, whatever was thought of it. */
  async #unlearn(changes: readonly FieldChange[], { readOnly }: Found): Promise<void> {
    const { memory, owner, forgetBeforeMs } = this.#parts;
    for (const { field } of changes) {
      if (forgetBeforeMs !== undefined || readOnly.some((known) => known.field === field))
        await memory.unlearn(owner.service, this.#object.kind, field);
    }
  }

  async #keep(): Promise<void> {
    const text = JSON.stringify(this.#record);
    if (text === this.#kept) return;
    await this.#parts.memory.remember(this.#parts.owner, this.#object, this.#record);
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
