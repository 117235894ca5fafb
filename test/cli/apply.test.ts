// `plan --state`, `apply` and `import` in the test's own process, over the sandbox and a real
// Redis; and the example that the documentation names.
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { applyCommand } from "../../src/cli/apply.ts";
import type { CommandIo } from "../../src/cli/command-io.ts";
import { importCommand } from "../../src/cli/import/import-command.ts";
import { planCommand } from "../../src/cli/plan.ts";
import { validateCommand } from "../../src/cli/validate.ts";
import { readSettings } from "../../src/config/settings.ts";
import { systemClock } from "../../src/core/clock.ts";
import { UsageError } from "../../src/core/errors.ts";
import { parseFault } from "../../src/sandbox/faults.ts";
import { type Sandbox, startSandbox } from "../../src/sandbox/sandbox.ts";
import { SyncService, staticToken } from "../../src/service/client.ts";
import { redisForTest } from "../support/redis.ts";

const redis = redisForTest();
const example = fileURLToPath(new URL("../../config/apply.yaml", import.meta.url));
const makers: Readonly<Record<string, (io: CommandIo) => Command>> = {
  plan: planCommand,
  apply: applyCommand,
  import: importCommand,
  validate: validateCommand,
};
let sandbox: Sandbox;
let folder: string;
let houses = 0;

beforeEach(async () => {
  houses += 1;
  sandbox = await startSandbox({ activities: 0 });
  folder = await mkdtemp(join(tmpdir(), "syncline-"));
});
afterEach(async () => {
  await sandbox.stop();
  await rm(folder, { recursive: true });
});

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function run(args: readonly string[], more: Partial<CommandIo> = {}): Promise<Ran> {
  const [out, err]: [string[], string[]] = [[], []];
  const io: CommandIo = {
    out: (line) => out.push(line),
    err: (line) => err.push(line),
    colours: false,
    settings: readSettings({ SYNC_URL: sandbox.baseUrl, SYNC_TOKEN: sandbox.token }),
    readInput: async () => "",
    signal: new AbortController().signal,
    exitCode: 0,
    ...more,
  };
  const [name = "", ...rest] = args;
  const keys = ["validate", "import"].includes(name)
    ? []
    : ["--redis-url", redis.url, "--prefix", `${redis.prefix}-${houses}`];
  try {
    await makers[name]?.(io)
      .exitOverride()
      .parseAsync([...rest, ...keys], { from: "user" });
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return { code: 2, out: out.join("\n"), err: error.message };
  }
  return { code: io.exitCode, out: out.join("\n"), err: err.join("\n") };
}

async function policies(apply: string): Promise<string> {
  const file = join(folder, "policies.yaml");
  const service = `  main: { baseUrl: "\${SYNC_URL}", token: { env: SYNC_TOKEN } }`;
  await writeFile(
    file,
    `apiVersion: syncline/v1\nservices:\n${service}\npolicies:\n  - { name: names, service: main, repository: HR, apply: ${apply} }\n`,
  );
  return file;
}

const squeezed = (text: string) => text.replaceAll(/ {2,}/g, "  ").split("\n");
const updates = () => sandbox.ledger().filter(({ operation }) => operation.startsWith("Update"));

