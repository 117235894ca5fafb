import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { apiCommand } from "../../../src/cli/api.ts";
import type { CommandIo } from "../../../src/cli/command-io.ts";
import { OutOfReachError, UsageError } from "../../../src/core/errors.ts";
import { operationNames } from "../../../src/service/client.ts";
import { folderForTest } from "../../support/folder.ts";
import { canary, errorOf, json, startServer } from "../service/test-server.ts";

/** Goes with what changes something: no question, and no Redis. */
const unasked = ["--yes", "--no-record"];

interface Run {
  readonly out: string[];
  readonly err: string[];
  readonly exitCode: number;
}

async function run(
  args: readonly string[],
  given: { token?: string; input?: string; ask?: CommandIo["ask"]; signal?: AbortSignal } = {},
): Promise<Run> {
  const out: string[] = [];
  const err: string[] = [];
  const io: CommandIo = {
    out: (line) => out.push(line),
    err: (line) => err.push(line),
    colours: false,
    settings: {
      token: "token" in given ? given.token : canary,
      logLevel: "info",
      noColor: true,
      variables: { TEST_TOKEN: canary },
    },
    readInput: async () => given.input ?? "",
    ...(given.ask === undefined ? {} : { ask: given.ask }),
    signal: given.signal ?? new AbortController().signal,
    exitCode: 0,
  };
  const program = new Command("syncline").exitOverride();
  const api = apiCommand(io).exitOverride();
  api.configureOutput({ writeOut: (text) => out.push(text), writeErr: (text) => err.push(text) });
  program.addCommand(api);
  await program.parseAsync(["api", ...args], { from: "user" });
  return { out, err, exitCode: io.exitCode };
}

const usage = async (args: readonly string[], given = {}) => {
  const error = await errorOf(run(args, given));
  expect(error).toBeInstanceOf(UsageError);
  return (error as Error).message;
};

