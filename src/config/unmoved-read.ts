// Reads policy files as of one moment. A folder may change while its files are read one after another: a Kubernetes ConfigMap
// swaps the link `..data` under all of them, an editor writes several files. Called by watch-policies.ts. Never waits, never throws.
import { realpath, stat } from "node:fs/promises";
import { hashText } from "../core/stable-hash.ts";
import { type FileTexts, listPolicyFiles, readPolicyFiles } from "./read-policy-files.ts";

/** What was read, and a hash over all of it: names, texts and what could not be read. */
export interface UnmovedRead {
  readonly read: FileTexts;
  readonly hash: string;
}

/** The files of a path, or undefined when one of them was another one, or another content, after reading than before. */
export async function readUnmoved(path: string): Promise<UnmovedRead | undefined> {
  const before = await stateOf(path);
  const read = await readPolicyFiles(path);
  if (before !== (await stateOf(path))) return undefined;
  return { read, hash: hashText(JSON.stringify([read.files, read.texts, read.problems]), 64) };
}

/** Which files stand behind a path right now: where links lead, which inode, how long, written when. */
async function stateOf(path: string): Promise<string> {
  try {
    const files = await listPolicyFiles(path);
    return JSON.stringify(await Promise.all(files.map(fileState)));
  } catch (error) {
    return codeOf(error);
  }
}

async function fileState(file: string): Promise<string> {
  try {
    const target = await realpath(file);
    const { ino, size, mtimeNs, ctimeNs } = await stat(target, { bigint: true });
    return [target, ino, size, mtimeNs, ctimeNs].join(" ");
  } catch (error) {
    return `${file} ${codeOf(error)}`;
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}
