// biome-ignore-all lint/suspicious/noTemplateCurlyInString: ${NAME} is what policy files have.
// Secrets that stand in a policy file by mistake, and values of variables: nothing that is said of
// a wrong file shows them.
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { policyChecks } from "../../../src/cli/shared-options.ts";
import { loadPolicies } from "../../../src/config/load-policies.ts";
import { formatProblem } from "../../../src/config/problem.ts";
import { folderOf } from "./policy-fixture.ts";

const C = "canary-yaml-7Qx2";
const variables = { T: "t", CANARY: C, CANARYNAME: C.toLowerCase() };
/** A service with these keys beside its URL. */
const S = (keys: string) => `apiVersion: syncline/v1\nservices:\n  main:\n    baseUrl: https://a.example\n${keys}\n`;
/** A policy with these keys. */
const P = (keys: string) =>
  `apiVersion: syncline/v1\nservices: { main: { baseUrl: "https://a.example", token: { env: T } } }\npolicies:\n  - name: a\n    service: main\n    repository: HR\n${keys}\n`;

const texts: Readonly<Record<string, string>> = {
  tokenString: S(`    token: ${C}`),
  tokenNextLine: S(`    token:\n      ${C}`),
  tokenFolded: S(`    token: >\n      ${C}`),
  tokenList: S(`    token:\n      - ${C}`),
  tokenValueKey: S(`    token: { bearer: ${C} }`),
  tokenUnderscore: S(`    token: { access_token: ${C} }`),
  clientSecret: S(`    token: { oauth2: { tokenUrl: "https://l", clientId: c, clientSecret: ${C} } }`),
  client_secret: S(`    token: { oauth2: { tokenUrl: "https://l", clientId: c, client_secret: ${C} } }`),
  clientSecretNext: S(
    `    token:\n      oauth2:\n        tokenUrl: https://l\n        clientId: c\n        clientSecret:\n          ${C}`,
  ),
  clientSecretNull: S(
    `    token:\n      oauth2:\n        tokenUrl: https://l\n        clientId: c\n        clientSecretFile:\n          - ${C}`,
  ),
  password: S(`    token: { env: T }\n    password: ${C}`),
  passphrase: S(`    token: { env: T }\n    tls: { caFile: a, passphrase: ${C} }`),
  keyPassphrase: S(`    token: { env: T }\n    tls: { caFile: a, keyPassphrase: ${C} }`),
  keyInline: S(
    `    token: { env: T }\n    tls:\n      caFile: a\n      key: |\n        -----BEGIN PRIVATE KEY-----\n        ${C}`,
  ),
  url: `apiVersion: syncline/v1\nservices: { main: { baseUrl: "https://u:${C}@a.example", token: { env: T } } }\n`,
  urlQuery: `apiVersion: syncline/v1\nservices: { main: { baseUrl: "https://a.example?key=${C}", token: { env: T } } }\n`,
  tokenUrl: S(`    token: { oauth2: { tokenUrl: "http://a.example/?key=${C}", clientId: c, clientSecretFile: s } }`),
  envBad: S(`    token: { env: "${C} x" }`),
  sinkSecret: `${P("    run: { syncJobs: [1] }")}sinks: { ops: { webhook: { url: "https://h/?t=${C}", secret: ${C} } } }\n`,
  chatPath: `${P("    run: { syncJobs: [1] }")}sinks: { chat: { webhook: { url: "https://h.example/services/${C}", format: slak } } }\n`,
  headers: S(`    token: { env: T }\n    headers: { authorization: Bearer ${C} }`),
  headersNext: S(`    token: { env: T }\n    headers:\n      authorization:\n        Bearer ${C}`),
  headersQuoted: S(`    token: { env: T }\n    headers: { "x-api-key": "${C}" }`),
  duplicated: S(`    token: { env: T }\n    token: ${C}`),
  broken: S(`    token: "${C}`),
  tab: S(`    token: { env: T }\n\tpassword: ${C}`),
  anchor: S(`    token: *${C}`),
  sub_service: P("    run: { syncJobs: [1] }").replace("service: main", 'service: "${CANARY}"'),
  sub_timezone: P('    run: { syncJobs: [1] }\n    schedule: { cron: "0 0 * * *", timezone: "${CANARY}" }'),
  sub_cron: P('    run: { syncJobs: [1] }\n    schedule: { cron: "${CANARY}" }'),
  sub_cron5: P('    run: { syncJobs: [1] }\n    schedule: { cron: "0 0 * * ${CANARY}" }'),
  sub_every: P('    run: { syncJobs: [1] }\n    schedule: { every: "${CANARY}" }'),
  sub_url: `apiVersion: syncline/v1\nservices: { main: { baseUrl: "\${CANARY}", token: { env: T } } }\n`,
  sub_tokenurl: S('    token: { oauth2: { tokenUrl: "${CANARY}", clientId: c, clientSecretFile: s } }'),
  sub_name: P("    run: { syncJobs: [1] }").replace("name: a", 'name: "${CANARY} x"'),
  sub_nameTwice:
    P("    run: { syncJobs: [1] }").replace("name: a", 'name: "${CANARYNAME}"') +
    '  - { name: "${CANARYNAME}", service: main, run: { syncJobs: [1] } }\n',
  sub_expr: P('    poll: { list: approvals, expect: "${CANARY} +" }'),
  sub_expr2: P('    poll: { list: approvals, expect: "${CANARYNAME}" }'),
  sub_list: P('    poll: { list: "${CANARY}" }'),
  sub_overlap: P('    run: { syncJobs: [1] }\n    overlap: "${CANARY}"'),
  sub_holiday: P('    run: { syncJobs: [1] }\n    holidays: ["${CANARY}"]'),
  sub_version: P("    run: { syncJobs: [1] }").replace("syncline/v1", '"${CANARY}"'),
  sub_serverName: S('    token: { env: T }\n    tls: { serverName: "${CANARY} x" }'),
  sub_default: P("    run: { syncJobs: [1] }").replace("service: main", 'service: "${UNSET:-x${CANARY}"'),
  sub_mapping: S('    token: { env: T }\n    mapping: { activity: { id: "item.${CANARY}(" } }'),
};