describe("syncline api", () => {
  it("follows a next link of another origin at the configured one, and says so", async () => {
    const server = await startServer((request, response) => {
      const isLast = request.url?.includes("skip=1") ?? false;
      const link = isLast ? {} : { "@odata.nextLink": "https://inner.invalid:8443/odata/trigger?$skip=1" };
      json(response, { value: [{ triggerId: isLast ? 2 : 1 }], ...link });
    });
    const { out, err, exitCode } = await run(["GetTriggers", "--all", "--base-url", server.url]);
    expect(out).toEqual(['{"triggerId":1}', '{"triggerId":2}']);
    expect(err.join("\n")).toContain("another origin");
    expect(exitCode).toBe(0);
  });

  it("prints one entity as readable JSON, or one line with --json, in any case", async () => {
    const server = await startServer((_, response) => json(response, { syncJobId: 42, name: "A\u009b2J" }));
    const at = ["--base-url", server.url, "--key", "42"];
    expect((await run(["getsyncjobbyid", ...at])).out).toEqual(['{\n  "syncJobId": 42,\n  "name": "A\\u009b2J"\n}']);
    expect((await run(["GetSyncJobById", ...at, "--json"])).out).toEqual(['{"syncJobId":42,"name":"A\\u009b2J"}']);
    expect(server.seen[0]?.headers.authorization).toBe(`Bearer ${canary}`);
  });

  it("sends repository, select, expand and the path form", async () => {
    const server = await startServer((_, response) => json(response, {}));
    await run([
      "GetSyncJobById",
      "--base-url",
      server.url,
      "--key",
      "1",
      "--repository",
      "R",
      "--select",
      "a, b",
      "--expand",
      "c",
      "--path-form",
      "segment",
    ]);
    expect(server.seen[0]?.url).toBe("/odata/syncjobs/1?repository=R&$select=a,b&$expand=c");
  });

  it("prints a page with its link, all items with --all, the number with --count", async () => {
    const server = await startServer((request, response) => {
      if (request.url.includes("$count")) response.end("3");
      else if (request.url.includes("p=2")) json(response, { value: [{ triggerId: 3 }] });
      else json(response, { value: [{ triggerId: 1 }, { triggerId: 2 }], "@odata.nextLink": "?p=2" });
    });
    const at = ["GetTriggers", "--base-url", server.url];
    expect(JSON.parse((await run(at)).out.join(""))).toEqual({
      value: [{ triggerId: 1 }, { triggerId: 2 }],
      "@odata.nextLink": `${server.url}/odata/trigger?[…]`,
    });
    expect((await run([...at, "--all"])).out).toEqual(['{"triggerId":1}', '{"triggerId":2}', '{"triggerId":3}']);
    expect((await run([...at, "--count"])).out).toEqual(["3"]);
  });

  it.each([
    ["true", 200, ["true"], 0],
    ["", 204, ["true"], 0],
    ["false", 200, ["false"], 1],
  ] as const)("prints a deletion answered with %j (%i)", async (body, status, out, exitCode) => {
    const server = await startServer((request, response) => {
      if (request.method === "GET") return json(response, { syncJobId: 1, name: "Old" });
      response.writeHead(status);
      response.end(body);
    });
    const at = ["--key", "1", "--name", "Old", "--base-url", server.url];
    const result = await run(["DeleteSyncJobById", ...at, ...unasked]);
    expect([result.out, result.exitCode]).toEqual([out, exitCode]);
    expect(result.err.length).toBe(exitCode);
  });

  it("prints a line for a start, or an object with --json", async () => {
    const server = await startServer((_, response) => response.end());
    const at = ["--key", "42", "--base-url", server.url, ...unasked];
    expect((await run(["RunSyncJob", ...at])).out).toEqual(["sync job 42: the service accepted the start of a run"]);
    expect((await run(["EnableSyncJobById", ...at])).out).toEqual(["sync job 42: activated"]);
    expect((await run(["RunSyncJob", ...at, "--json"])).out).toEqual([
      '{"operation":"RunSyncJob","key":42,"status":"accepted"}',
    ]);
  });

  it("reads a body from a file or standard input", async () => {
    const server = await startServer((request, response) => json(response, JSON.parse(request.body)));
    const folder = folderForTest();
    await writeFile(join(folder, "body.json"), '\uFEFF{"name":"F"}');
    for (const name of [
      "UpdateSyncJobById",
      "UpdateEcmDocumentMaskById",
      "UpdateDriveSyncTargetById",
      "UpdateSiteSyncTargetById",
    ]) {
      const at = [name, "--key", "1", "--json", "--base-url", server.url, ...unasked, "--body"];
      expect((await run([...at, join(folder, "body.json")])).out).toEqual(['{"name":"F"}']);
      expect((await run([...at, "-"], { input: '{"name":"I"}' })).out).toEqual(['{"name":"I"}']);
    }
  });

  it("prints an identity, and every list that there is", async () => {
    const server = await startServer((_, response) => json(response, { value: [{ id: "a" }] }));
    const at = ["--base-url", server.url, "--json"];
    const identity = await run(["GetIdentityById", "--key", "a", "--repository", "R", ...at]);
    expect(identity.out).toEqual(['{"value":[{"id":"a"}]}']);
    for (const name of ["GetJobMasks", "GetApprovals", "GetAuthActivities", "GetActivities", "GetConflictDetails"]) {
      expect((await run([name, ...at])).out).toEqual(['{"value":[{"id":"a"}]}']);
    }
  });

  it("finds the only service of a policy file by itself, and asks which of two", async () => {
    const server = await startServer((_, response) => json(response, { value: [] }));
    const file = join(folderForTest(), "policies.yaml");
    const service = `{ baseUrl: "${server.url}", token: { env: TEST_TOKEN } }`;
    await writeFile(file, `apiVersion: syncline/v1\nservices: { main: ${service} }\n`);
    expect((await run(["GetTriggers", "--config", file, "--json"])).out).toEqual(['{"value":[]}']);
    await writeFile(file, `apiVersion: syncline/v1\nservices: { main: ${service}, other: ${service} }\n`);
    expect(await usage(["GetTriggers", "--config", file])).toContain("say which service: --service NAME");
    expect((await run(["GetTriggers", "--config", file, "--service", "other", "--json"])).exitCode).toBe(0);
  });

  it("asks before it changes something, and sends nothing without a yes", async () => {
    const server = await startServer((_, response) => response.end());
    const at = ["RunSyncJob", "--key", "42", "--repository", "HR", "--base-url", server.url, "--no-record"];
    const asked: string[] = [];
    const answer = (text: string) => async (question: string) => {
      asked.push(question);
      return text;
    };
    const no = await run(at, { ask: answer("") });
    expect([no.exitCode, no.out, no.err]).toEqual([1, [], ["nothing was sent"]]);
    expect(server.seen).toEqual([]);
    expect((await run(at, { ask: answer("yes") })).exitCode).toBe(0);
    expect(server.seen).toHaveLength(1);
    expect(asked[0]).toBe("RunSyncJob 42 of the service at --base-url, HR: send it? (yes/no) ");
  });

  it("deletes nothing that has another name than the guard", async () => {
    const server = await startServer((_, response) => json(response, { syncJobId: 42, name: "Contracts" }));
    const at = ["--key", "42", "--name", "contracts", "--base-url", server.url, ...unasked];
    const { exitCode, out, err } = await run(["DeleteSyncJobById", ...at]);
    expect([exitCode, out]).toEqual([1, []]);
    expect(err).toEqual(['sync job 42 has "Contracts", not "contracts": nothing was sent']);
    expect(server.seen.map(({ method }) => method)).toEqual(["GET"]);
  });

  it("sends nothing that it cannot record, unless told so", async () => {
    const server = await startServer((_, response) => response.end());
    const at = ["RunSyncJob", "--key", "1", "--base-url", server.url, "--redis-url", "redis://127.0.0.1:1", "--yes"];
    const error = await errorOf(run(at));
    expect(error).toBeInstanceOf(OutOfReachError);
    expect((error as Error).message).toMatch(/Nothing was sent: --no-record sends it without a record$/);
    expect(server.seen).toEqual([]);
    expect((await run([...at, "--no-record"])).exitCode).toBe(0);
  });

  it("lists all fifteen operations with method and path in its help", async () => {
    const out: string[] = [];
    const program = new Command("syncline");
    const io = { settings: {} } as unknown as CommandIo;
    const api = apiCommand(io)
      .exitOverride()
      .configureOutput({ writeOut: (text) => out.push(text) });
    program.exitOverride().addCommand(api);
    await errorOf(program.parseAsync(["api", "--help"], { from: "user" }));
    const help = out.join("");
    for (const name of operationNames) expect(help).toContain(name);
    expect(help).toMatch(/RunSyncJob +POST +\/api\/syncjobs\/run\(\{key\}\)/);
  });
});

