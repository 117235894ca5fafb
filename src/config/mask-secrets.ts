// Hides what looks like a secret in a source line before it is shown. Called by source-text.ts for every problem.
// Policy files hold no secrets; this is for the one who writes one there by mistake.

const secretKey =
  /\b(token|bearer|authorization|secret|clientSecret|password|accessToken|apiKey|value)(["']?\s*:\s*)(?!\s|\{)([^,}]+)/gi;
const strangeVariable = /\b(env)(["']?\s*:\s*["']?)(?![A-Z_][A-Z0-9_]{0,63}(?![A-Za-z0-9_.-]))([^,}"'\s]+)/g;
const urlCredentials = /(:\/\/)()([^/\s@]+)(?=@)/g;

/** The line with secrets replaced by as many asterisks, so that columns stay. */
export function maskSecrets(line: string): string {
  return [secretKey, strangeVariable, urlCredentials].reduce(
    (text, pattern) =>
      text.replace(
        pattern,
        (_, key: string, between: string, secret: string) => `${key}${between}${"*".repeat(secret.length)}`,
      ),
    line,
  );
}
