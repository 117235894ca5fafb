// Reads policy files: one file, or a folder's *.yaml and *.yml. Reads regular files only, within
// limits, and never throws for what is on the disk.
import { isUtf8 } from "node:buffer";
import { open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { errorCode } from "../core/errors.ts";
import { hashText } from "../core/stable-hash.ts";
import { type Problem, problemOfFile } from "./problem.ts";
import { policyLimits } from "./rules/policy-limits.ts";
import { createSourceText } from "./yaml/source-text.ts";

interface FileText {
  readonly file: string;
  readonly text: string;
}

/** The readable files, sorted by name, and the problems of the others. */
export interface FileTexts {
  readonly texts: readonly FileText[];
  /** Every file found, readable or not. */
  readonly files: readonly string[];
  readonly problems: readonly Problem[];
}

/** A mark in each part of a set that lies in several ConfigMaps: the same text in all of them. */
const partMark = /^\.part-(\d{1,3})-of-(\d{1,3})$/;
const partMarkBytesMax = 256;

/** Reads a file or a folder, without hidden entries: `..data` of Kubernetes would be read twice. */
export async function readPolicyFiles(path: string): Promise<FileTexts> {
  let files: readonly string[];
  try {
    files = await listPolicyFiles(path);
  } catch (error) {
    return { texts: [], files: [path], problems: [problemOfFile(path, `cannot be read: ${reasonOf(error)}`)] };
  }
  const wrong = problemOfCount(path, files.length) ?? (await findTornSet(path));
  if (wrong !== undefined) return { texts: [], files, problems: [wrong] };
  const texts: FileText[] = [];
  const problems: Problem[] = [];
  for (const file of files) {
    const result = await readText(file);
    if ("text" in result) texts.push(result);
    else problems.push(result);
  }
  return { texts, files, problems };
}

/** Changes with any character of the files, and with `more`. */
export function hashOfTexts({ files, texts, problems }: FileTexts, more: readonly string[] = []): string {
  return hashText(JSON.stringify([files, texts, problems, more]), 64);
}

function problemOfCount(path: string, count: number): Problem | undefined {
  if (count === 0) return problemOfFile(path, "holds no *.yaml or *.yml file", "files in subfolders are not read");
  if (count <= policyLimits.filesMax) return undefined;
  const message = `holds ${count} policy files: ${policyLimits.filesMax} is the most`;
  return problemOfFile(path, message, "put several policies into one file");
}

/** The files of a path, sorted. @throws the file system's error when the path does not exist. */
export async function listPolicyFiles(path: string): Promise<readonly string[]> {
  return (await stat(path)).isDirectory() ? listFolder(path) : [path];
}

async function listFolder(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const files: string[] = [];
  for (const entry of entries) {
    const { name } = entry;
    if (name.startsWith(".") || !/\.ya?ml$/.test(name)) continue;
    const file = join(folder, name);
    // What a link leads to, only the file system tells.
    const found = entry.isFile() ? undefined : await stat(file).catch(() => undefined);
    // A dangling link stays in the list, so that it is reported.
    if (found === undefined || !found.isDirectory()) files.push(file);
  }
  return files.sort();
}

/**
 * What is wrong with a folder of several ConfigMaps: the kubelet brings each in its own time. In
 * between, a policy that moves to another file is in none, and would count as removed.
 */
async function findTornSet(path: string): Promise<Problem | undefined> {
  const marks = await readdir(path).then(
    (names) => names.filter((name) => partMark.test(name)),
    () => [],
  );
  if (marks.length === 0) return undefined;
  const counts = new Set(marks.map((name) => Number(partMark.exec(name)?.[2])));
  const sets = new Set<string>();
  for (const name of marks) {
    const bytes = await readAtMost(join(path, name), partMarkBytesMax).catch(() => undefined);
    sets.add(bytes?.toString("utf8") ?? `${name} cannot be read`);
  }
  const [count] = counts;
  if (counts.size === 1 && sets.size === 1 && count === marks.length) return undefined;
  const message = `holds parts of different sets of policies, or not all of one: ${marks.sort().slice(0, 10).join(", ")}`;
  const hint = "its ConfigMaps change one after the other: wait a minute, or run helm upgrade again";
  return problemOfFile(path, message, hint);
}

const fileSize = { bytesMax: policyLimits.fileBytesMax, hint: "split it into several files of a folder" };

/** The text of one file, or why it cannot be used. `hint`: for a file that is too large. */
export async function readText(
  file: string,
  { bytesMax, hint }: { readonly bytesMax: number; readonly hint: string } = fileSize,
): Promise<FileText | Problem> {
  let bytes: Buffer;
  try {
    // A pipe or a device could block, or never end.
    if (!(await stat(file)).isFile()) return problemOfFile(file, "is not a regular file");
    bytes = await readAtMost(file, bytesMax + 1);
  } catch (error) {
    return problemOfFile(file, `cannot be read: ${reasonOf(error)}`);
  }
  if (bytes.length > bytesMax) return problemOfFile(file, `is larger than ${bytesMax / 1024} KiB`, hint);
  return toText(file, bytes);
}

async function readAtMost(file: string, bytesMax: number): Promise<Buffer> {
  const handle = await open(file, "r");
  try {
    const chunks: Buffer[] = [];
    for await (const chunk of handle.createReadStream({ end: bytesMax - 1, autoClose: false })) chunks.push(chunk);
    return Buffer.concat(chunks);
  } finally {
    await handle.close();
  }
}

/** The text of a file's bytes, without a byte order mark. */
function toText(file: string, bytes: Buffer): FileText | Problem {
  if (!isUtf8(bytes)) return problemOfFile(file, "is not UTF-8 text", "save it as UTF-8");
  const text = bytes.toString("utf8").replace(/^\uFEFF/, "");
  const control = /[^\P{Cc}\t\n\r]/u.exec(text);
  if (control === null) return { file, text };
  const code = control[0].codePointAt(0)?.toString(16).padStart(4, "0");
  const range = [control.index, control.index + 1] as const;
  return createSourceText(file, text).problemAt(range, `a control character (U+${code}) stands here`, "remove it");
}

function reasonOf(error: unknown): string {
  const code = errorCode(error);
  if (code === "ENOENT") return "there is no such file or folder";
  if (code === "EACCES" || code === "EPERM") return "access is denied";
  return code;
}
