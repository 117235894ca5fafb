// The settings of the process from the environment, the single door to process.env. Nothing here is
// ever logged as a whole.
import { dayMs, durationPattern, formatDuration, parseDuration } from "../core/duration.ts";
import { UsageError } from "../core/errors.ts";

/** Variables by name; an empty one counts as unset. */
export type Variables = Readonly<Record<string, string | undefined>>;

/** The environment's settings. Command-line options win over them. */
export interface Settings {
  /** `SYNCLINE_TOKEN`: the bearer token for `syncline api --base-url`. */
  readonly token: string | undefined;
  /** `SYNCLINE_LOG_LEVEL`: debug, info, warn, error or silent; default info. */
  readonly logLevel: string;
  /** True when colours are unwanted (`NO_COLOR`). */
  readonly noColor: boolean;
  /**
   * Every variable: for `${NAME}` in policy files, tokens, and what is read later (`REDIS_…`,
   * `SYNCLINE_OUTCOMES_…`).
   */
  readonly variables: Variables;
}

/** Reads the settings. */
export function readSettings(variables: Variables = process.env): Settings {
  const filled = (name: string) => (variables[name] === "" ? undefined : variables[name]);
  return {
    token: filled("SYNCLINE_TOKEN"),
    logLevel: filled("SYNCLINE_LOG_LEVEL") ?? "info",
    noColor: filled("NO_COLOR") !== undefined,
    variables,
  };
}

/** Removes variables that are set but empty: commander's `.env()` would take '' for a value. */
export function dropEmptyVariables(): void {
  for (const [name, value] of Object.entries(process.env))
    if (value === "" && /^(SYNCLINE|REDIS)_/.test(name)) delete process.env[name];
}

/** How many outcomes a policy keeps, and how much older than its newest one they may be. */
export interface OutcomeLimits {
  readonly count: number;
  readonly forMs: number;
}

/** The same as for slot records (store/slot-ledger.ts). */
export const outcomeLimitsDefault: OutcomeLimits = { count: 1_000, forMs: 31 * dayMs };

/** Reads `SYNCLINE_OUTCOMES_KEPT` and `SYNCLINE_OUTCOMES_FOR`. @throws UsageError out of bounds. */
export function readOutcomeLimits(variables: Variables): OutcomeLimits {
  const { SYNCLINE_OUTCOMES_KEPT: count = "", SYNCLINE_OUTCOMES_FOR: age = "" } = variables;
  return {
    count: count === "" ? outcomeLimitsDefault.count : parseCount(count),
    forMs: age === "" ? outcomeLimitsDefault.forMs : parseAge(age),
  };
}

function parseCount(text: string): number {
  const [min, max] = [100, 100_000];
  const count = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (count >= min && count <= max) return count;
  throw new UsageError(
    `SYNCLINE_OUTCOMES_KEPT is "${text}": how many outcomes a policy keeps; write a whole number from ${min} to ${max}`,
  );
}

function parseAge(text: string): number {
  const [minMs, maxMs] = [dayMs, 400 * dayMs];
  const ageMs = durationPattern.test(text) ? parseDuration(text) : 0;
  if (ageMs >= minMs && ageMs <= maxMs) return ageMs;
  const bounds = `from ${formatDuration(minMs)} to ${formatDuration(maxMs)}`;
  throw new UsageError(
    `SYNCLINE_OUTCOMES_FOR is "${text}": how long outcomes are kept; write a duration ${bounds}, such as 31d`,
  );
}