describe("syncline api, used wrongly", () => {
  const url = ["--base-url", "http://127.0.0.1:1"];

  it.each([
    [["RunSyncJobs", ...url], "Did you mean RunSyncJob?"],
    [["getactivites", ...url], "Did you mean GetActivities?"],
    [["zzz", ...url], 'there is no operation "zzz". "syncline api --help" lists all fifteen.'],
    [["RunSyncJob", ...url], "RunSyncJob needs a key: add --key 42"],
    [["RunSyncJob", ...url, "--key", "x"], '--key "x" is not a whole number'],
    [["RunSyncJob", ...url, "--key", "1.5"], "is not a whole number"],
    [["RunSyncJob", ...url, "--key", "1", "--body", "x"], "takes no --body"],
    [["RunSyncJob", ...url, "--key", "1", "--select", "a"], "--select is for reading"],
    [["RunSyncJob", ...url, "--key", "1", "--all"], "--all is for lists"],
    [["GetSyncJobById", ...url, "--key", "1", "--count"], "--count is for lists"],
    [["GetSyncJobById", ...url, "--key", "1", "--body", "-"], "takes no --body"],
    [["GetTriggers", ...url, "--key", "1"], "takes no --key"],
    [["GetTriggers", ...url, "--all", "--count"], "exclude each other"],
    [["GetTriggers", ...url, "--count", "--select", "a"], "changes nothing about --count"],
    [["GetTriggers", ...url, "--select", "a,,b"], "--select has an empty name"],
    [["UpdateSyncJobById", ...url, "--key", "1"], "needs --body FILE"],
    [["UpdateSyncJobById", ...url, "--key", "1", "--body", "/nowhere.json"], "/nowhere.json cannot be read (ENOENT)"],
    [["UpdateSyncJobById", ...url, "--key", "1", "--body", "/dev/zero"], "over 1 MiB"],
    [["UpdateSyncJobById", ...url, "--key", "1", "--body", "-"], "is not JSON"],
    [["GetIdentityById", ...url, "--key", "a"], "needs --repository"],
    [["GetTriggers"], "say which service"],
    [["GetTriggers", ...url, "--config", "x", "--service", "y"], "--config does nothing beside --base-url"],
    [
      ["GetTriggers", "--config", "x", "--service", "y", "--path-form", "segment"],
      "--path-form does nothing without --base-url",
    ],
    [["GetTriggers", "--config", "/nowhere.yaml"], "/nowhere.yaml cannot be used"],
    [["GetTriggers", ...url, "--yes"], "--yes does nothing with GetTriggers, which only reads"],
    [["GetTriggers", ...url, "--reason", "x"], "--reason does nothing with GetTriggers"],
    [["RunSyncJob", ...url, "--key", "1", "--name", "x"], "--name does nothing with RunSyncJob"],
    [["RunSyncJob", ...url, "--key", "1", "--no-record"], "there is no terminal to ask on: add --yes"],
    [["DeleteSyncJobById", ...url, "--key", "1", "--yes"], "DeleteSyncJobById needs --name"],
    [["GetTriggers", "--base-url", "http://u:p@h"], "--base-url"],
  ])("%j says what to do", async (args, message) => {
    expect(await usage(args)).toContain(message);
  });

  it("without a token, or with one that cannot be one, says so and does not show it", async () => {
    expect(await usage(["GetTriggers", ...url], { token: undefined })).toContain("SYNCLINE_TOKEN");
    const message = await usage(["GetTriggers", ...url], { token: `${canary}\nx` });
    expect(message).toContain("SYNCLINE_TOKEN");
    expect(message).not.toContain(canary);
  });
});

