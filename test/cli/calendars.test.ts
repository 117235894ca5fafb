// Calendars as operators meet them: in what they look up, from a file and from the set that runs.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { policyChecks } from "../../src/cli/shared-options.ts";
import { loadPolicies } from "../../src/config/load-policies.ts";
import { keepPolicySet } from "../../src/store/kept-policies.ts";
import { runHere } from "../support/commands-here.ts";
import { folderForTest } from "../support/folder.ts";
import { redisForTest, storeForTest } from "../support/redis.ts";

const target = redisForTest();
const store = await storeForTest(target);
const variables = { TEST_TOKEN: "x" };
const here = (...args: string[]) => runHere(args, variables);
const where = ["--prefix", target.prefix, "--redis-url", target.url];
/** A calendar is read for some years around today. */
const year = new Date().getUTCFullYear();
const days = ["--from", `${year + 1}-12-24T00:00`, "--to", `${year + 1}-12-26T00:00`];

const policies = `apiVersion: syncline/v1
services: { main: { baseUrl: "https://sync.example.com", token: { env: TEST_TOKEN } } }
calendars: { bank-holidays: { file: bank.ics } }
defaults: { timezone: Europe/Vienna, holidays: [bank-holidays] }
policies: [{ name: nightly, service: main, run: { syncJobs: [1] }, schedule: { cron: "30 2 * * *" } }]
`;

/** A folder with the policy and its calendar, Christmas Day by a rule. */
function setWith(rule: string): string {
  const folder = folderForTest();
  const lines = ["BEGIN:VCALENDAR", "BEGIN:VEVENT", "SUMMARY:Christmas Day", "DTSTART;VALUE=DATE:20201225", rule];
  writeFileSync(join(folder, "p.yaml"), policies);
  writeFileSync(join(folder, "bank.ics"), [...lines, "END:VEVENT", "END:VCALENDAR", ""].join("\n"));
  return folder;
}

it("plan, simulate and explain name the event that closes a slot", async () => {
  const folder = setWith("RRULE:FREQ=YEARLY");
  const loaded = await loadPolicies(folder, { variables, checks: policyChecks });
  if (!loaded.ok) throw new Error(loaded.problems[0]?.message);
  await keepPolicySet(store, loaded.set, "host/1");
  const event = "holiday (bank-holidays: Christmas Day)";
  expect((await here("plan", ...days, ...where)).out).toMatch(
    new RegExp(`${year + 1}-12-25 02:30 .*skipped +holiday \\(bank-holidays: Christmas Day\\)`),
  );
  expect((await here("simulate", "--config", folder, ...days, "--list")).out).toContain(`skipped  ${event}`);
  expect((await here("explain", "nightly", `${year + 1}-12-25T12:00`, ...where)).out).toContain(
    `closed time anyway: ${event}`,
  );
});

it("validate and doctor warn of a calendar that has passed; a wrong line is shown", async () => {
  const folder = setWith(`RRULE:FREQ=YEARLY;COUNT=${year - 2020}`);
  const old = await here("validate", folder);
  expect([old.code, old.out]).toEqual([
    0,
    expect.stringContaining(`the last event of calendar bank-holidays ended ${year - 1}-12-26`),
  ]);
  const doctor = await here("doctor", "--config", folder, ...where, "--within", "1s");
  expect(doctor.out).toMatch(
    new RegExp(`\nwarning {2}calendars bank-holidays: the last event .* ended ${year - 1}-12-26\n {2}→ put a newer`),
  );
  const wrong = await here("validate", setWith("RRULE:FREQ=HOURLY"));
  expect([wrong.code, wrong.out]).toEqual([
    2,
    expect.stringMatching(
      /bank\.ics:5:1: event "Christmas Day": FREQ=HOURLY is not understood\n {2}5 \| RRULE:FREQ=HOURLY\n/,
    ),
  ]);
});