describe("plan --state", () => {
  it("shows declared, live and last applied; exits with 2, or 0 without a difference", async () => {
    const file = await policies("{ syncJobs: { 4: { name: Contracts } }, siteTargets: { 9: { siteName: HR } } }");
    const before = await run(["plan", "--state", file]);
    expect(before.code).toBe(2);
    const [, , job, target, , count] = squeezed(before.out);
    expect(job).toMatch(/^sync job 4 {2}differs {2}name {2}"Contracts" {2}"[A-Z][a-z]+ 4" {2}never$/);
    expect(target).toBe('site-type target 9  differs  siteName  "HR"  cannot be read  never');
    expect(count).toBe("2 objects: 2 to change");
    expect(updates()).toEqual([]);
    expect((await run(["apply", "--config", file, "--yes"])).code).toBe(0);
    const after = await run(["plan", "--state", "--config", file, "--json"]);
    expect(after.code).toBe(0);
    expect(JSON.parse(after.out)).toEqual({
      v: 1,
      objects: [
        {
          policy: "names",
          service: "main",
          repository: "HR",
          object: "syncJob-4",
          state: "same",
          problem: null,
          fields: [
            {
              field: "name",
              declared: "Contracts",
              live: "Contracts",
              isLiveKnown: true,
              lastApplied: "Contracts",
              differs: false,
              isDrift: false,
              notTaken: null,
            },
          ],
        },
        {
          policy: "names",
          service: "main",
          repository: "HR",
          object: "siteTarget-9",
          state: "same",
          problem: null,
          fields: [
            {
              field: "siteName",
              declared: "HR",
              live: null,
              isLiveKnown: false,
              lastApplied: "HR",
              differs: false,
              isDrift: false,
              notTaken: null,
            },
          ],
        },
      ],
      readOnlyFields: [],
    });
  });

  it("names drift in colours on a terminal, and exits with 1 for what is not there", async () => {
    const file = await policies("{ syncJobs: { 4: { name: Contracts } } }");
    await run(["apply", "-c", file, "-y"]);
    const service = new SyncService({ baseUrl: sandbox.baseUrl, token: staticToken(sandbox.token) });
    await service.updateSyncJobById(4, { name: "By hand" });
    service.close();
    const drifted = await run(["plan", "--state", file], { colours: true });
    expect(drifted.code).toBe(2);
    expect(drifted.out).toContain('\u001b[31m"By hand"\u001b[39m');
    expect(drifted.out).toContain("changed by hand");
    const missing = await run(["plan", "--state", await policies("{ docMasks: { 9: { name: X } } }")]);
    expect(missing.code).toBe(1);
    expect(missing.out).toContain("not there");
    expect(missing.out).toContain("FolderMask");
    expect(missing.out).not.toContain("\u001b");
  });
});

describe("apply", () => {
  it("does nothing without consent, and needs --yes without a terminal", async () => {
    const file = await policies("{ syncJobs: { 4: { name: Contracts } } }");
    const nobody = await run(["apply", "-c", file]);
    expect(nobody.code).toBe(2);
    expect(nobody.err).toContain("--yes");
    const asked: string[] = [];
    const answer = (text: string) => async (question: string) => {
      asked.push(question);
      return text;
    };
    expect(await run(["apply", "-c", file], { ask: answer("n") })).toMatchObject({
      code: 1,
      err: "nothing was changed",
    });
    expect(updates()).toEqual([]);
    expect((await run(["apply", "-c", file], { ask: answer("yes") })).code).toBe(0);
    expect(asked).toEqual(["Change 1 object? (yes/no) ", "Change 1 object? (yes/no) "]);
    expect(updates()).toHaveLength(1);
    // Nothing differs any more, so nobody is asked.
    expect((await run(["apply", "-c", file])).code).toBe(0);
    expect(updates()).toHaveLength(1);
  });

  it("reports object by object, does what can be done, and writes who changed what", async () => {
    const file = await policies("{ syncJobs: { 4: { name: Contracts }, 99: { name: X } } }");
    const { code, out, err } = await run(["apply", "names", "-c", file, "--yes", "--json"]);
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject([
      { object: "syncJob-4", outcome: "applied", changes: [{ field: "name", after: "Contracts" }] },
      { object: "syncJob-99", outcome: "failed", changes: [] },
    ]);
    const lines = err.split("\n").map((line) => JSON.parse(line));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ event: "state.applied", target: "syncJob-4", after: ["Contracts"], isWell: true });
    expect(lines[0].actor).toMatch(/.@./);
  });

  it("retries after a lost answer; exits with 3 when the service is unreachable", async () => {
    const file = await policies("{ syncJobs: { 4: { name: Contracts } } }");
    const settings = readSettings({ SYNC_URL: "http://127.0.0.1:9", SYNC_TOKEN: "x" });
    expect((await run(["apply", "-c", file, "-y"], { settings })).code).toBe(3);
    sandbox.setFaults([parseFault("lost-answer,op=UpdateSyncJobById,first=1")]);
    expect((await run(["apply", "-c", file, "-y"])).code).toBe(0);
    expect(updates()).toHaveLength(1);
  });

  it("sends nothing more to a service that asks for a long wait", async () => {
    const file = await policies("{ syncJobs: { 4: { name: Contracts }, 5: { name: Invoices } } }");
    sandbox.setFaults([parseFault("429,op=UpdateSyncJobById,first=1,retryAfter=900")]);
    const { code, out } = await run(["apply", "-c", file, "-y", "--json"]);
    expect([code, updates()]).toEqual([1, []]);
    expect(JSON.parse(out)).toMatchObject([
      { outcome: "failed", detail: expect.stringContaining("429") },
      { outcome: "not-tried", detail: "the service asks clients to wait for 15m: apply again then" },
    ]);
  });

  it("reads a mask again when the question stood open for long", async () => {
    const file = await policies("{ docMasks: { 7: { name: Contract file } } }");
    const service = new SyncService({ baseUrl: sandbox.baseUrl, token: staticToken(sandbox.token) });
    onTestFinished(() => service.close());
    const ask = async () => {
      await service.updateEcmDocumentMaskById(7, { name: "Contract file" });
      const later = vi.spyOn(systemClock, "monotonicMs").mockImplementation(() => performance.now() + 1_200_000);
      onTestFinished(() => later.mockRestore());
      return "yes";
    };
    const { out } = await run(["apply", "-c", file], { ask });
    expect(out).toContain("nothing-to-do");
    expect(updates()).toHaveLength(1);
  });

  it("refuses the name of a policy that declares nothing", async () => {
    const file = await policies("{ syncJobs: { 4: { name: Contracts } } }");
    expect(await run(["apply", "other", "-c", file, "-y"])).toMatchObject({ code: 2 });
  });

  it("brings the example of the documentation to life", async () => {
    expect((await run(["validate", example])).code).toBe(0);
    expect((await run(["plan", "--state", example])).code).toBe(2);
    expect((await run(["apply", "-c", example, "-y"])).code).toBe(0);
    expect((await run(["plan", "--state", example])).code).toBe(0);
  });
});

