// Whether the peer graphile-worker (peers/graphile.mjs) can be measured here, and where
// PostgreSQL's programs are: Debian keeps those of each version in a folder of their own.
import { existsSync, globSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder with `initdb` and `postgres`; undefined without PostgreSQL. */
export function postgresFolder(): string | undefined {
  const folders = [...globSync("/usr/lib/postgresql/*/bin"), ...(process.env["PATH"] ?? "").split(":")];
  return folders.find((folder) => ["initdb", "postgres"].every((name) => existsSync(join(folder, name))));
}

/** Why it cannot be measured; undefined: it can. */
export function graphileMissing(): string | undefined {
  if (postgresFolder() === undefined) return "PostgreSQL is not installed (Debian: postgresql)";
  const modules = fileURLToPath(new URL("peers/node_modules", import.meta.url));
  return existsSync(modules) ? undefined : "run `npm ci --prefix test/bench/peers` first";
}
