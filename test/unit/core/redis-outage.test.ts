import { describe, expect, it } from "vitest";
import { isRedisOutage } from "../../../src/core/redis-outage.ts";

const reply = (message: string) => Object.assign(new Error(message), { name: "ReplyError" });
const wrapped = (inner: string) =>
  `ERR Error running script (call to f_0a1b): @user_script:7: @user_script: 7: ${inner}`;

describe("what Redis answers", () => {
  it.each([
    "READONLY You can't write against a read only replica.",
    "READONLY You can't write against a read only replica. script: 0a1b, on @user_script:1.",
    "LOADING Redis is loading the dataset in memory",
    "MASTERDOWN Link with MASTER is down",
    "CLUSTERDOWN The cluster is down",
    "OOM command not allowed when used memory > 'maxmemory'.",
    "NOREPLICAS Not enough good replicas to write.",
    "MISCONF Redis is configured to save RDB snapshots",
    "TRYAGAIN Multiple keys request during rehashing of slot",
    "BUSY Redis is busy running a script.",
    "NOAUTH Authentication required.",
    "NOPERM User syncline has no permissions to run the 'evalsha' command",
    "ERR max number of clients reached",
    "ERR WAIT cannot be used with replica instances. Please also note that writable replicas are different.",
    wrapped("-READONLY You can't write against a read only replica."),
    wrapped("-OOM command not allowed when used memory > 'maxmemory'."),
  ])("is about Redis: %s", (message) => {
    expect(isRedisOutage(reply(message))).toBe(true);
  });

  it.each([
    "WRONGTYPE Operation against a key holding the wrong kind of value",
    "WRONGTYPE Operation against a key holding the wrong kind of value script: 0a1b, on @user_script:3.",
    "ERR value is not an integer or out of range",
    "ERR user_script:4: attempt to compare nil with number script: 0a1b",
    "CROSSSLOT Keys in request don't hash to the same slot",
    "ERR unknown command 'EVALSHA'",
    "A reply that no table names",
    wrapped("WRONGTYPE Operation against a key holding the wrong kind of value"),
  ])("is a mistake: %s", (message) => {
    expect(isRedisOutage(reply(message))).toBe(false);
  });

  it("and what its client says of the way is about Redis; a thrown error is not", () => {
    const lost = Object.assign(new Error("Reached the max retries per request limit"), {
      name: "MaxRetriesPerRequestError",
    });
    const refused = Object.assign(new Error("connect ECONNREFUSED"), { syscall: "connect", code: "ECONNREFUSED" });
    for (const error of [lost, refused, new Error("Command timed out"), new Error("Connection is closed.")])
      expect(isRedisOutage(error)).toBe(true);
    for (const error of [new TypeError("undefined is not a function"), "READONLY"])
      expect(isRedisOutage(error)).toBe(false);
  });
});
