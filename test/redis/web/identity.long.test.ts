import { expect, it } from "vitest";
import { createToken } from "../../../src/web/tokens.ts";
import { IdentityProvider } from "../../support/identity-provider.ts";
import { webForTest } from "../../support/web-fixture.ts";

const provider = await IdentityProvider.start();

it("answers within its time-out when the provider's keys hang, and asks once for all", async () => {
  const root = createToken({ name: "root", scope: "read", services: [] });
  const web = await webForTest({
    story: {},
    tokens: () => root.line,
    auth: () =>
      `jwt: { issuer: "${provider.issuer}", audience: syncline-api }\ngrants: [{ claim: groups, value: operators, scope: read }]\n`,
  });
  provider.keysAnswer = "hang";
  const ask = async (token: string) =>
    (await web.ask("/api/v1/policies", { headers: { authorization: `Bearer ${token}` } })).status;
  await ask(root.token);
  const jwt = await provider.sign();
  const waiting = Promise.all(Array.from({ length: 20 }, () => ask(jwt)));
  // Meanwhile the owner of a token does not wait for it.
  expect(await Promise.race([ask(root.token), waiting])).toBe(200);
  expect(new Set(await waiting)).toEqual(new Set([503]));
  expect(await ask(jwt)).toBe(503);
  expect(provider.asked.get("/keys")).toBe(1);
});
