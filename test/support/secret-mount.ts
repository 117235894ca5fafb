// A folder of secrets as Kubernetes mounts one: files are links into `..data`, which is a link that
// is swapped in one step.
import { mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { folderForTest } from "./folder.ts";

/** The mounted folder. */
export interface SecretMount {
  /** The path of a file in it. */
  path(name: string): string;
  /** Replaces all files at once, as the kubelet does. */
  swap(files: Readonly<Record<string, string>>): Promise<void>;
}

/** Mounts these files; the folder goes away after the test. */
export async function mountSecrets(files: Readonly<Record<string, string>>): Promise<SecretMount> {
  const folder = folderForTest();
  let version = 0;
  const swap = async (next: Readonly<Record<string, string>>) => {
    version += 1;
    const name = `..version-${version}`;
    await mkdir(join(folder, name));
    for (const [file, text] of Object.entries(next)) await writeFile(join(folder, name, file), text);
    await symlink(name, join(folder, "..data_tmp"));
    await rename(join(folder, "..data_tmp"), join(folder, "..data"));
    await rm(join(folder, `..version-${version - 1}`), { recursive: true, force: true });
  };
  await swap(files);
  for (const file of Object.keys(files)) await symlink(join("..data", file), join(folder, file));
  return { path: (name) => join(folder, name), swap };
}
