// Ways to write a secret into a policy file that are hardly YAML, or no key of ours: what is said
// of such a file does not show it.
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { policyChecks } from "../../../src/cli/shared-options.ts";
import { loadPolicies } from "../../../src/config/load-policies.ts";
import { formatProblem } from "../../../src/config/problem.ts";
import { maskLine } from "../../../src/config/yaml/source-text.ts";
import { folderOf } from "./policy-fixture.ts";

const C = "canary-slip-9Kw3";
const head = "apiVersion: syncline/v1\nservices:\n  main:\n    baseUrl: https://a.example\n";
const S = (keys: string) => `${head}${keys}\n`;
const sinks = (keys: string) => `${head}    token: { env: T }\npolicies: []\nsinks:\n${keys}\n`;
const heartbeat = (text: string) =>
  `${head}    token: { env: T }\npolicies:\n  - { name: a, service: main, run: { syncJobs: [1] }, schedule: { every: 1h }, heartbeat: ${text} }\n`;
const base = (url: string) => `apiVersion: syncline/v1\nservices: { main: { baseUrl: "${url}", token: { env: T } } }\n`;

const texts: Readonly<Record<string, string>> = {
  "with a comma in it": S(`    password: "abc,${C}"`),
  "with a comma in it, without quotes": S(`    password: abc,${C}`),
  "with a brace in it": S(`    password: abc}${C}`),
  "with a comma in it, in braces": S(`    tls: { password: "abc,${C}", caFile: a }`),
  "with a line separator in it": S(`    token: a\u2028${C}`),
  "that begins like a directive": S(`    token: %${C}`),
  "that begins like a tag": S(`    token: !${C}`),
  "that begins like a long tag": S(`    token: !<${C}> x`),
  "over lines that are broken": S(`    password: "aaaa\n\n  ${C}\n bbb"`),
  "after a space in the place of a colon": S(`    token ${C}`),
  "after an equals sign": S(`    password=${C}`),
  "in a file of variables": `TOKEN=${C}\nX=1\n`,
  "in a file that holds nothing else": `${C}\n`,
  "on a line of its own": S(`    token: { env: T }\n    ${C}`),
  "behind a question mark": S(`    ? token\n    : ${C}`),
  "in the place of a token's key": S(`    token: { ${C} }`),
  "beside a token's key": S(`    token: { env: T, ${C} }`),
  "beside another one": S(`    token: { other-7Qx2, ${C} }`),
  "in the place of a key of oauth2": S(`    token: { oauth2: { ${C} } }`),
  "as a token's key": S(`    token: { ${C}: x }`),
  "in a list of tokens": S(`    tokens: [ a, ${C} ]`),
  "in a block of secrets": S(`    secrets: { a: ${C} }`),
  "in a header": S(`    headers: { X-Auth: ${C} }`),
  "in a cookie": S(`    cookie: s=${C}`),
  "as pass": S(`    auth: { user: a, pass: ${C} }`),
  "as auth": S(`    auth: ${C}`),
  "as key": S(`    key: ${C}`),
  "as a signature": S(`    signature: ${C}`),
  "that is a JWT": S(`    note: eyJhbGciOi.${C}`),
  "that is a JWT under a known key": S(`    token: { env: T }\n    limits: { requestsPerSecond: eyJhbGciOi.${C} }`),
  "that is a bearer under a known key": S(`    token: { env: T }\n    pathForm: Bearer ${C}`),
  "in a URL's password under a known key": S(`    token: { env: T }\n    pathForm: https://u:${C}@a.example`),
  "in a comment": S(`    tokn: { env: T } # was ${C}`),
  "in a URL, with a slash in it": base(`https://u:pa/${C}@a.example`),
  "in a URL, with a space in it": base(`https://u:pa ${C}@a.example`),
  "in a URL, with an @ in it": base(`https://u:p@${C}@a.example`),
  "in a URL without slashes": base(`https:u:${C}@a.example`),
  "in a URL without a scheme": base(`u:${C}@a.example`),
  "in a query with a space": base(`https://a.example?a=b &code=${C}`),
  "in a query with quotes": base(`https://a.example?a='x' ${C}`),
  "in a heartbeat of another scheme": heartbeat(`{ url: "ftp://b.example/${C}" }`),
  "in a heartbeat without a scheme": heartbeat(`{ url: b.example/${C} }`),
  "in a heartbeat that is no block": heartbeat(`"https://b.example/${C}"`),
  "in a webhook that is no block": sinks(`  chat: { webhook: "https://h.example/services/${C}" }`),
  "in a sink that is no block": sinks(`  chat: https://h.example/services/${C}`),
  "in a webhook without a scheme": sinks(`  chat: { webhook: { format: slack, url: h.example/services/${C} } }`),
  "in a webhook under another key": sinks(`  chat: { webhook: { uri: "https://h.example/services/${C}" } }`),
};

describe("a secret in a wrong file", () => {
  it.each(Object.entries(texts))("%s is not shown", async (_, text) => {
    const folder = await folderOf({ "p.yaml": text });
    const loaded = await loadPolicies(join(folder, "p.yaml"), { variables: { T: "t" }, checks: policyChecks });
    if (loaded.ok) throw new Error("the file should be wrong");
    const shown = loaded.problems.map((problem) => formatProblem(problem, false)).join("\n");
    expect(shown.toLowerCase()).not.toContain(C.toLowerCase());
    expect(JSON.stringify(loaded.problems).toLowerCase()).not.toContain(C.toLowerCase());
  });
});

describe("a line without a secret", () => {
  it.each([
    "    token: { env: SYNC_TOKEN }",
    "  main: { baseUrl: https://sync.example.com/base, token: { file: /run/secrets/syncline/token }, limits: { concurrency: 4 } }",
    "    token: { oauth2: { tokenUrl: https://login.example.com/v2/token, clientId: c7, clientSecretFile: s, auth: post, scope: a.b } }",
    "    schedule: { cron: '30 2 * * 1-5', spread: 10m } # at night",
    "  - name: contracts-nightly-2026",
    "      driveTargets: { 9: { siteName: HR, siteId: 4be6c9a0-11aa, folderName: In } }",
    "    poll: { list: approvals, expect: 'items.all(i, i.itemName != \"a@b.example\")' }",
  ])("is shown as it is: %s", (line) => {
    expect(maskLine(line)).toBe(line);
  });
});
