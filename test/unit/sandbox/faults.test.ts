// Fault texts, and which requests a fault strikes. Pure.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { UsageError } from "../../../src/core/errors.ts";
import { createChance } from "../../../src/sandbox/chance.ts";
import { type Fault, FaultPlan, faultKinds, parseFault } from "../../../src/sandbox/faults.ts";

describe("parseFault", () => {
  it.each([
    ["reset", { kind: "reset" }],
    ["lost-answer,op=RunSyncJob,key=42", { kind: "lost-answer", operation: "RunSyncJob", key: "42" }],
    [
      "latency,ms=50,every=3,after=1,first=9,times=2",
      { kind: "latency", delayMs: 50, every: 3, after: 1, first: 9, times: 2 },
    ],
    [" 429 , retryAfter = 0 , rate = 0.25 ", { kind: "429", retryAfterSeconds: 0, rate: 0.25 }],
    ["drip,ms=5,rate=1", { kind: "drip", delayMs: 5, rate: 1 }],
  ])("reads %s", (text, fault) => {
    expect(parseFault(text)).toEqual(fault);
  });

  it.each([
    ["", "is not a kind of fault. Allowed: latency, 401"],
    ["lost-anser", 'did you mean "lost-answer"?'],
    ["500", 'did you mean "500-before"?'],
    ["reset,op=RunSyncJobs", 'did you mean "RunSyncJob"?'],
    ["reset,evry=2", '"evry" is not a setting of a fault; did you mean "every"?'],
    ["reset,every", "write every=VALUE"],
    ["reset,every=", "write every=VALUE"],
    ["reset,key=a=b", "write key=VALUE"],
    ["reset,every=0", 'every is "0"; it must be a whole number from 1'],
    ["reset,times=1.5", 'times is "1.5"'],
    ["reset,every=2,every=3", "every is given twice"],
    ["reset,ms=5", "ms goes with latency and drip only"],
    ["401,retryAfter=5", "retryAfter goes with 429 and 503 only"],
    ["reset,rate=0", 'rate is "0"; it must be above 0 and at most 1'],
    ["reset,rate=1.01", 'rate is "1.01"'],
    ["reset,rate=.", 'rate is "."'],
  ])("refuses %s", (text, message) => {
    expect(() => parseFault(text)).toThrow(UsageError);
    expect(() => parseFault(text)).toThrow(message);
  });

  it("gives a fault or a UsageError for any text", () => {
    const text = fc.oneof(
      fc.string(),
      fc.tuple(fc.constantFrom(...faultKinds), fc.string()).map(([kind, rest]) => `${kind},${rest}`),
      fc
        .tuple(fc.constantFrom("op", "key", "every", "rate", "ms"), fc.string())
        .map(([name, value]) => `drip,${name}=${value}`),
    );
    fc.assert(
      fc.property(text, (any) => {
        try {
          expect(faultKinds).toContain(parseFault(any).kind);
        } catch (error) {
          expect(error).toBeInstanceOf(UsageError);
        }
      }),
    );
  });
});

describe("FaultPlan", () => {
  const struckOf = (fault: Fault, requests = 10) => {
    const plan = new FaultPlan([fault], createChance(1));
    const numbers = Array.from({ length: requests }, (_, index) => index + 1);
    return numbers.filter(() => plan.decide("RunSyncJob", "42").fault !== undefined);
  };

  it.each([
    ["reset", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]],
    ["reset,every=3", [3, 6, 9]],
    ["reset,first=2", [1, 2]],
    ["reset,after=7", [8, 9, 10]],
    ["reset,times=2,every=4", [4, 8]],
    ["reset,after=2,first=4,every=2", [4, 6]],
    ["reset,op=RunSyncJob,key=42,times=1", [1]],
    ["reset,op=GetTriggers", []],
    ["reset,key=43", []],
  ])("%s strikes the requests %o", (text, numbers) => {
    expect(struckOf(parseFault(text))).toEqual(numbers);
  });

  it("strikes by chance about as often as told, and always the same requests", () => {
    const fault = parseFault("reset,rate=0.2");
    const struck = struckOf(fault, 1_000);
    expect(struck.length).toBeGreaterThan(150);
    expect(struck.length).toBeLessThan(250);
    expect(struckOf(fault, 1_000)).toEqual(struck);
  });

  it("adds latencies up; the first other fault wins, and only its times are spent", () => {
    const texts = ["latency,ms=10", "reset,first=1", "latency", "401,times=1"];
    const plan = new FaultPlan(texts.map(parseFault), createChance(1));
    const decide = () => {
      const { delayMs, fault } = plan.decide("GetTriggers", "");
      return [delayMs, fault?.kind];
    };
    expect([decide(), decide(), decide()]).toEqual([
      [510, "reset"],
      [510, "401"],
      [510, undefined],
    ]);
    expect(plan.counts().map((line) => line.struck)).toEqual([3, 1, 3, 1]);
  });
});
