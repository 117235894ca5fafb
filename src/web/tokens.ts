// Static tokens: the lines of the file behind --web-tokens, and a new token with its line. A file
// holds hashes only. Used by access.ts and by `syncline token`.
import { hash, randomBytes } from "node:crypto";
import { dayMs, parseWallText } from "../core/duration.ts";
import { UsageError } from "../core/errors.ts";
import { selectorOf } from "../model/label.ts";
import { type Scope, scopes } from "../model/scope.ts";
import type { Bounds } from "../queries/query-context.ts";

/** One token, and what it is held to. `expiresMs`: the end of its last day, UTC. */
export interface TokenEntry extends Bounds {
  readonly name: string;
  readonly scope: Scope;
  readonly hash: string;
  readonly expiresMs: number | undefined;
}

/** The most lines of a file. */
const tokensMax = 1_000;
const linePattern =
  /^([\w.@-]{1,64}):([a-z]+)(?::([\w.,-]+))?(?::([\w.-]+=[\w.-]+(?:,[\w.-]+=[\w.-]+)*))?:([0-9a-f]{64})(?::(\d{4}-\d{2}-\d{2}))?$/;

/** Reads the lines of a file, by hash. @throws UsageError for a line that is none. */
export function parseTokens(text: string, file: string): ReadonlyMap<string, TokenEntry> {
  const tokens = new Map<string, TokenEntry>();
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const where = `${file}:${index + 1}`;
    const entry = parseLine(line.trim(), where);
    if (tokens.has(entry.hash)) throw new UsageError(`${where}: this token stands there twice: remove one line`);
    tokens.set(entry.hash, entry);
  }
  if (tokens.size > tokensMax) throw new UsageError(`${file} has ${tokens.size} tokens: at most ${tokensMax} are read`);
  return tokens;
}

function parseLine(line: string, where: string): TokenEntry {
  const [, name, scope, services, labels, hash, day] = linePattern.exec(line) ?? [];
  const known = scopes.find((one) => one === scope);
  if (name === undefined || known === undefined || hash === undefined)
    throw new UsageError(
      `${where} is no token: write name:scope:sha256, with services, labels and an expiry if wanted, as \`syncline token\` prints it`,
    );
  const lastDayMs = day === undefined ? undefined : parseWallText(`${day}T00:00`);
  if (day !== undefined && lastDayMs === undefined)
    throw new UsageError(`${where}: ${day} is no day: write one such as 2027-01-31`);
  return {
    name,
    scope: known,
    services: services === undefined ? undefined : new Set(services.split(",")),
    labels: labels === undefined ? undefined : selectorOf(labels.split(",")),
    hash,
    expiresMs: lastDayMs === undefined ? undefined : lastDayMs + dayMs,
  };
}

/** A new token: what its user gets, and the line of the file. */
export function createToken({
  name,
  scope,
  services,
  labels = [],
  lastDay,
}: {
  readonly name: string;
  readonly scope: Scope;
  readonly services: readonly string[];
  /** Each as `team=hr`. */
  readonly labels?: readonly string[] | undefined;
  readonly lastDay?: string | undefined;
}): { readonly token: string; readonly line: string } {
  const token = `syncline_${randomBytes(32).toString("base64url")}`;
  const parts = [name, scope, services.join(","), labels.join(","), hashOfToken(token), lastDay ?? ""];
  return { token, line: parts.filter((part) => part !== "").join(":") };
}

/** The hash of a token, as a file has it: 64 hex digits. */
export function hashOfToken(token: string): string {
  return hash("sha256", token);
}
