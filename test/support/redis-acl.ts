// The rights that docs/running.md tells operators to give to Syncline's user; read from the page,
// so that what is tried is what it says.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const page = join(import.meta.dirname, "../../docs/running.md");

/** The rules that follow `~{syncline}*` in the ACL line. */
export function aclCommands(): string[] {
  const line = /^user syncline on .*~\{syncline\}\* (.+)$/m.exec(readFileSync(page, "utf8"))?.[1];
  if (line === undefined) throw new Error("docs/running.md has no ACL line");
  return line.trim().split(/\s+/);
}
