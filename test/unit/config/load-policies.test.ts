import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadPolicies } from "../../../src/config/load-policies.ts";
import { checks, fileWith, folderOf, loadText, problemsOf, variables } from "./policy-fixture.ts";

const example = `apiVersion: syncline/v1
services:
  main:
    baseUrl: https://sync.example.com/base/
    token: { file: secrets/token }
    limits: { concurrency: 7, requestsPerSecond: 0.5 }
    breaker: { after: 3 }
    mapping:
      conflict: { id: item.conflictId }
defaults:
  { timezone: Europe/Vienna, overlap: queue, follow: { deadline: 4h }, blackout: [{ cron: "0 22 * * 5", for: 8h }], holidays: [2026-12-25] }
policies:
  - name: contracts-nightly
    service: main
    repository: HR
    run: { syncJobs: [42, 43] }
    schedule: { cron: "30 2 * * 1-5", spread: 10m }
    follow: { conflictsMax: 0 }
  - name: approvals-waiting
    service: main
    blackout: []
    holidays: [2026-12-26]
    poll: { list: approvals, expect: count <= 20 }
    schedule: { every: 10m }
  - name: by-hand
    service: main
    run: { fromMasks: { name: "Contract*" } }
`;

describe("a policy file without mistakes", () => {
  it("becomes services with every default filled in", async () => {
    const folder = await folderOf({ "p.yaml": example });
    const loaded = await loadPolicies(join(folder, "p.yaml"), { variables, checks });
    expect(loaded.ok && loaded.set.services.get("main")).toEqual({
      name: "main",
      baseUrl: "https://sync.example.com/base",
      token: { kind: "file", path: join(folder, "secrets/token") },
      pathForm: "parentheses",
      concurrency: 7,
      limits: { concurrencyMax: 7, requestsPerSecond: 0.5 },
      breaker: { after: 3, probeMs: 30_000 },
      requestTimeoutMs: 30_000,
      mapping: { conflictDetails: { id: "item.conflictId" } },
    });
  });

  it("becomes policies: own keys beat the file's defaults, and those Syncline's", async () => {
    const loaded = await loadText(example);
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
    const [file] = loaded.set.files;
    const timezone = "Europe/Vienna";
    const closedByDefault = {
      blackouts: [{ cron: "0 22 * * 5", durationMs: 28_800_000 }],
      holidays: ["2026-12-25"],
    };
    const waits = { quietForMs: 30_000, unreadableForMs: 300_000, blockedAfterMs: 300_000 };
    const unusual = { factor: 3, floorMs: 600_000, itemsFloor: 20, runs: 10 };
    expect(loaded.set.policies).toEqual([
      {
        name: "contracts-nightly",
        service: "main",
        repository: "HR",
        action: { kind: "run", syncJobs: [42, 43] },
        schedule: {
          kind: "cron",
          expressions: ["30 2 * * 1-5"],
          timezone: "Europe/Vienna",
          dst: { gap: "next", overlap: "first" },
          spreadMs: 600_000,
        },
        timezone,
        closed: closedByDefault,
        catchUp: "latest",
        catchUpWindowMs: 3_600_000,
        overlap: "queue",
        follow: { ...waits, until: "settled", deadlineMs: 14_400_000, conflictsMax: 0 },
        onUnknown: "verify",
        unusual,
        where: { file, line: 13 },
      },
      {
        name: "approvals-waiting",
        service: "main",
        repository: undefined,
        action: { kind: "poll", list: "approvals", expect: "count <= 20", notifyOn: "change" },
        schedule: { kind: "every", everyMs: 600_000, spreadMs: 0 },
        timezone,
        closed: { ...closedByDefault, blackouts: [], holidays: ["2026-12-26"] },
        catchUp: "latest",
        catchUpWindowMs: 600_000,
        overlap: "queue",
        follow: { ...waits, until: "accepted", deadlineMs: 14_400_000, conflictsMax: undefined },
        onUnknown: "verify",
        where: { file, line: 19 },
      },
      {
        name: "by-hand",
        service: "main",
        repository: undefined,
        action: { kind: "run", fromMasks: { name: "Contract*" } },
        schedule: undefined,
        timezone,
        closed: closedByDefault,
        catchUp: "latest",
        catchUpWindowMs: 3_600_000,
        overlap: "queue",
        follow: { ...waits, until: "settled", deadlineMs: 14_400_000, conflictsMax: undefined },
        onUnknown: "verify",
        unusual,
        where: { file, line: 25 },
      },
    ]);
  });

  it("keeps its content hash when comments, order or places change, not meanings", async () => {
    const one = "  - { name: a, service: main, poll: { list: masks } }";
    const two = "  - { name: b, service: main, poll: { list: triggers } }";
    const hashOf = async (text: string) => {
      const loaded = await loadText(text);
      return loaded.ok ? loaded.set.contentHash : "";
    };
    const hash = await hashOf(fileWith(`${one}\n${two}`));
    expect(hash).toMatch(/^[0-9a-f]{64}$/);
    expect(await hashOf(fileWith(`${two}\n  # comment\n\n${one}`))).toBe(hash);
    expect(await hashOf(fileWith(`${one}\n${two.replace("triggers", "approvals")}`))).not.toBe(hash);
  });
});

