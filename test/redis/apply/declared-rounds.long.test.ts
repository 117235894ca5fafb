// 500 seeded rounds against a service with a mind of its own: in the end the declared state is
// live, no field was touched that was not declared, and applying once more sends nothing.
import { afterAll, describe, expect, it } from "vitest";
import { type ApplyResult, applyObject } from "../../../src/apply/apply-object.ts";
import { MaskCache } from "../../../src/apply/mask-cache.ts";
import { type DeclaredKind, type DeclaredObject, objectName } from "../../../src/core/declared-object.ts";
import { SyncService, staticToken } from "../../../src/service/client.ts";
import { DeclaredMemory } from "../../../src/store/declared-memory.ts";
import { createRandom } from "../../chaos/seeded-random.ts";
import { DeclaredService, type ObjectNature, type ServiceNature } from "../../support/declared-service.ts";
import { redisForTest, storeForTest } from "../../support/redis.ts";

const rounds = 500;
/** Luck runs out after so many requests of a round, so that each has an end. */
const badRequestsMax = 25;
const attemptsMax = 60;

const redis = redisForTest();
const fake = new DeclaredService();

const store = await storeForTest(redis);
const service = new SyncService({ baseUrl: await fake.start(), token: staticToken("secret"), retries: 0 });
afterAll(async () => {
  service.close();
  fake.stop();
});

const fieldsOfKind: Readonly<Record<DeclaredKind, readonly string[]>> = {
  syncJob: ["name"],
  docMask: ["name"],
  driveTarget: ["siteName", "siteId", "folderName", "folderId"],
  siteTarget: ["siteName", "siteId", "folderName", "folderId"],
};
const kinds: readonly DeclaredKind[] = ["syncJob", "docMask", "driveTarget", "siteTarget"];

interface Round {
  readonly declared: readonly DeclaredObject[];
  readonly natures: Readonly<Record<string, ObjectNature>>;
  readonly nature: ServiceNature;
}

function makeRound(seed: number): Round {
  const random = createRandom(seed);
  const natures: Record<string, ObjectNature> = {};
  const declared: DeclaredObject[] = [];
  for (let id = 1; id <= random.integer(1, 5); id += 1) {
    const kind = random.pick(kinds);
    const all = fieldsOfKind[kind];
    const live = Object.fromEntries(all.map((field) => [field, random.chance(0.1) ? null : `old ${field}`]));
    const wanted = all.filter(() => random.chance(0.6));
    const fields = (wanted.length === 0 ? all.slice(0, 1) : wanted).map((field) => [
      field,
      random.chance(0.3) ? `old ${field}` : `new ${field} ${seed}`,
    ]);
    const etag = random.weighted({ none: 6, body: 2, header: 1, hidden: 1 });
    const answers = random.weighted({ whole: 4, cut: 1, "204": 1 });
    declared.push({ kind, id, fields: Object.fromEntries(fields) });
    // A list shows the ETags of its items in the body or not at all.
    const shown = kind === "docMask" && etag === "header" ? "body" : etag;
    natures[`${kind}-${id}`] = { fields: live, answers, ...(shown === "none" ? {} : { etag: shown }) };
  }
  const [readOnly, ignored]: [Record<string, "named" | "unnamed" | "silent">, string[]] = [{}, []];
  for (const kind of kinds) {
    for (const field of fieldsOfKind[kind]) {
      if (random.chance(0.15)) readOnly[`${kind}.${field}`] = random.pick(["named", "unnamed", "silent"]);
      else if (random.chance(0.05)) ignored.push(`${kind}.${field}`);
    }
  }
  let bad = 0;
  const fate = () => {
    bad += 1;
    if (bad > badRequestsMax) return "answered";
    return random.weighted({
      answered: 12,
      "lost-before": 2,
      "lost-after": 3,
      "500-before": 1,
      "500-after": 1,
      busy: 1,
    });
  };
  return { declared, natures, nature: { readOnly, ignored, fate } };
}

let calls = 0;

/** Applies until the service has said its last word, as a task does over its attempts. */
async function applyUntil(object: DeclaredObject, seed: number): Promise<ApplyResult> {
  calls += 1;
  const parts = {
    place: { service: `round-${seed}`, repository: null },
    service,
    masks: new MaskCache(),
    memory: new DeclaredMemory(store),
    signal: new AbortController().signal,
    sinceMs: Number.POSITIVE_INFINITY,
    by: `call-${calls}`,
    holder: async () => undefined,
  };
  for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
    const applied = await applyObject(object, parts);
    if (applied.end !== "failed") return applied;
    expect(applied.error.kind, applied.error.message).toMatch(/^(server|answer-lost|throttled|unreachable)$/);
  }
  throw new Error("no end");
}

