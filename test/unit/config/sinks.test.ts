import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadPolicies } from "../../../src/config/load-policies.ts";
import { isAllowedHost } from "../../../src/config/rules/cross-rules.ts";
import { checks, folderOf, loadText, problemsOf, variables } from "./policy-fixture.ts";

const sinks = (text: string, rest = "") => `apiVersion: syncline/v1\nsinks: { ${text} }\n${rest}`;
const webhook = (keys: string) => sinks(`ops: { webhook: { ${keys} } }`);

const mail = (keys: string, to = "a@h.example", rest = "") =>
  sinks(`m: { email: { host: smtp.h.example, from: s@h.example, to: ["${to}"], ${keys} } }`, rest);

const mailAt = (host: string, hosts: string) =>
  sinks(`m: { email: { host: "${host}", from: s@h.example, to: [a@h.example] } }`, `outbound: { hosts: [${hosts}] }\n`);

describe("sinks", () => {
  it("have absolute paths and their defaults filled in", async () => {
    const folder = await folderOf({
      "policies.yaml": sinks(
        "ops: { webhook: { url: 'https://h.example/x?y', secretFile: hook, previousSecretFile: old }, giveUpAfter: 72h }, log: { file: { path: n.jsonl, maxSize: 3KB } }, chat: { webhook: { url: 'https://h.example/c', format: slack, timeout: 5s }, queueMax: 10 }",
      ),
    });
    const loaded = await loadPolicies(folder, { variables, checks });
    expect(loaded.ok && Object.fromEntries(loaded.set.sinks)).toEqual({
      ops: {
        name: "ops",
        to: {
          kind: "webhook",
          url: "https://h.example/x?y",
          secretFile: join(folder, "hook"),
          previousSecretFile: join(folder, "old"),
          format: "cloudevents",
          timeoutMs: 10_000,
        },
        giveUpAfterMs: 259_200_000,
        queueMax: 100_000,
      },
      log: {
        name: "log",
        to: { kind: "file", path: join(folder, "n.jsonl"), bytesMax: 3_000, filesMax: 5 },
        giveUpAfterMs: 86_400_000,
        queueMax: 100_000,
      },
      chat: {
        name: "chat",
        to: {
          kind: "webhook",
          url: "https://h.example/c",
          secretFile: undefined,
          previousSecretFile: undefined,
          format: "slack",
          timeoutMs: 5_000,
        },
        giveUpAfterMs: 86_400_000,
        queueMax: 10,
      },
    });
  });

  it("change the hash of the set, and their places do not", async () => {
    const hashOf = async (text: string) => {
      const loaded = await loadText(text);
      return loaded.ok ? loaded.set.contentHash : "";
    };
    const before = await hashOf(sinks("a: { file: { path: /n } }, b: { file: { path: /m } }"));
    expect(before).not.toBe("");
    expect(await hashOf(sinks("b: { file: { path: /m } }, a: { file: { path: /n } }"))).toBe(before);
    expect(await hashOf(sinks("a: { file: { path: /n } }, b: { file: { path: /k } }"))).not.toBe(before);
  });

  it.each([
    ["https", webhook("url: 'https://h.example', secretFile: s")],
    ["http to this machine", webhook("url: 'http://127.0.0.1:80/x', secretFile: s")],
    ["http where it is allowed by name", webhook("url: 'http://h.internal', allowHttp: true, secretFile: s")],
    ["no secret for a chat", webhook("url: 'https://h.example', format: teams")],
    [
      "hosts that are allowed",
      sinks("a: { webhook: { url: 'https://x.h.example', secretFile: s } }", "outbound: { hosts: ['*.h.example'] }\n"),
    ],
    ["a mail server by an address that is allowed", mailAt("2001:db8::5", "'[2001:db8::5]'")],
    ["files, whatever hosts are allowed", sinks("a: { file: { path: x } }", "outbound: { hosts: [h.example] }\n")],
  ])("may have %s", async (_, text) => {
    expect(await problemsOf(text)).toEqual([]);
  });

  it.each([
    ["http elsewhere", webhook("url: 'http://h.example', secretFile: s"), "must start with https://"],
    ["no URL", webhook("url: hook, secretFile: s"), "this is no URL"],
    [
      "credentials in the URL",
      webhook("url: 'https://u:hidden@h.example', secretFile: s"),
      "must not hold credentials",
    ],
    ["no secret", webhook("url: 'https://h.example'"), "webhook needs secretFile"],
    [
      "a previous secret alone",
      webhook("url: 'https://h.example', format: slack, previousSecretFile: s"),
      "needs secretFile",
    ],
    [
      "two ways",
      sinks("a: { file: { path: x }, webhook: { url: 'https://h.example', secretFile: s } }"),
      "exclude each other",
    ],
    ["no way", sinks("a: {}"), "needs exactly one of webhook, file or email"],
    ["a user without a password", mail("user: u"), "email.user needs passwordFile"],
    ["a recipient with a name", mail("", "Ops <ops@h.example>"), "without a name beside it"],
    ["a recipient with a line break", mail("", "a@h.example\\r\\nBcc: b@h.example"), "without a name beside it"],
    [
      "a mail server at a host that is not allowed",
      mail("", "a@x.h.example", "outbound: { hosts: [x.h.example] }\n"),
      "outbound.hosts does not name",
    ],
    [
      "a mail server by an address that is not allowed",
      mailAt("2001:db8::5", "h.example, '[2001:db8::6]'"),
      "outbound.hosts does not name",
    ],
    ["a size without a unit", sinks("a: { file: { path: x, maxSize: '10' } }"), "KB, MB or GB"],
    [
      "a host that is not allowed",
      sinks("a: { webhook: { url: 'https://h.example', secretFile: s } }", "outbound: { hosts: ['*.h.example'] }\n"),
      "outbound.hosts does not name",
    ],
    [
      "a URL among the hosts",
      sinks("a: { file: { path: x } }", "outbound: { hosts: ['https://h.example'] }\n"),
      "a host is a name",
    ],
  ])("may not have %s", async (_, text, message) => {
    const problems = await problemsOf(text);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(message);
    expect(problems[0]).not.toContain("hidden");
  });

  it("and heartbeats keep to the hosts of any file; others are named, never quoted", async () => {
    const policy = (name: string, url: string) =>
      `  - { name: ${name}, service: main, run: { syncJobs: [1] }, heartbeat: { url: "${url}" } }`;
    const folder = await folderOf({
      "a.yaml": `apiVersion: syncline/v1
services: { main: { baseUrl: "https://s.example", token: { file: t } } }
policies:
${policy("good", "https://ticks.h.example/ping/hidden")}
${policy("bad", "https://elsewhere.example/ping/hidden")}
${policy("named", `\${BEAT_URL}`)}
`,
      "b.yaml": "apiVersion: syncline/v1\noutbound: { hosts: ['*.h.example'] }\n",
    });
    const named = { BEAT_URL: "https://third.example/hidden" };
    const loaded = await loadPolicies(folder, { variables: named, checks });
    const problems = loaded.ok ? [] : loaded.problems;
    expect(problems.map(({ line, column, message }) => `${line}:${column} ${message}`)).toEqual([
      '5:75 the heartbeat of policy "bad" asks a host that outbound.hosts does not name',
      '6:77 the heartbeat of policy "named" asks a host that outbound.hosts does not name',
    ]);
    expect(problems.map(({ message, hint }) => `${message} ${hint}`).join()).not.toContain("hidden");
  });

  it("of two files may not share a name", async () => {
    const folder = await folderOf({
      "a.yaml": sinks("ops: { file: { path: x } }"),
      "b.yaml": sinks("ops: { file: { path: y } }"),
    });
    const loaded = await loadPolicies(folder, { variables, checks });
    expect(loaded.ok ? [] : loaded.problems.map(({ message }) => message)).toEqual([
      expect.stringContaining('the sink "ops" is there twice'),
    ]);
  });

  it.each([
    ["hooks.example.com", "hooks.example.com", true],
    ["hooks.example.com.", "hooks.example.com", true],
    ["a.b.example.com", "*.example.com", true],
    ["example.com", "*.example.com", false],
    ["evilexample.com", "*.example.com", false],
    ["hooks.example.com.evil.org", "hooks.example.com", false],
  ])("%s under %s: %s", (host, pattern, expected) => {
    expect(isAllowedHost(host, pattern)).toBe(expected);
  });
});