describe("a policy file with mistakes", () => {
  it("gets all five listed, with line and column, in order", async () => {
    const text = `apiVersion: syncline/v1
services:
  main: { baseUrl: https://sync.example.com, token: { env: TOKEN } }
policies:
  - name: nightly
    service: mian
    run: { syncJobs: [42, 42] }
    schedule: { cron: "* *", timezon: Europe/Vienna, spread: 3 hours }
`;
    expect(await problemsOf(text)).toEqual([
      '6:14 there is no service "mian"',
      "7:27 sync job 42 stands in the list twice",
      "8:23 schedule.cron: five or six fields are needed",
      '8:30 schedule has no key "timezon"',
      '8:62 schedule.spread: a duration is a whole number and ms, s, m, h or d, such as "90s"',
    ]);
    const loaded = await loadText(text);
    expect(loaded.ok ? [] : loaded.problems.map(({ hint }) => hint)).toEqual([
      "did you mean main?",
      "remove one of them",
      "five fields: minute hour day month weekday; six: second first",
      "did you mean timezone?",
      undefined,
    ]);
  });

  it("says where a key belongs that stands one level too high", async () => {
    const loaded = await loadText(fileWith("  - { name: a, service: main, poll: { list: masks }, timezone: UTC }"));
    expect(loaded).toMatchObject({
      problems: [{ message: 'a policy has no key "timezone"', hint: "it belongs under schedule" }],
    });
  });

  it("that does not exist, or is a folder without files, is a problem without a line", async () => {
    const folder = await folderOf({});
    const missing = await loadPolicies(join(folder, "no.yaml"), { variables, checks });
    expect(missing).toMatchObject({
      ok: false,
      problems: [{ line: 0, message: "cannot be read: there is no such file or folder" }],
    });
    const empty = await loadPolicies(folder, { variables, checks });
    expect(empty).toMatchObject({ ok: false, problems: [{ line: 0, message: "holds no *.yaml or *.yml file" }] });
  });

  it("lists at most 1,000 problems and says how many more there are", async () => {
    const loaded = await loadText(fileWith("  - 5\n".repeat(1_100)));
    expect(loaded.ok ? 0 : loaded.problems.length).toBe(1_001);
    expect(loaded.ok ? "" : loaded.problems.at(-1)?.message).toBe("and 100 more problems that are not listed");
  });
});

