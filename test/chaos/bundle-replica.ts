// Makes one file of a replica and all that it loads: starting hundreds of them is most of what a
// chaos costs, and a bundle starts in less than half the time. Called by replica.ts. What the code
// does stays as it is, and a change of the sources does not reach a chaos that runs.
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Plugin, rolldown } from "rolldown";

/** A bundle, and the folder that Node keeps what it compiled of it in. */
export interface ReplicaBundle {
  readonly file: string;
  readonly compileCache: string;
}

/**
 * `import "node:http"` reads its property `WebSocket`, which loads undici: an eighth of a start.
 * What a replica needs of it is required instead.
 */
const httpWithoutUndici: Plugin = {
  name: "http-without-undici",
  resolveId: (id) => (id === "node:http" ? "\0http" : null),
  load: (id) => {
    if (id !== "\0http") return null;
    const names = Object.keys(http).filter((name) => !["WebSocket", "CloseEvent", "MessageEvent"].includes(name));
    return `import { createRequire } from "node:module";
const http = createRequire(import.meta.url)("node:http");
export default http;
export const { ${names.join(", ")} } = http;`;
  },
};

/** Bundles this module into a folder that goes with this process. */
export async function bundleReplica(mainFile: string): Promise<ReplicaBundle> {
  const folder = mkdtempSync(join(tmpdir(), "syncline-replica-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "replica.mjs");
  const bundle = await rolldown({
    input: mainFile,
    platform: "node",
    logLevel: "silent",
    plugins: [httpWithoutUndici],
  });
  try {
    // One file, in which what is imported later is run later: the clock is shifted before anything
    // of Syncline is.
    // Names stay: reports tell the class of an error.
    const minify = { compress: false, mangle: false };
    await bundle.write({ file, format: "esm", codeSplitting: false, minify });
  } finally {
    await bundle.close();
  }
  // The store loads its Lua scripts from beside the module that it is in.
  cpSync(fileURLToPath(new URL("../../src/store/lua", import.meta.url)), join(folder, "lua"), { recursive: true });
  return { file, compileCache: join(folder, "compiled") };
}
