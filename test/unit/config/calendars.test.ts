// Calendars in policy files: named once, read from files, kept, and told by line when wrong.
import { describe, expect, it } from "vitest";
import { loadPolicies } from "../../../src/config/load-policies.ts";
import { fromPlainSet, toPlainSet } from "../../../src/config/plain-set.ts";
import type { PolicySet } from "../../../src/config/policy-set.ts";
import { createClosedTimes } from "../../../src/schedule/closed-times.ts";
import { deadlinesOf } from "../../../src/schedule/deadlines.ts";
import { checks, folderOf, variables } from "./policy-fixture.ts";

const calendar = (...lines: string[]) =>
  ["BEGIN:VCALENDAR", "BEGIN:VEVENT", ...lines, "END:VEVENT", "END:VCALENDAR", ""].join("\n");
const christmas = calendar("SUMMARY:Christmas Day", "DTSTART;VALUE=DATE:20201225", "RRULE:FREQ=YEARLY");
const patching = calendar("SUMMARY:Patching", "DTSTART:20261201T020000", "DTEND:20261201T040000");

const files = {
  "a.yaml": `apiVersion: syncline/v1
services: { main: { baseUrl: "https://sync.example.com", token: { env: TOKEN } } }
calendars: { bank: { file: bank.ics }, patching: { file: patching.ics } }
defaults: { timezone: Europe/Vienna, holidays: [bank, 2026-12-24] }
`,
  "b.yaml": `apiVersion: syncline/v1
policies:
  - { name: one, service: main, run: { syncJobs: [1] }, schedule: { cron: "30 2 * * *" }, blackout: [patching], expect: { successBy: "06:00" } }
  - { name: two, service: main, run: { syncJobs: [2] }, schedule: { cron: "30 2 * * *" }, holidays: [] }
`,
  "bank.ics": christmas,
  "patching.ics": patching,
};

async function load(changes: Readonly<Record<string, string | Uint8Array>> = {}) {
  const folder = await folderOf({ ...files, ...changes });
  return { folder, loaded: await loadPolicies(folder, { variables, checks }) };
}

async function setOf(changes: Readonly<Record<string, string>> = {}): Promise<PolicySet> {
  const { loaded } = await load(changes);
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return loaded.set;
}

async function problemsOf(changes: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const { folder, loaded } = await load(changes);
  if (loaded.ok) throw new Error("no problem");
  return loaded.problems.map(({ file, line, message }) => `${file.slice(folder.length + 1)}:${line} ${message}`);
}

const closedNotes = ({ policies }: PolicySet) =>
  policies.map((policy) =>
    ["2026-12-25T01:30:00Z", "2026-12-24T01:30:00Z", "2026-12-01T01:30:00Z"].map(
      (at) => createClosedTimes(policy)(Date.parse(at))?.note,
    ),
  );
const expected = [
  ["bank: Christmas Day", "2026-12-24", "patching: Patching"],
  [undefined, undefined, undefined],
];

describe("a set with calendars", () => {
  it("closes the policies that name them, also by defaults, beside dates", async () => {
    expect(closedNotes(await setOf())).toEqual(expected);
  });

  it("has no deadline on a day that they close", async () => {
    const [policy] = (await setOf()).policies;
    if (policy === undefined) throw new Error("no policy");
    const [afterMs, untilMs] = [Date.parse("2026-11-30T12:00:00Z"), Date.parse("2026-12-27T00:00:00Z")];
    const days = deadlinesOf(policy, { afterMs, untilMs }).deadlines.map(({ atMs }) => new Date(atMs).getUTCDate());
    expect(days).toEqual(Array.from({ length: 25 }, (_, index) => index + 2).filter((day) => day !== 24 && day !== 25));
  });

  it("is kept with each calendar once, and means the same when it is read", async () => {
    const plain = JSON.stringify(toPlainSet(await setOf()));
    expect(plain.split("Christmas Day").length - 1).toBe(13);
    expect(closedNotes(fromPlainSet(JSON.parse(plain)))).toEqual(expected);
  });

  it("has another hash when a calendar changes, and the same for another place", async () => {
    const moved = christmas.replace("20201225", "20201226");
    const [one, again, changed] = [await setOf(), await setOf(), await setOf({ "bank.ics": moved })];
    expect(one.contentHash).toBe(again.contentHash);
    expect(one.contentHash).not.toBe(changed.contentHash);
  });
});

describe("calendars with mistakes", () => {
  it("are told with their file and line", async () => {
    expect(await problemsOf({ "bank.ics": christmas.replace("YEARLY", "HOURLY") })).toEqual([
      'bank.ics:5 event "Christmas Day": FREQ=HOURLY is not understood',
    ]);
    expect(await problemsOf({ "bank.ics": patching })).toEqual([
      'bank.ics:2 event "Patching" has hours, and a holiday is a whole day',
    ]);
    expect(await problemsOf({ "bank.ics": "x".repeat(1_048_577) })).toEqual([
      expect.stringMatching(/^a\.yaml:3 calendar bank: .*bank\.ics is larger than 1024 KiB$/),
    ]);
  });

  it("are told where they are named, when there is no such file or calendar", async () => {
    const other = files["a.yaml"].replace("file: bank.ics", "file: sub/bank.ics").replace("[bank,", "[banks,");
    expect(await problemsOf({ "a.yaml": other })).toEqual([
      expect.stringMatching(/^a\.yaml:3 calendar bank: .*sub\/bank\.ics cannot be read: there is no such file/),
      'a.yaml:4 there is no calendar "banks"',
    ]);
    expect(await problemsOf({ "a.yaml": files["a.yaml"].replace("bank: {", "2026-12-24: {") })).toContain(
      "a.yaml:3 calendars.2026-12-24: the name of a calendar starts with a letter",
    );
    expect(await problemsOf({ "a.yaml": files["a.yaml"].replace("bank.ics", "bank.txt") })).toContain(
      "a.yaml:3 calendars.bank.file: a calendar file ends with .ics",
    );
  });

  it("are told where they are named, or in their line, with a hint that helps", async () => {
    const hintsOf = async (bank: string | Uint8Array, a = files["a.yaml"]) => {
      const { folder, loaded } = await load({ "a.yaml": a, "bank.ics": bank });
      if (loaded.ok) throw new Error("no problem");
      return loaded.problems.map(({ file, line, hint }) => `${file.slice(folder.length + 1)}:${line} ${hint}`);
    };
    expect(await hintsOf(Buffer.from(christmas.replace("Day", "für alle"), "latin1"))).toEqual([
      "a.yaml:3 save it as UTF-8",
    ]);
    expect(await hintsOf("x".repeat(1_048_577))).toEqual([
      "a.yaml:3 make several calendars of it, each in a file of its own",
    ]);
    expect(await hintsOf(christmas.replace(" Day", "\u0007"))).toEqual(["bank.ics:3 remove it"]);
    expect(await hintsOf(christmas, files["a.yaml"].replace("bank.ics", "none.ics"))).toEqual([
      "a.yaml:3 the path is relative to the policy file",
    ]);
  });

  it("more than 20 in a set are refused", async () => {
    const many = Array.from({ length: 21 }, (_, index) => `c${index}: { file: bank.ics }`).join(", ");
    const a = files["a.yaml"].replace(
      /calendars: .*/,
      `calendars: { bank: { file: bank.ics }, patching: { file: patching.ics }, ${many} }`,
    );
    expect(await problemsOf({ "a.yaml": a })).toContain("b.yaml:0 23 calendars in all: 20 is the most");
  });
});
