// The last good policy set in Redis, and which set each process runs: so commands need no policy
// file, and can tell whether a new one is in force everywhere. app/set-keeper.ts writes both.
import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import * as z from "zod";
import { fromPlainSet, type PlainSet, toPlainSet } from "../config/plain-set.ts";
import type { PolicySet } from "../config/policy-set.ts";
import { NewerVersionError, parseVersioned } from "../core/newer-version.ts";
import { aliveForMs, redisTimeMs, type Store } from "./redis.ts";
import { asFlag, createScript } from "./script.ts";

/** 10,000 policies take 10 MB. */
const bytesMax = 512 * 1024 * 1024;

const keptSchema = z.object({
  v: z.literal(1),
  hash: z.string(),
  atMs: z.int(),
  by: z.string(),
});

/** Which set is kept. `by`: the host and process that wrote it, `host/123`. */
export type KeptNote = Readonly<z.infer<typeof keptSchema>>;

/** A kept set: no secret stands in it, so it is not the one to start requests with. */
export interface KeptSet extends KeptNote {
  readonly set: PolicySet;
}

const replicaSchema = z.object({
  v: z.literal(1),
  /** `host/123`. */
  where: z.string(),
  roles: z.array(z.string()),
  version: z.string(),
  hash: z.string(),
  /** The file or folder that it follows; null: none. */
  path: z.string().nullable(),
  sinceMs: z.int(),
  rejected: z.object({ sinceMs: z.int(), problems: z.int(), where: z.string(), message: z.string() }).nullable(),
});

/** What one process runs since when, and the newer files that it rejected. */
export type Replica = Readonly<z.infer<typeof replicaSchema>>;

const noteScript = createScript("note-replica", asFlag);

/** Keeps a set in place of the one before. The same set keeps its instant: it is no newer. */
export async function keepPolicySet(store: Store, set: PolicySet, by: string): Promise<void> {
  const data = await promisify(gzip)(JSON.stringify(toPlainSet(set)), { level: 1 });
  const before = await readKeptNote(store).catch((error: unknown) => {
    if (error instanceof NewerVersionError) return undefined;
    throw error;
  });
  const atMs = before?.hash === set.contentHash ? before.atMs : await redisTimeMs(store);
  const note: KeptNote = { v: 1, hash: set.contentHash, atMs, by };
  await store.redis.hset(keptKey(store), "note", JSON.stringify(note), "set", data);
}

/** Which set is kept; undefined: none, since no process has run under this prefix. */
export async function readKeptNote(store: Store): Promise<KeptNote | undefined> {
  const text = await store.redis.hget(keptKey(store), "note");
  return text === null ? undefined : parseVersioned("kept policy set", keptSchema, JSON.parse(text));
}

/** Reads the kept set. @throws NewerVersionError when a newer Syncline wrote it. */
export async function readKeptSet(store: Store): Promise<KeptSet | undefined> {
  const [text, data] = await store.redis.hmgetBuffer(keptKey(store), "note", "set");
  if (text == null || data == null) return undefined;
  const note = parseVersioned("kept policy set", keptSchema, JSON.parse(text.toString()));
  const plain: PlainSet = JSON.parse((await promisify(gunzip)(data, { maxOutputLength: bytesMax })).toString());
  return { ...note, set: fromPlainSet(plain) };
}

/** Notes what a process runs. Answers whether a set is kept. */
export function noteReplica(store: Store, process: string, replica: Replica): Promise<boolean> {
  const keys = [store.key("replicas"), store.key("processes"), keptKey(store)];
  return noteScript(store, keys, [process, JSON.stringify(replica)]);
}

/** What the live processes run, ordered by place. */
export async function readReplicas(store: Store): Promise<readonly Replica[]> {
  const sinceMs = (await redisTimeMs(store)) - aliveForMs;
  const [alive, noted] = await Promise.all([
    store.redis.zrangebyscore(store.key("processes"), sinceMs, "+inf"),
    store.redis.hgetall(store.key("replicas")),
  ]);
  const texts = alive.flatMap((process) => noted[process] ?? []);
  const replicas = texts.map((text) => parseVersioned("replica", replicaSchema, JSON.parse(text)));
  return replicas.toSorted((a, b) => (a.where < b.where ? -1 : 1));
}

function keptKey({ key }: Pick<Store, "key">): string {
  return key("policy-set");
}