function isBlocked({ nature }: Round, kind: DeclaredKind, field: string): boolean {
  const name = `${kind}.${field}`;
  return nature.readOnly?.[name] !== undefined || nature.ignored?.includes(name) === true;
}

function checkRound(round: Round, results: ReadonlyMap<string, ApplyResult>): void {
  for (const object of round.declared) {
    const name = objectName(object);
    const nature = round.natures[name];
    const before = nature?.fields ?? {};
    const applied = results.get(name);
    const after = fake.fieldsOf(name);
    const isReadable = object.kind === "syncJob" || object.kind === "docMask";
    const open = Object.keys(object.fields).filter((field) => object.fields[field] !== before[field]);
    const hasHiddenVersion = nature?.etag === "hidden" && isReadable && open.length > 0;
    expect(applied?.end).toBe(hasHiddenVersion ? "precondition" : "done");
    for (const [field, value] of Object.entries(after)) {
      const wanted = object.fields[field];
      const isTaken = wanted !== undefined && !hasHiddenVersion && !isBlocked(round, object.kind, field);
      expect([name, field, value]).toEqual([name, field, isTaken ? wanted : before[field]]);
    }
    if (applied?.end !== "done") continue;
    // What a target ignores shows only in the entity that its PUT answers.
    const seen = (field: string) =>
      isReadable || nature?.answers === "whole" || round.nature.readOnly?.[`${object.kind}.${field}`];
    const unreached = Object.keys(object.fields).filter(
      (field) => isBlocked(round, object.kind, field) && seen(field) && (open.includes(field) || !isReadable),
    );
    const told = applied.blocked.map(({ field }) => field);
    for (const field of open) if (unreached.includes(field)) expect(told).toContain(field);
    for (const field of told) expect(isBlocked(round, object.kind, field)).toBe(true);
  }
  for (const { object, fields } of fake.puts) {
    const declared = round.declared.find((one) => objectName(one) === object);
    for (const field of fields) expect(Object.keys(declared?.fields ?? {})).toContain(field);
  }
}

describe("declared state", () => {
  it(`is live after each of ${rounds} rounds, touches nothing else, repeats nothing`, async () => {
    let [puts, drifts] = [0, 0];
    for (let seed = 1; seed <= rounds; seed += 1) {
      const round = makeRound(seed);
      fake.set(round.natures, round.nature);
      const results = new Map<string, ApplyResult>();
      for (const object of round.declared) results.set(objectName(object), await applyUntil(object, seed));
      try {
        checkRound(round, results);
        puts += fake.puts.length;
        drifts += await checkAgain(round, seed);
      } catch (error) {
        throw new Error(`seed ${seed}: ${JSON.stringify([round, fake.puts])}`, { cause: error });
      }
    }
    expect(puts).toBeGreaterThan(rounds);
    expect(drifts).toBeGreaterThan(100);
  });
});

/**
 * Applies again: nothing is sent. Then somebody changes a field by hand: it is mended and told,
 * once.
 */
async function checkAgain(round: Round, seed: number): Promise<number> {
  const { fate: _, ...calm } = round.nature;
  fake.become(calm);
  let drifts = 0;
  for (const object of round.declared) {
    const name = objectName(object);
    const isReadable = object.kind === "syncJob" || object.kind === "docMask";
    if (round.natures[name]?.etag === "hidden" && isReadable) continue;
    const before = fake.puts.length;
    expect(await applyUntil(object, seed)).toMatchObject({ end: "done", changes: [] });
    expect(fake.puts.length).toBe(before);
    const field = Object.keys(object.fields).find((one) => !isBlocked(round, object.kind, one));
    if (field === undefined || !isReadable) continue;
    fake.changeByHand(name, field, "changed by hand");
    expect(await applyUntil(object, seed)).toMatchObject({
      end: "done",
      changes: [{ field, before: "changed by hand", after: object.fields[field], isDrift: true }],
    });
    expect(fake.puts.length).toBe(before + 1);
    expect(await applyUntil(object, seed)).toMatchObject({ end: "done", changes: [] });
    drifts += 1;
  }
  return drifts;
}