describe("a wrong file", () => {
  it.each(Object.entries(texts))("shows no secret: %s", async (_, text) => {
    const folder = await folderOf({ "p.yaml": text });
    const loaded = await loadPolicies(join(folder, "p.yaml"), { variables, checks: policyChecks });
    if (loaded.ok) throw new Error("the file should be wrong");
    const shown = loaded.problems.map((problem) => formatProblem(problem, false)).join("\n");
    expect(shown.toLowerCase()).not.toContain(C.toLowerCase());
    expect(JSON.stringify(loaded.problems).toLowerCase()).not.toContain(C.toLowerCase());
  });

  it("names the variable in the place of its value", async () => {
    const folder = await folderOf({ "p.yaml": texts["sub_service"]?.replace("CANARY", "CANARYNAME") ?? "" });
    const loaded = await loadPolicies(folder, { variables, checks: policyChecks });
    expect(loaded.ok ? [] : loaded.problems.map(({ message }) => message)).toContain(
      'there is no service "${CANARYNAME}"',
    );
  });

  it("names the variable of another file in the place of its value, too", async () => {
    const labelled = P('    run: { syncJobs: [1] }\n    labels: { team: "${CANARY}" }');
    const asking = "apiVersion: syncline/v1\ndefaults: { notify: [{ sink: s, match: { q: q } }] }\n";
    const folder = await folderOf({ "a.yaml": labelled, "b.yaml": asking });
    const loaded = await loadPolicies(folder, { variables, checks: policyChecks });
    const shown = JSON.stringify(loaded.ok ? [] : loaded.problems);
    expect(shown).toContain("there is team=${CANARY}");
    expect(shown).not.toContain(C);
  });
});
