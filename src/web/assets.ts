// The files that pages load: style, script, icon. Read once, named with their hash. Used by
// web-app.ts, which serves them, and by pages/layout.ts, which names them.
import { readFileSync } from "node:fs";
import { hashText } from "../core/stable-hash.ts";
import { Representation } from "./representation.ts";

/** A file as it is served. */
interface Asset {
  readonly path: string;
  readonly body: Representation;
}

const folder = new URL("./assets/", import.meta.url);

function load(name: string, type: string, from: URL = new URL(name, folder)): [string, Asset] {
  const text = readFileSync(from, "utf8");
  return [name, { path: `/assets/${hashText(text, 12)}/${name}`, body: new Representation(text, type) }];
}

const idiomorph = new URL(import.meta.resolve("idiomorph/dist/idiomorph.min.js"));

/** The files by name. */
export const assets: ReadonlyMap<string, Asset> = new Map([
  load("style.css", "text/css; charset=utf-8"),
  load("live.js", "text/javascript; charset=utf-8"),
  load("icon.svg", "image/svg+xml"),
  load("idiomorph.js", "text/javascript; charset=utf-8", idiomorph),
]);

/** The address of a file. */
export function assetPath(name: string): string {
  return assets.get(name)?.path ?? "";
}
