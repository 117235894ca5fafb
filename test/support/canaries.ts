// Secrets that no output may hold, one for each way in. Found again by a search for the text
// itself, its percent-encoded form and its base64 forms.

/**
 * The fifteen secrets. That of signatures is base64, as a sink takes it. Each is long enough to be
 * no accident and safe in a URL, a header and YAML.
 */
export const canaries = {
  tokenInFile: "canary01-Fq8ZtokenInFile",
  tokenInVariable: "canary02-Gw7YtokenInVariable",
  clientSecret: "canary03-Hv6XclientSecret",
  accessToken: "canary04-Ju5WaccessToken",
  keyPassphrase: "canary05-Kt4VkeyPassphrase",
  redisPassword: "canary06-Ls3UredisPassword",
  linkPassword: "canary07-Mr2TlinkPassword",
  linkQuery: "canary08-Nq1SlinkQuery",
  echoedToken: "canary09-Pp0RechoedToken",
  yamlValue: "canary10-Qo9QyamlValue",
  variable: "canary11-Rn8Pvariable",
  webhookSecret: "canary12-Sm7Nwebhook",
  webhookUrl: "canary13-Tl6MwebhookUrl",
  signingSecret: "canary14Uk5LsigningSecretOfASink1234",
  heartbeatUrl: "canary15-Vj4KheartbeatUrl",
} as const;

/** The names of the canaries that a text holds, in any form. */
export function canariesIn(text: string | Buffer): string[] {
  const bytes = typeof text === "string" ? Buffer.from(text) : text;
  return Object.entries(canaries)
    .filter(([, secret]) => formsOf(secret).some((form) => bytes.includes(form)))
    .map(([name]) => name);
}

/** Whether a text holds a secret, in any form. */
export function holdsSecret(text: string, secret: string): boolean {
  return formsOf(secret).some((form) => text.includes(form));
}

/**
 * Base64 depends on where the secret begins: the middle of each of the three alignments is looked
 * for.
 */
function formsOf(secret: string): string[] {
  const aligned = [0, 1, 2].map((shift) => {
    const code = Buffer.from("x".repeat(shift) + secret).toString("base64");
    return code.slice(shift === 0 ? 0 : 4, -4);
  });
  return [secret, secret.toLowerCase(), encodeURIComponent(secret), ...aligned];
}
