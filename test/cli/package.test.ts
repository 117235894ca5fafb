// What is shipped: the compiled package, packed and unpacked as npm would, run without the sources.
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));
const tsc = join(root, "node_modules", ".bin", "tsc");
let folder: string;
let installed: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "syncline-package-"));
  installed = join(folder, "node_modules", "syncline");
  await mkdir(installed, { recursive: true });
  // `npm pack` compiles first (prepack); its tarball holds what a user gets.
  const { stdout } = await run("npm", ["pack", "--json", "--pack-destination", folder], { cwd: root });
  const [{ filename }] = JSON.parse(stdout.slice(stdout.indexOf("["))) as [{ filename: string }];
  await run("tar", ["-xzf", join(folder, filename), "--strip-components=1", "-C", installed]);
  await symlink(join(root, "node_modules"), join(installed, "node_modules"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe("the package", () => {
  it("has the command, compiled", async () => {
    const { stdout } = await run(process.execPath, [join(installed, "dist", "main.js"), "--version"]);
    expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it("has the Lua scripts beside the code that loads them", async () => {
    const store = join(installed, "dist", "store", "history.js");
    await run(process.execPath, ["--input-type=module", "-e", `await import(${JSON.stringify(store)})`]);
  });

  it("has the client as syncline/client, with types that a strict program can use", async () => {
    const program = `import { SyncService, staticToken, type ServiceError } from "syncline/client";
const service = new SyncService({ baseUrl: "http://127.0.0.1:9", token: staticToken("t"), retries: 0 });
const count: Promise<number> = service.count("GetApprovals", { repository: "HR" });
const kind: string = await count.then(() => "none", (error: ServiceError) => error.kind);
process.stdout.write(kind);
`;
    await writeFile(join(folder, "package.json"), '{ "type": "module" }');
    await writeFile(join(folder, "try.ts"), program);
    await symlink(join(root, "node_modules", "@types"), join(folder, "node_modules", "@types")).catch(() => {});
    await run(
      tsc,
      [
        "--strict",
        "--noEmit",
        "--skipLibCheck",
        "--module",
        "nodenext",
        "--target",
        "es2024",
        "--types",
        "node",
        "try.ts",
      ],
      { cwd: folder },
    );
    const { stdout } = await run(process.execPath, ["try.ts"], { cwd: folder });
    expect(stdout).toBe("unreachable");
  });

  it("has the types of the API as syncline/api, for a client of ten lines", async () => {
    const program = `import type { Operations, Problem } from "syncline/api";
type Read = { [Name in keyof Operations]: Operations[Name]["method"] extends "GET" ? Name : never }[keyof Operations];
async function get<Name extends Read>(url: Operations[Name]["url"], query: Operations[Name]["query"]) {
  const answer = await fetch("http://127.0.0.1:9" + url + "?" + new URLSearchParams(query as Record<string, string>));
  if (!answer.ok) throw new Error(((await answer.json()) as Problem).detail);
  return (await answer.json()) as Operations[Name]["answer"];
}
const { items, next } = await get<"listPolicies">("/api/v1/policies", { health: "failing", limit: 5 });
const lines: string[] = items.map(({ name, since }) => name + (since ?? "") + (next ?? ""));
// @ts-expect-error: there is no such health.
await get<"listPolicies">("/api/v1/policies", { health: "fine" });
process.stdout.write(lines.join());
`;
    await writeFile(join(folder, "package.json"), '{ "type": "module" }');
    await writeFile(join(folder, "try-api.ts"), program);
    await symlink(join(root, "node_modules", "@types"), join(folder, "node_modules", "@types")).catch(() => {});
    const strict = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2024", "--types", "node"];
    await run(tsc, [...strict, "try-api.ts"], { cwd: folder });
  });

  it("holds neither sources nor tests", async () => {
    const { stdout } = await run("find", [
      installed,
      "-name",
      "*.ts",
      "-not",
      "-name",
      "*.d.ts",
      "-not",
      "-path",
      "*/node_modules/*",
    ]);
    expect(
      stdout.split("\n").filter((line) => line !== "" && !line.startsWith(join(installed, "node_modules"))),
    ).toEqual([]);
  });
});
