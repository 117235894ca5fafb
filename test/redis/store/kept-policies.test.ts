// The policy set that Redis keeps: the same set again, small, and without any secret.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { policyChecks } from "../../../src/cli/shared-options.ts";
import { loadPolicies } from "../../../src/config/load-policies.ts";
import type { PolicySet } from "../../../src/config/policy-set.ts";
import { keepPolicySet, readKeptSet } from "../../../src/store/kept-policies.ts";
import { canaries, canariesIn } from "../../support/canaries.ts";
import { folderForTest } from "../../support/folder.ts";
import { testPolicy } from "../../support/policies.ts";
import { redisForTest, storeForTest } from "../../support/redis.ts";
import { readRedis } from "../../support/redis-dump.ts";

const redis = redisForTest();
const store = await storeForTest(redis);

/** Every place of a policy file where a secret may stand or be filled in. */
const text = `apiVersion: syncline/v1
services:
  filed: { baseUrl: "https://a.example", token: { file: token }, mapping: { activity: { id: item.a, finished: "true" } } }
  variable: { baseUrl: "https://b.example", token: { env: TOKEN }, tls: { keyFile: k, certFile: c, keyPassphraseFile: p } }
  login: { baseUrl: "https://c.example", token: { oauth2: { tokenUrl: "https://l.example/t?key=${canaries.linkQuery}", clientId: id, clientSecretFile: secret } } }
sinks:
  chat: { webhook: { url: "https://chat.example/services/${canaries.webhookUrl}", format: slack } }
  signed: { webhook: { url: "\${HOOK}", secretFile: signing } }
policies:
  - { name: nightly, service: filed, repository: HR, run: { syncJobs: [42] }, schedule: { cron: "30 2 * * *" }, notify: [chat], heartbeat: { url: "https://tick.example/${canaries.heartbeatUrl}?k=${canaries.heartbeatUrl}" } }
  - { name: declared, service: variable, apply: { syncJobs: { "7": { name: ${canaries.yamlValue} } } }, schedule: { every: 1h } }
`;

async function load(): Promise<PolicySet> {
  const file = join(folderForTest(), "policies.yaml");
  writeFileSync(file, text);
  const variables = { TOKEN: canaries.tokenInVariable, HOOK: `https://hook.example/${canaries.variable}` };
  const loaded = await loadPolicies(file, { variables, checks: policyChecks });
  if (!loaded.ok) throw new Error(loaded.problems.map(({ message }) => message).join("\n"));
  return loaded.set;
}

describe("the kept policy set", () => {
  it("is what was loaded, but for values that may be secret, which Redis never sees", async () => {
    const set = await load();
    const client = store.redis;
    if (client.isCluster) throw new Error("a single Redis is expected");
    await keepPolicySet(store, set, "host/1");
    const inRedis = (await readRedis(client as Parameters<typeof readRedis>[0], `${redis.prefix}*`)).join("\n");
    expect(inRedis).toContain("chat.example");
    expect(canariesIn(inRedis)).toEqual([]);
    expect(canariesIn(JSON.stringify([...set.sinks.values(), set.policies]))).not.toEqual([]);
    const kept = await readKeptSet(store);
    expect(kept).toMatchObject({ hash: set.contentHash, by: "host/1" });
    const [nightly] = kept?.set.policies ?? [];
    expect(nightly).toEqual({ ...set.policies[0], heartbeat: { url: "https://tick.example" } });
    expect(kept?.set.policies[1]?.action).toMatchObject({ kind: "apply", objects: [{ kind: "syncJob", id: 7 }] });
    expect(kept?.set.services.get("filed")?.mapping).toEqual(set.services.get("filed")?.mapping);
    expect(kept?.set.services.get("login")?.token).toMatchObject({ tokenUrl: "https://l.example/t" });
    expect(kept?.set.files).toEqual(set.files);
  });

  it("takes less than 2 MB of Redis for 10,000 policies", async () => {
    const set = await load();
    const policies = Array.from({ length: 10_000 }, (_, index) =>
      testPolicy({ name: `policy-${index}`, repository: `R${index % 97}`, where: { file: "/a/b.yaml", line: index } }),
    );
    await keepPolicySet(store, { ...set, policies }, "host/1");
    expect(await store.redis.hstrlen(store.key("policy-set"), "set")).toBeLessThan(2_000_000);
    expect((await readKeptSet(store))?.set.policies).toEqual(policies);
  });
});
