// What Redis remembers for `apply`: a record of each declared object, for 400 days after its last
// use, and the fields that a service refuses, for 7 days.
import * as z from "zod";
import { type DeclaredKind, type DeclaredObject, type ObjectPlace, objectName } from "../core/declared-object.ts";
import { parseVersioned } from "../core/newer-version.ts";
import { hashText } from "../core/stable-hash.ts";
import { type AppliedRecord, noRecord, parseAppliedRecord, type ReadOnlyField } from "../model/applied-record.ts";
import { redisTimeMs, type Store } from "./redis.ts";
import { asNothing, asText, createScript } from "./script.ts";

const holdScript = createScript("lease/acquire", asText);
const letGoScript = createScript("lease/release", asNothing);

const recordKeptMs = 400 * 86_400_000;
/** After this time the worker tries a refused field again: the service may take it by then. */
const refusalKeptMs = 7 * 86_400_000;
const readOnlyFieldsMax = 100;
/** A caller that died holds its object for so long: longer than a round of a slow service. */
const heldMs = 900_000;

const readOnlySchema = z.object({
  v: z.literal(1),
  said: z.string(),
  atMs: z.int(),
  isCertain: z.boolean(),
});

/** The memory of declared objects. */
export class DeclaredMemory {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** The time of Redis by which refusals age, milliseconds UTC. */
  nowMs(): Promise<number> {
    return redisTimeMs(this.#store);
  }

  /**
   * Reads the record of an object, without refusals that are too old, and keeps it for 400 days.
   */
  async record(place: ObjectPlace, object: DeclaredObject): Promise<AppliedRecord> {
    const text = await this.#store.redis.getex(this.#recordKey(place, object), "PX", recordKeptMs);
    if (text === null) return noRecord;
    const record = parseAppliedRecord(JSON.parse(text));
    if (Object.keys(record.refused).length === 0) return record;
    const sinceMs = (await this.nowMs()) - refusalKeptMs;
    const refused = Object.entries(record.refused).filter(([, { atMs }]) => atMs > sinceMs);
    return { ...record, refused: Object.fromEntries(refused) };
  }

  /** Writes the record of an object. */
  async remember(place: ObjectPlace, object: DeclaredObject, record: AppliedRecord): Promise<void> {
    await this.#store.redis.set(this.#recordKey(place, object), JSON.stringify(record), "PX", recordKeptMs);
  }

  /** Holds an object for one caller, or goes on holding it; answers its holder. */
  async hold(place: ObjectPlace, object: DeclaredObject, by: string): Promise<string> {
    return (await holdScript(this.#store, [this.#key("applying", place, object)], [by, heldMs])) || by;
  }

  /** Lets an object go, if this caller holds it. */
  async letGo(place: ObjectPlace, object: DeclaredObject, by: string): Promise<void> {
    await letGoScript(this.#store, [this.#key("applying", place, object)], [by]);
  }

  /** Returns the fields of a kind that this service has refused lately. */
  async readOnly(service: string, kind: DeclaredKind): Promise<readonly ReadOnlyField[]> {
    const fields = await this.#store.redis.hgetall(this.#readOnlyKey(service));
    const found = Object.entries(fields).filter(([name]) => name.startsWith(`${kind}.`));
    if (found.length === 0) return [];
    const sinceMs = (await this.nowMs()) - refusalKeptMs;
    return found
      .map(([name, text]) => {
        const { said, atMs, isCertain } = parseVersioned("read-only field", readOnlySchema, JSON.parse(text));
        return { field: name.slice(kind.length + 1), said, atMs, isCertain };
      })
      .filter(({ atMs }) => atMs > sinceMs);
  }

  /** Notes that this service refuses a field of this kind. */
  async learn(service: string, kind: DeclaredKind, { field, ...what }: ReadOnlyField): Promise<void> {
    const { redis } = this.#store;
    const key = this.#readOnlyKey(service);
    // The policy schema allows a dozen fields; the limit guards against mistakes.
    if ((await redis.hlen(key)) >= readOnlyFieldsMax) return;
    await redis.hset(key, `${kind}.${field}`, JSON.stringify({ v: 1, ...what }));
    await redis.pexpire(key, refusalKeptMs);
  }

  /** Drops the refusal: the service took the field. */
  async unlearn(service: string, kind: DeclaredKind, field: string): Promise<void> {
    await this.#store.redis.hdel(this.#readOnlyKey(service), `${kind}.${field}`);
  }

  #recordKey(place: ObjectPlace, object: DeclaredObject): string {
    return this.#key("declared", place, object);
  }

  #key(what: "declared" | "applying", { service, repository }: ObjectPlace, object: DeclaredObject): string {
    return this.#store.key(what, service, hashText(JSON.stringify(repository)), objectName(object));
  }

  #readOnlyKey(service: string): string {
    return this.#store.key("read-only", service);
  }
}
