// Rings when something that could be a policy changes under a path. Called by watch-policies.ts, which looks for itself what
// has changed: an alarm may ring for nothing, and when the system gives none, the poll finds the change later.
import { type FSWatcher, watch } from "node:fs";
import { stat } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";

/** Watches the folder of a path, and the path itself when it is a folder. */
export class FolderAlarm {
  readonly #path: string;
  readonly #ring: () => void;
  #watchers: readonly FSWatcher[] = [];

  constructor(path: string, ring: () => void) {
    this.#path = resolve(path);
    this.#ring = ring;
  }

  /**
   * Sets the alarm, anew if it was set: a watched folder that was replaced by another one rings no more. Answers why the
   * system refuses, or undefined. A folder that is not there is no refusal.
   */
  async set(): Promise<string | undefined> {
    const old = this.#watchers;
    const isFolder = await stat(this.#path).then(
      (found) => found.isDirectory(),
      () => false,
    );
    const name = basename(this.#path);
    const refusals: string[] = [];
    const watchers = [
      // A file is replaced by renaming; a path may be a link that is set to another folder.
      this.#watch(dirname(this.#path), (changed) => changed === name || changed.startsWith(".."), refusals),
      isFolder
        ? this.#watch(this.#path, (changed) => changed.startsWith("..") || /\.ya?ml$/.test(changed), refusals)
        : undefined,
    ];
    this.#watchers = watchers.filter((watcher) => watcher !== undefined);
    for (const watcher of old) watcher.close();
    return refusals[0];
  }

  /** Lets go of all folders. */
  off(): void {
    for (const watcher of this.#watchers) watcher.close();
    this.#watchers = [];
  }

  #watch(folder: string, concerns: (changed: string) => boolean, refusals: string[]): FSWatcher | undefined {
    try {
      const watcher = watch(folder, { persistent: false }, (_event, changed) => {
        if (changed === null || concerns(changed)) this.#ring();
      });
      return watcher.on("error", () => this.#ring());
    } catch (error) {
      const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
      if (code !== "ENOENT") refusals.push(code);
      return undefined;
    }
  }
}
