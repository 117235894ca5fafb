import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { NewerVersionError } from "../../../src/core/newer-version.ts";
import { parseAppliedRecord } from "../../../src/model/applied-record.ts";
import { parseChange } from "../../../src/model/change.ts";
import { parseDeadlineState } from "../../../src/model/deadline.ts";
import { parseFeedWalk } from "../../../src/model/feed.ts";
import { parseDelivery } from "../../../src/model/notice.ts";
import { parseOutcome } from "../../../src/model/outcome.ts";
import { parsePause } from "../../../src/model/pause.ts";
import { readSlotRecord } from "../../../src/model/slot-record.ts";
import { parseTask } from "../../../src/model/task.ts";
import { parsePolicyAlert, parseServiceAlert } from "../../../src/notify/alert-state.ts";
import { parseWaiting } from "../../../src/notify/mute.ts";
import { parseBaseline } from "../../../src/tasks/baseline.ts";

// What version 1 wrote must be read by every later version. These files never change; a new version
// gets a folder of its own. The journal entry of version 1 is read in
// test/redis/store/start-journal.test.ts, since Redis holds it as a hash.
const folder = join(import.meta.dirname, "v1");
const golden = (name: string): Record<string, unknown> =>
  JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8"));

const readers: Readonly<Record<string, (value: unknown) => unknown>> = {
  task: parseTask,
  deletion: parseTask,
  "feed-walk": parseFeedWalk,
  "slot-record": readSlotRecord,
  pause: parsePause,
  outcome: parseOutcome,
  "applied-record": parseAppliedRecord,
  "outcome-with-confidence": parseOutcome,
  "outcome-of-poll": parseOutcome,
  "outcome-with-conflicts": parseOutcome,
  delivery: parseDelivery,
  "delivery-with-link": parseDelivery,
  change: parseChange,
  "policy-alert-state": (value) => parsePolicyAlert(JSON.stringify(value)),
  "service-alert-state": (value) => parseServiceAlert(JSON.stringify(value)),
  "deadline-state": (value) => parseDeadlineState(JSON.stringify(value)),
  "waiting-notice": (value) => parseWaiting(JSON.stringify(value)),
  baseline: (value) => parseBaseline(JSON.stringify(value)),
  "baseline-with-counts": (value) => parseBaseline(JSON.stringify(value)),
};

describe("what version 1 wrote", () => {
  it("has a reader for every golden file", () => {
    const files = readdirSync(folder).map((file) => file.replace(".json", ""));
    expect(files.sort()).toEqual([...Object.keys(readers), "journal-entry"].sort());
  });

  it.each(Object.entries(readers))("is read: %s", (name, read) => {
    const { v: _version, ...fields } = golden(name);
    expect(read(golden(name))).toMatchObject(fields);
  });

  it.each(Object.entries(readers))("of a newer version is left to that one: %s", (name, read) => {
    expect(() => read({ ...golden(name), v: 3, more: "that nobody knows yet" })).toThrow(NewerVersionError);
  });

  it.each(["slot-record", "baseline"])("without a version, as before the field, is version 1: %s", (name) => {
    const { v: _version, ...fields } = golden(name);
    expect(readers[name]?.(fields)).toMatchObject(fields);
  });
});

describe("a reason that only a newer version gives", () => {
  it("is read as the word that it is: one outcome of many must not hide the others", () => {
    const outcome = { ...golden("outcome"), reason: "seen-from-tomorrow" };
    expect(parseOutcome(outcome)).toMatchObject({ reason: "seen-from-tomorrow" });
  });

  it.each([42, "", "a sentence with spaces", "x".repeat(61)])("is a word, and not %j", (reason) => {
    expect(() => parseOutcome({ ...golden("outcome"), reason })).toThrow("reason");
  });
});
