// What the tests of policies share: a folder that goes away, files in it, and checks that stand in
// for croner and CEL.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type LoadedPolicies, loadPolicies } from "../../../src/config/load-policies.ts";
import type { PolicyChecks } from "../../../src/config/rules/policy-rules.ts";
import { checkOnItem } from "../../../src/feeds/mapping.ts";
import { readCalendar } from "../../../src/schedule/calendar-file.ts";
import { problemOfDeadline } from "../../../src/schedule/deadlines.ts";
import { folderForTest } from "../../support/folder.ts";

/** Accepts 5 or 6 fields; and expressions without "oops". */
export const checks: PolicyChecks = {
  cron: (expression) => (/^\S+( \S+){4,5}$/.test(expression) ? undefined : "five or six fields are needed"),
  expression: (cel) => (cel.includes("oops") ? "unexpected oops" : undefined),
  calendar: async (text) => readCalendar(text, Date.UTC(2026, 10, 23)),
  onItem: checkOnItem,
  deadline: problemOfDeadline,
};

/** The variables that the tests and the examples use. */
export const variables = {
  TOKEN: "t",
  SYNC_TOKEN: "t",
  SANDBOX_TOKEN: "t",
  SANDBOX_URL: "http://127.0.0.1:8080",
};

/** A new folder with these files; it goes away after the test. */
export async function folderOf(files: Readonly<Record<string, string | Uint8Array>>): Promise<string> {
  const folder = folderForTest();
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);
  return folder;
}

/** Loads one text as a policy file. */
export async function loadText(text: string | Uint8Array): Promise<LoadedPolicies> {
  const folder = await folderOf({ "policies.yaml": text });
  return loadPolicies(join(folder, "policies.yaml"), { variables, checks });
}

/** The problems of a text as "line:column message". */
export async function problemsOf(text: string | Uint8Array): Promise<readonly string[]> {
  const loaded = await loadText(text);
  return loaded.ok ? [] : loaded.problems.map(({ line, column, message }) => `${line}:${column} ${message}`);
}

/**
 * A right file: one service and the policies given (as they stand under `policies:`, from column
 * 3).
 */
export function fileWith(policies: string): string {
  return `apiVersion: syncline/v1
services:
  main: { baseUrl: https://sync.example.com, token: { env: TOKEN } }
policies:
${policies}
`;
}