describe("import", () => {
  it("writes a file that is right and declares what exists, so that nothing differs", async () => {
    const service = new SyncService({ baseUrl: sandbox.baseUrl, token: staticToken(sandbox.token) });
    await service.updateSyncJobById(4, { name: `Odd: "name" \${HOME} # no\n\ttwo` });
    service.close();
    const { code, out } = await run([
      "import",
      "-c",
      await policies("{ syncJobs: { 1: { name: X } } }"),
      "--repository",
      "HR",
    ]);
    expect(code).toBe(0);
    const file = join(folder, "imported.yaml");
    await writeFile(file, out);
    expect(await run(["validate", file])).toMatchObject({ code: 0 });
    const state = await run(["plan", "--state", file]);
    expect(state.code).toBe(0);
    // 20 sync jobs, each with two document masks and a folder mask.
    expect(state.out).toContain("60 objects: 60 as declared");
    expect(updates()).toHaveLength(1);
  });

  it("leaves the service out on request, for the folder that has it", async () => {
    await policies("{ syncJobs: { 1: { name: X } } }");
    const { out } = await run(["import", "--service", "main", "-c", folder, "--policies-only"]);
    await writeFile(join(folder, "imported.yaml"), out);
    expect(await readFile(join(folder, "imported.yaml"), "utf8")).not.toContain("baseUrl");
    expect((await run(["validate", folder])).code).toBe(0);
    expect((await run(["import", "--service", "nobody", "-c", folder])).code).toBe(2);
  });

  it("writes policies that start the sync jobs that masks name, with --runs", async () => {
    const file = await policies("{ syncJobs: { 1: { name: X } } }");
    const { code, out } = await run(["import", "--service", "main", "-c", file, "--repository", "HR", "--runs"]);
    expect(code).toBe(0);
    const imported = join(folder, "imported.yaml");
    await writeFile(imported, out);
    expect(await run(["validate", imported])).toMatchObject({ code: 0 });
    expect(out).toMatch(/ - name: main-hr-runs\n {4}service: main\n {4}repository: "HR"\n/);
    // 20 sync jobs, each with its name beside it; masks are no part of it.
    expect(out.match(/^ {8}- \d+ # \w.*$/gm)).toHaveLength(20);
    expect(out).not.toContain("docMask");
  });
});
