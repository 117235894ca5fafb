// A policy file that is wrong wherever it can hold a secret. Used by the test that looks for
// canaries in all that is said of it.
import { canaries } from "./canaries.ts";

/** Wrong in every line, with a secret in most of them. */
export function wrongPolicies(): string {
  const { yamlValue, webhookSecret } = canaries;
  return `apiVersion: syncline/v1
services:
  main:
    baseUrl: "https://user:${yamlValue}@a.example/?sig=${yamlValue}"
    token:
      ${yamlValue}
    password: ${yamlValue}
    tls: { keyPassphrase: "${yamlValue}" }
  second: { baseUrl: "\${CANARY}", token: { oauth2: { tokenUrl: "\${CANARY}", clientId: c, client_secret: ${yamlValue} } } }
policies:
  - { name: a, service: "\${CANARY}", run: { syncJobs: [1] }, schedule: { cron: "0 0 * * \${CANARY}", timezone: "\${CANARY}" } }
sinks: { ops: { webhook: { url: "https://h/?t=${webhookSecret}", secretFile: webhook, secret: ${webhookSecret} } } }
`;
}
