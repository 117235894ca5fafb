// Which code a replica runs: this folder's, or that of an earlier commit, checked out beside it.
// Called by cluster.ts.
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** One build of Syncline. */
export interface Build {
  /** `this`, or the first digits of the commit. */
  readonly name: string;
  readonly mainFile: string;
  /** The policies that come with it: what an older build wrote, a newer one reads. */
  readonly config: string;
  /** Whether it has `--health-port`. */
  readonly hasHealth: boolean;
}

const run = promisify(execFile);
const root = fileURLToPath(new URL("../../", import.meta.url));

/** The code of this folder. */
export const thisBuild: Build = buildOf("this", root);

/**
 * The code of a commit, in a worktree of its own under `.cache/cluster`; made once and kept. It
 * shares this folder's packages, so a commit that needs others does not start.
 * @throws Error when git does not know the commit.
 */
export async function checkOut(commit: string): Promise<Build> {
  const { stdout } = await run("git", ["-C", root, "rev-parse", "--verify", "--end-of-options", `${commit}^{commit}`]);
  const hash = stdout.trim();
  const folder = join(root, ".cache", "cluster", hash);
  if (!existsSync(join(folder, "src", "main.ts"))) {
    mkdirSync(join(root, ".cache", "cluster"), { recursive: true });
    // By force: its folder may have been removed by hand.
    await run("git", ["-C", root, "worktree", "add", "--force", "--detach", folder, hash]);
  }
  const packages = join(folder, "node_modules");
  if (!existsSync(packages)) symlinkSync(join(root, "node_modules"), packages);
  return buildOf(hash.slice(0, 7), folder);
}

function buildOf(name: string, folder: string): Build {
  const serve = readFileSync(join(folder, "src", "cli", "serve.ts"), "utf8");
  return {
    name,
    mainFile: join(folder, "src", "main.ts"),
    config: join(folder, "config", "demo.yaml"),
    hasHealth: serve.includes("ealthOptions"),
  };
}
