import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadPolicies } from "../../../src/config/load-policies.ts";
import { checks, folderOf, problemsOf, variables } from "./policy-fixture.ts";

const service = (keys: string) => `apiVersion: syncline/v1\nservices:\n  main: { ${keys} }\n`;
const oauth2 = (keys: string) =>
  service(`baseUrl: https://a.example, token: { oauth2: { clientId: c, clientSecretFile: s, ${keys} } }`);
const tls = (keys: string, baseUrl = "https://a.example") =>
  service(`baseUrl: ${baseUrl}, token: { env: TOKEN }, tls: { ${keys} }`);

describe("a service with OAuth 2 and certificates", () => {
  it("has absolute paths and its defaults filled in", async () => {
    const folder = await folderOf({
      "policies.yaml": service(
        "baseUrl: https://a.example, token: { oauth2: { tokenUrl: 'https://l.example/t?p=x', clientId: c, clientSecretFile: secrets/client, scope: a b } }, tls: { caFile: ca.crt, certFile: tls.crt, keyFile: /run/tls.key, keyPassphraseFile: pass, serverName: sync1 }",
      ),
    });
    const loaded = await loadPolicies(folder, { variables, checks });
    expect(loaded.ok && loaded.set.services.get("main")).toMatchObject({
      token: {
        kind: "oauth2",
        tokenUrl: "https://l.example/t?p=x",
        clientId: "c",
        clientSecretFile: join(folder, "secrets/client"),
        scope: "a b",
        auth: "basic",
        allowHttp: false,
      },
      tls: {
        caFile: join(folder, "ca.crt"),
        certFile: join(folder, "tls.crt"),
        keyFile: "/run/tls.key",
        keyPassphraseFile: join(folder, "pass"),
        serverName: "sync1",
      },
    });
  });

  it.each([
    ["http to this machine", oauth2("tokenUrl: 'http://127.0.0.1:8080/t'")],
    ["http where it is allowed by name", oauth2("tokenUrl: 'http://l.internal/t', allowHttp: true, auth: post")],
    ["an authority alone", tls("caFile: ca")],
    ["a certificate and its key alone", tls("certFile: c, keyFile: k")],
  ])("may have %s", async (_, text) => {
    expect(await problemsOf(text)).toEqual([]);
  });

  it.each([
    ["http elsewhere", oauth2("tokenUrl: 'http://l.example/t'"), "must start with https://"],
    ["http to what looks like this machine", oauth2("tokenUrl: 'http://127.0.0.1.a.b/t'"), "must start with https://"],
    ["no URL", oauth2("tokenUrl: login"), "this is no URL"],
    ["credentials in the URL", oauth2("tokenUrl: 'https://u:hidden@l.example'"), "must not hold credentials"],
    ["a fragment", oauth2("tokenUrl: 'https://l.example/#x'"), "must not have a fragment"],
    ["another way to log in", oauth2("tokenUrl: https://l.example, auth: jwt"), "must be basic or post"],
    ["a certificate without its key", tls("certFile: c"), "tls.certFile needs keyFile"],
    ["a key without its certificate", tls("keyFile: k"), "tls.keyFile needs certFile"],
    ["a passphrase for no key", tls("caFile: a, keyPassphraseFile: p"), "tls.keyPassphraseFile needs keyFile"],
    ["nothing", tls(""), "tls is empty"],
    ["http", tls("caFile: a", "http://a.example"), "baseUrl is http"],
    ["an address as its name", tls("caFile: a, serverName: 10.0.0.1"), "write a host name"],
    ["an unsafe wish", tls("caFile: a, rejectUnauthorized: false"), 'has no key "rejectUnauthorized"'],
  ])("must not have %s", async (_, text, problem) => {
    const problems = await problemsOf(text);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(problem);
    expect(problems[0]).not.toContain("hidden");
  });
});