describe("syncline api, when the service fails", () => {
  const failing = (status: number) =>
    startServer((_, response) => {
      response.writeHead(status, { "retry-after": status === 429 ? "60" : "", "x-correlation-id": "c-1" });
      response.end('{"error":{"code":"E","message":"why"}}');
    });

  it.each([
    [400, "bad-request", 1],
    [401, "unauthorized", 1],
    [403, "forbidden", 1],
    [404, "not-found", 1],
    [429, "throttled", 1],
    [302, "contract", 1],
    [500, "server", 1],
    [502, "answer-lost", 3],
    [504, "answer-lost", 3],
  ])("status %i gives kind %s and exit code %i", async (status, kind, exitCode) => {
    const server = await failing(status);
    const result = await run(["EnableSyncJobById", "--key", "1", "--base-url", server.url, ...unasked]);
    expect(result.exitCode).toBe(exitCode);
    expect(result.out).toEqual([]);
    expect(result.err.every((line) => line.startsWith("error: "))).toBe(true);
    expect(result.err.join("\n")).toContain(`kind: ${kind}, status: ${status}`);
    expect(result.err.join("\n")).toContain("c-1");
    expect(result.err.join("\n")).not.toContain(canary);
  });

  it("says what the interface and the service say", async () => {
    const server = await failing(404);
    const at = ["--key", "1", "--body", "-", "--base-url", server.url, ...unasked];
    const { err } = await run(["UpdateSyncJobById", ...at], { input: '{"name":"N"}' });
    expect(err[0]).toBe(
      "error: UpdateSyncJobById (PUT /odata/syncjobs(1)): the service answered with status 404; the interface says: no sync job with the id (service-interface §7); the service says: E: why",
    );
  });

  it("says of a lost answer to a start that it may or may not have happened", async () => {
    const server = await startServer((_, __, raw) => raw.socket.resetAndDestroy());
    const result = await run(["RunSyncJob", "--key", "1", "--base-url", server.url, ...unasked]);
    expect(result.exitCode).toBe(3);
    expect(result.err.join("\n")).toContain("RunSyncJob may or may not have happened");
    expect(server.seen).toHaveLength(1);
  });

  it("says of a service out of reach that nothing was done", async () => {
    const result = await run(["RunSyncJob", "--key", "1", "--base-url", "http://127.0.0.1:1", ...unasked]);
    expect(result.exitCode).toBe(3);
    expect(result.err.join("\n")).toContain("nothing was done");
  });

  it("prints what it read before a bad link, then the reason", async () => {
    const server = await startServer((_, response) =>
      json(response, { value: [{ a: 1 }], "@odata.nextLink": "https://evil/" }),
    );
    for (const args of [["--all"], ["--json"]]) {
      const result = await run(["GetActivities", "--base-url", server.url, ...args]);
      expect(result.out.join("")).toContain('{"a":1}');
      expect(result.err.join("\n")).toContain("kind: paging, reason: link-other-origin");
      expect(result.exitCode).toBe(1);
    }
  });
});
