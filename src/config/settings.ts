// Settings of the process, from the environment: the single door to process.env. Read once, by program.ts.
// Never holds what belongs into a policy file, and nothing here is ever logged as a whole.

/** What the environment says. Command-line options win over it. */
export interface Settings {
  /** `REDIS_URL`, e.g. `redis://localhost:6379`. */
  readonly redisUrl: string | undefined;
  /** `SYNCLINE_TOKEN`: the bearer token for `syncline api --base-url`. */
  readonly token: string | undefined;
  /** `SYNCLINE_LOG_LEVEL`: debug, info, warn, error or silent; info unless set. */
  readonly logLevel: string;
  /** True when colours are unwanted (`NO_COLOR`). */
  readonly noColor: boolean;
  /** Every variable, for `${NAME}` in policy files and `token: { env: NAME }`. */
  readonly variables: Readonly<Record<string, string | undefined>>;
}

/** Reads the settings. */
export function readSettings(variables: Readonly<Record<string, string | undefined>> = process.env): Settings {
  const filled = (name: string) => (variables[name] === "" ? undefined : variables[name]);
  return {
    redisUrl: filled("REDIS_URL"),
    token: filled("SYNCLINE_TOKEN"),
    logLevel: filled("SYNCLINE_LOG_LEVEL") ?? "info",
    noColor: filled("NO_COLOR") !== undefined,
    variables,
  };
}