describe("a folder", () => {
  const services =
    "apiVersion: syncline/v1\nservices:\n  main: { baseUrl: https://a.example, token: { env: TOKEN } }\n";
  const policy = (name: string) =>
    `apiVersion: syncline/v1\npolicies:\n  - name: ${name}\n    service: main\n    poll: { list: masks }\n`;

  it("is one set: services, defaults and policies of all files, by file name", async () => {
    const folder = await folderOf({
      "b.yml": policy("from-b"),
      "a.yaml": policy("from-a"),
      "z.yaml": `${services}defaults: { overlap: allow }\n`,
      "notes.txt": "not yaml: [",
      ".hidden.yaml": "not yaml: [",
    });
    await mkdir(join(folder, "sub.yaml"));
    const loaded = await loadPolicies(folder, { variables, checks });
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
    expect(loaded.set.policies.map(({ name, overlap }) => `${name} ${overlap}`)).toEqual([
      "from-a allow",
      "from-b allow",
    ]);
    expect(loaded.set.files).toEqual(["a.yaml", "b.yml", "z.yaml"].map((name) => join(folder, name)));
  });

  it("of Kubernetes, with ..data links, is read once", async () => {
    const folder = await folderOf({});
    await mkdir(join(folder, "..2026_11_21"));
    await writeFile(
      join(folder, "..2026_11_21", "p.yaml"),
      services + policy("once").replace("apiVersion: syncline/v1\n", ""),
    );
    await symlink("..2026_11_21", join(folder, "..data"));
    await symlink("..data/p.yaml", join(folder, "p.yaml"));
    const loaded = await loadPolicies(folder, { variables, checks });
    expect(loaded.ok && loaded.set.policies.map(({ name }) => name)).toEqual(["once"]);
  });

  it("with the same policy, service or default in two files names both places", async () => {
    const folder = await folderOf({
      "a.yaml": `${services}defaults: { overlap: allow }\n${policy("same").split("\n").slice(1).join("\n")}`,
      "b.yaml": `${services}defaults: { overlap: skip }\n${policy("same").split("\n").slice(1).join("\n")}`,
    });
    const loaded = await loadPolicies(folder, { variables, checks });
    const a = join(folder, "a.yaml");
    expect(
      loaded.ok ? [] : loaded.problems.map(({ file, line, column, message }) => [file, line, column, message]),
    ).toEqual([
      [join(folder, "b.yaml"), 3, 3, `the service "main" is there twice: first in ${a}:3`],
      [join(folder, "b.yaml"), 4, 13, `the default "overlap" is there twice: first in ${a}:4`],
      [join(folder, "b.yaml"), 6, 11, `the policy "same" is there twice: first in ${a}:6`],
    ]);
  });

  it("names an unreadable file, not the services that may be in it", async () => {
    const folder = await folderOf({ "a.yaml": "apiVersion: [\n", "b.yaml": policy("b") });
    const loaded = await loadPolicies(folder, { variables, checks });
    expect(loaded.ok ? [] : loaded.problems.map(({ file }) => file)).toEqual([join(folder, "a.yaml")]);
  });
});

describe("the limits of a set", () => {
  it("count the values that the aliases of a file stand for", async () => {
    const policy = (name: string, blackout: string) =>
      `  - { name: ${name}, service: main, run: { syncJobs: [1] }, blackout: ${blackout} }`;
    const window = `&w { cron: "0 22 * * 5", for: 8h }`;
    const fileOf = (windows: number, policies: number) => {
      const names = Array.from({ length: policies }, (_, index) => `p${index}`);
      const first = policy("first", `&b [${window}${", *w".repeat(windows - 1)}]`);
      return fileWith([first, ...names.map((name) => policy(name, "*b"))].join("\n"));
    };
    expect(await problemsOf(fileOf(15, 30))).toEqual([]);
    const list = `[${"1, ".repeat(10_000)}]`;
    expect(await loadText(`a: &a ${list}\nb: [${"*a, ".repeat(20)}]`)).toMatchObject({
      problems: [
        {
          message: "too many values once aliases are written out",
          hint: "200000 is the most: use fewer aliases (*name)",
        },
      ],
    });
  });

  const many = (count: number, prefix: string) =>
    `apiVersion: syncline/v1\npolicies:\n${Array.from({ length: count }, (_, index) => `- {name: ${prefix}${index}, service: s0, poll: {list: masks}}`).join("\n")}\n`;
  const services = (count: number) =>
    `apiVersion: syncline/v1\nservices:\n${Array.from({ length: count }, (_, index) => `  s${index}: { baseUrl: https://a.example, token: { env: TOKEN } }`).join("\n")}\n`;

  it("10,000 policies of 100 services are fine, and one more of each is a problem", async () => {
    const thousands = Object.fromEntries([..."abcdefghj"].map((part) => [`${part}.yaml`, many(1_000, part)]));
    const fine = await folderOf({ ...thousands, "i.yaml": many(1_000, "i"), "s.yaml": services(100) });
    const loaded = await loadPolicies(fine, { variables, checks });
    expect(loaded.ok && loaded.set.policies.length).toBe(10_000);
    const over = await folderOf({ ...thousands, "i.yaml": many(1_001, "i"), "s.yaml": services(101) });
    const refused = await loadPolicies(over, { variables, checks });
    expect(refused.ok ? [] : refused.problems.map(({ message }) => message)).toEqual([
      "10001 policies in all: 10000 is the most",
      "101 services in all: 100 is the most",
    ]);
  }, 120_000);

  it("201 files are too many", async () => {
    const folder = await folderOf(
      Object.fromEntries(Array.from({ length: 201 }, (_, index) => [`${index}.yaml`, "a: 1"])),
    );
    const loaded = await loadPolicies(folder, { variables, checks });
    expect(loaded).toMatchObject({
      ok: false,
      problems: [{ line: 0, message: "holds 201 policy files: 200 is the most" }],
    });
  });
});
