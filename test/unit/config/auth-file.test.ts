import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, it } from "vitest";
import { parseAuthFile } from "../../../src/config/auth-file.ts";

const jwt = "jwt: { issuer: https://id.example.com, audience: syncline }\n";
const grants = "grants: [{ claim: groups, value: a, scope: read }]\n";
const oidc = "oidc: { issuer: https://id.example.com, clientId: syncline, publicUrl: https://syncline.example.com }\n";
const read = (text: string, variables = {}) => parseAuthFile("auth.yaml", text, variables);

it("reads what the page about the dashboard shows, with defaults and variables", () => {
  const page = readFileSync(resolve(import.meta.dirname, "../../../docs/dashboard.md"), "utf8");
  const [, shown = ""] = /```yaml\n(name: email.*?)```/s.exec(page) ?? [];
  expect(read(shown).grants).toHaveLength(3);
  expect(read(jwt + grants).name).toBe("sub");
  expect(read(oidc + grants).oidc).toMatchObject({ auth: "basic", scopes: ["openid", "profile", "email"] });
  expect(read(`name: \${CLAIM}\n${jwt}${grants}`, { CLAIM: "email" }).name).toBe("email");
  expect(read(`jwt: { issuer: "http://127.0.0.1:8080", audience: a }\n${grants}`).jwt?.issuer).toContain("127.0.0.1");
});

it.each([
  ["nothing to trust", grants, /auth\.yaml:1:1: needs jwt, oidc or both/],
  ["no grants", jwt, /grants is missing/],
  [
    "labels that would fit all policies",
    jwt + grants.replace("read", "read, labels: {}"),
    /grants\.0\.labels needs a label, or leave it out/,
  ],
  ["an empty list of grants", `${jwt}grants: []\n`, /auth\.yaml:2:\d+: grants needs at least 1/],
  [
    "a scope that is none",
    jwt + grants.replace("read", "root"),
    /auth\.yaml:2:\d+: grants\.0\.scope must be read, operate or admin/,
  ],
  [
    "a key that is none",
    `${jwt}${grants}clientSecret: canary-secret\n`,
    /auth\.yaml:3:1: there is no key "clientSecret" here/,
  ],
  ["plain http", jwt.replace("https", "http") + grants, /auth\.yaml:1:\d+: jwt\.issuer must be an https:\/\/ URL/],
  [
    "credentials in a URL",
    jwt.replace("//id", "//a:canary-secret@id") + grants,
    /jwt\.issuer must be an https:\/\/ URL/,
  ],
  ["a path in publicUrl", oidc.replace(".com }", ".com/x }") + grants, /oidc\.publicUrl must have no path/],
  [
    "a header that is none",
    jwt.replace(" }", ", header: 'a b' }") + grants,
    /jwt\.header must be the name of a header/,
  ],
  ["no YAML", "jwt: {", /auth\.yaml:1:6: this \{ is never closed/],
  ["nothing", "", /auth\.yaml is empty: docs\/dashboard\.md shows/],
])("refuses %s, with the place and without a secret", (_, text, message) => {
  const fault = (() => {
    try {
      return read(text);
    } catch (error) {
      return String(error);
    }
  })();
  expect(fault).toMatch(message);
  expect(fault).not.toContain("canary");
});
