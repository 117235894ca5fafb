// What Redis remembers of declared objects: a record of each, 400 days after its last look, and the fields that a service was found not to
// take, for 7 days, so that a service that learned to take them is asked again. Used by declared/ through its port; decides nothing.
import * as z from "zod";
import { type DeclaredKind, type DeclaredObject, type ObjectOwner, objectName } from "../core/declared-object.ts";
import { parseVersioned } from "../core/newer-version.ts";
import { hashText } from "../core/stable-hash.ts";
import { type AppliedRecord, noRecord, parseAppliedRecord, type ReadOnlyField } from "../tasks/applied-record.ts";
import { redisTimeMs, type Store } from "./redis.ts";

const recordKeptMs = 400 * 86_400_000;
/** After this the service is tried again: it may have learned to take the field. */
const refusalKeptMs = 7 * 86_400_000;
const readOnlyFieldsMax = 100;

const readOnlySchema = z.object({
  v: z.literal(1),
  said: z.string(),
  atMs: z.int(),
  isCertain: z.boolean(),
});

/** The memory in Redis. */
export class DeclaredMemory {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** The time by which refusals age, milliseconds UTC by Redis. */
  nowMs(): Promise<number> {
    return redisTimeMs(this.#store);
  }

  /** The record of an object, without refusals that are too old to count. Looking at it keeps it for another 400 days. */
  async record(owner: ObjectOwner, object: DeclaredObject): Promise<AppliedRecord> {
    const text = await this.#store.redis.getex(this.#recordKey(owner, object), "PX", recordKeptMs);
    if (text === null) return noRecord;
    const record = parseAppliedRecord(JSON.parse(text));
    if (Object.keys(record.refused).length === 0) return record;
    const sinceMs = (await this.nowMs()) - refusalKeptMs;
    const refused = Object.entries(record.refused).filter(([, { atMs }]) => atMs > sinceMs);
    return { ...record, refused: Object.fromEntries(refused) };
  }

  /** Writes the record of an object. */
  async remember(owner: ObjectOwner, object: DeclaredObject, record: AppliedRecord): Promise<void> {
    await this.#store.redis.set(this.#recordKey(owner, object), JSON.stringify(record), "PX", recordKeptMs);
  }

  /** The fields of a kind that this service does not take, as far as that is known and not too old. */
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

  /** Notes that this service does not take a field of this kind. */
  async learn(service: string, kind: DeclaredKind, { field, ...what }: ReadOnlyField): Promise<void> {
    const { redis } = this.#store;
    const key = this.#readOnlyKey(service);
    // The fields come from the schema of policies, so there are a dozen at most; the limit is for what nobody thought of.
    if ((await redis.hlen(key)) >= readOnlyFieldsMax) return;
    await redis.hset(key, `${kind}.${field}`, JSON.stringify({ v: 1, ...what }));
    await redis.pexpire(key, refusalKeptMs);
  }

  /** Forgets that: the service took the field. */
  async unlearn(service: string, kind: DeclaredKind, field: string): Promise<void> {
    await this.#store.redis.hdel(this.#readOnlyKey(service), `${kind}.${field}`);
  }

  #recordKey({ service, repository }: ObjectOwner, object: DeclaredObject): string {
    return this.#store.key("declared", service, hashText(JSON.stringify(repository)), objectName(object));
  }

  #readOnlyKey(service: string): string {
    return this.#store.key("read-only", service);
  }
}
