// Makes one file of a module and all that it loads: starting processes by the hundred is most of
// what the tests with processes cost, and a bundle starts in less than half the time. Called by
// global-bundle.ts and chaos/replica.ts. What the code does stays as it is, and a change of the
// sources does not reach a run that goes on.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import http from "node:http";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type Plugin, rolldown } from "rolldown";

const folder = fileURLToPath(new URL("../../.cache/bundled/", import.meta.url));

/**
 * `import "node:http"` reads its property `WebSocket`, which loads undici: an eighth of a start.
 * What a process needs of it is required instead.
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

/** Modules go on finding the files beside them: Lua scripts, assets. */
const ownPlaces: Plugin = {
  name: "own-places",
  transform: (code, id) =>
    id.endsWith(".ts") && code.includes("import.meta.url")
      ? code.replaceAll("import.meta.url", JSON.stringify(pathToFileURL(id).href))
      : null,
};

/** Bundles this module; returns the file, which stays the same as long as its text does. */
export async function bundle(mainFile: string, name: string): Promise<string> {
  const made = await rolldown({
    input: mainFile,
    platform: "node",
    logLevel: "silent",
    plugins: [httpWithoutUndici, ownPlaces],
  });
  try {
    // One file, in which what is imported later is run later: the clock is shifted before anything
    // of Syncline is.
    // Names stay: reports tell the class of an error.
    const minify = { compress: false, mangle: false };
    const { output } = await made.generate({ format: "esm", codeSplitting: false, minify });
    const file = `${folder}${name}.mjs`;
    if (textOf(file) !== output[0].code) replace(file, output[0].code);
    return file;
  } finally {
    await made.close();
  }
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

/** At once: another run may start the file just now. */
function replace(file: string, text: string): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${file}.${process.pid}`, text);
  renameSync(`${file}.${process.pid}`, file);
}
