import { createHmac } from "node:crypto";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createToken } from "../../../src/web/tokens.ts";
import { IdentityProvider } from "../../support/identity-provider.ts";
import { setOf } from "../../support/kept-set.ts";
import { testPolicy } from "../../support/policies.ts";
import { webForTest } from "../../support/web-fixture.ts";

const provider = await IdentityProvider.start();

const grants = `
grants:
  - { claim: groups, value: admins, scope: admin }
  - { claim: realm_access.roles, value: hr, scope: operate, services: [hr] }
  - { claim: groups, value: office, scope: read, labels: { team: school } }
  - { claim: groups, value: operators, scope: operate }
`;
const authFile = `
name: email
jwt: { issuer: "${provider.issuer}", audience: syncline-api, header: Cf-Access-Jwt-Assertion }
oidc:
  issuer: ${provider.issuer}
  clientId: ${provider.clientId}
  clientSecretFile: ${provider.secretFile}
  publicUrl: https://syncline.example.com
`;
const root = createToken({ name: "root", scope: "admin", services: [] });
let text = authFile + grants;
const set = setOf([testPolicy()]);
const web = await webForTest({ story: {}, set, auth: () => text, tokens: () => root.line });
const policies = "/api/v1/policies";
const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
const page = (headers: Record<string, string>) => web.ask("/policies", { headers });

afterEach(() => {
  provider.claims = { sub: "u1", email: "ana@example.com", groups: ["operators"] };
  provider.keysAnswer = "keys";
  provider.closesKept = false;
  provider.forge = (claims) => claims;
  text = authFile + grants;
});

let flownMs = 0;
/** Lets time pass for the server and its libraries: files and keys are read again. */
function pass(ms: number): void {
  flownMs += ms;
  vi.useFakeTimers({ toFake: ["Date"], now: performance.timeOrigin + performance.now() + flownMs });
}

describe("a JWT of the identity provider", () => {
  it("lets in by the header Authorization, and by the one that a proxy sets", async () => {
    const jwt = await provider.sign();
    expect((await web.ask(policies, bearer(jwt))).status).toBe(200);
    const shown = await (await page({ "cf-access-jwt-assertion": jwt })).text();
    expect(shown).toContain("ana@example.com, may operate");
    expect(shown).not.toContain("Sign out");
    expect((await page({ "x-other": jwt })).status).toBe(303);
    expect((await web.ask(policies, bearer(root.token))).status).toBe(200);
  });

  it("changes nothing for another site's page, though a proxy adds the JWT", async () => {
    const jwt = await provider.sign();
    const post = async (headers: Record<string, string>) => {
      const body = JSON.stringify({ policy: "nightly", reason: "x", until: "tomorrow" });
      const answer = await web.ask("/api/v1/pauses", { method: "POST", body, headers });
      return [answer.status, JSON.parse(await answer.text()).title];
    };
    const forged = [403, "Not from here"];
    expect(await post({ authorization: `Bearer ${jwt}`, "sec-fetch-site": "cross-site" })).toEqual(forged);
    expect(await post({ "cf-access-jwt-assertion": jwt, "sec-fetch-site": "cross-site" })).toEqual(forged);
    expect(await post({ "cf-access-jwt-assertion": jwt })).toEqual(forged);
  });

  it("gives what the first grant gives that fits, for its services and labels only", async () => {
    const asked = async (claims: Record<string, unknown>) => {
      const answer = await page({ authorization: `Bearer ${await provider.sign(claims)}` });
      const body = await answer.text();
      return [answer.status, /may (operate|administer)|read-only/.exec(body)?.[0], body.includes(">nightly<")];
    };
    expect(await asked({})).toEqual([200, "may operate", true]);
    expect(await asked({ groups: ["operators", "admins"] })).toEqual([200, "may administer", true]);
    expect(await asked({ realm_access: { roles: ["hr"] } })).toEqual([200, "may operate", false]);
    expect(await asked({ groups: ["operators", "office"] })).toEqual([200, "read-only", false]);
    expect(await asked({ groups: "operators" })).toEqual([200, "may operate", true]);
  });

  it("tells a person whom no grant fits so, by name, and records it once", async () => {
    const before = web.refusals.length;
    const jwt = await provider.sign({ email: "bob@example.com", groups: ["constructor", "sales"] });
    for (const _ of [1, 2, 3]) {
      const answer = await page({ authorization: `Bearer ${jwt}` });
      expect(answer.status).toBe(403);
      expect(await answer.text()).toMatch(
        /&quot;bob@example\.com&quot; is signed in, and may see nothing.*adds a grant/s,
      );
    }
    const [refusal, ...more] = web.refusals.slice(before);
    expect([refusal?.actor, more]).toEqual(["bob@example.com", []]);
    expect(refusal).toMatchObject({ what: "GET /policies", requestId: expect.stringMatching(/.{12}/) });
  });
});

describe("a JWT that is not right", () => {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const now = Math.floor(Date.now() / 1_000);
  const claims = { iss: provider.issuer, aud: "syncline-api", exp: now + 600, email: "eve", groups: ["admins"] };
  const unsigned = `${part({ alg: "none" })}.${part(claims)}.`;
  const symmetric = async () => {
    const head = `${part({ alg: "HS256" })}.${part(claims)}`;
    return `${head}.${createHmac("sha256", await provider.publicKey())
      .update(head)
      .digest("base64url")}`;
  };
  const swapped = async () => (await provider.sign()).replace(/\.[^.]+\./, `.${part(claims)}.`);
  const wrong: [string, () => Promise<string>, RegExp][] = [
    ["of another issuer", () => provider.sign({ iss: "https://evil.example.com" }), /its iss is another/],
    ["for another audience", () => provider.sign({ aud: "shop" }), /its aud is another/],
    ["without an audience", () => provider.sign({ aud: undefined }), /it has no claim aud/],
    ["without an end", () => provider.sign({ exp: undefined }), /it has no claim exp/],
    ["that has expired", () => provider.sign({ exp: now - 60 }), /it has expired/],
    ["that is not valid yet", () => provider.sign({ nbf: now + 600 }), /not valid yet/],
    ["that is not signed (alg none)", async () => unsigned, /algorithm is not allowed/],
    ["signed by the public key as a password (HS256)", symmetric, /algorithm is not allowed/],
    ["signed by a stranger's key", () => provider.signAsStranger(), /signature is wrong/],
    ["with other claims under its signature", swapped, /signature is wrong/],
    ["without a name", () => provider.sign({ email: undefined }), /no claim &quot;email&quot;|no claim "email"/],
  ];
  it.each(wrong)("%s is refused", async (_, make, why) => {
    const token = await make();
    const answer = await web.ask(policies, bearer(token));
    const body = await answer.text();
    expect([answer.status, answer.headers.get("www-authenticate")]).toEqual([401, 'Bearer realm="syncline"']);
    expect(JSON.parse(body).detail).toMatch(why);
    expect(body).not.toContain(token.slice(0, 20));
    expect((await page({ "cf-access-jwt-assertion": token })).status).toBe(401);
  });

  it("may be 30 s behind or ahead of our clock", async () => {
    const seconds = Math.floor(Date.now() / 1_000);
    expect((await web.ask(policies, bearer(await provider.sign({ exp: seconds - 20 })))).status).toBe(200);
    expect((await web.ask(policies, bearer(await provider.sign({ nbf: seconds + 20 })))).status).toBe(200);
  });

  it("is recorded once an hour for each caller, without the token", async () => {
    const fresh = await webForTest({ story: {}, set, auth: () => text });
    for (const _ of [1, 2, 3]) await fresh.ask(policies, bearer(unsigned));
    expect(fresh.refusals.map(({ actor, what }) => [actor, what])).toEqual([["unknown@unknown", `GET ${policies}`]]);
    expect(JSON.stringify(fresh.refusals)).not.toContain("eyJ");
  });
});

describe("the provider's keys", () => {
  it("are read anew for a new key, and not again and again for an unknown one", async () => {
    expect((await web.ask(policies, bearer(await provider.sign()))).status).toBe(200);
    const old = await provider.sign();
    await provider.rotate();
    const before = provider.asked.get("/keys") ?? 0;
    // Within 30 s the new key is not known yet: a stranger could name new ones without end.
    for (const _ of [1, 2, 3]) expect((await web.ask(policies, bearer(await provider.sign()))).status).toBe(401);
    expect(provider.asked.get("/keys")).toBe(before);
    pass(31_000);
    expect((await web.ask(policies, bearer(await provider.sign()))).status).toBe(200);
    expect((await web.ask(policies, bearer(old))).status).toBe(401);
    expect(provider.asked.get("/keys")).toBe(before + 1);
  });

  it.each([
    ["are huge", "x".repeat(400_000)],
    ["are no JSON", "<html>"],
    ["are no keys", '{"hello":1}'],
  ])("that %s let no one in, and stop no token", async (_, answer) => {
    provider.keysAnswer = answer;
    const fresh = await webForTest({ story: {}, set, auth: () => text, tokens: () => root.line });
    const before = provider.asked.get("/keys") ?? 0;
    const jwt = await provider.sign();
    for (const _ of [1, 2, 3]) expect((await fresh.ask(policies, bearer(jwt))).status).toBe(503);
    expect(provider.asked.get("/keys")).toBe(before + 1);
    expect((await fresh.ask(policies, bearer(root.token))).status).toBe(200);
    provider.keysAnswer = "keys";
    pass(11_000);
    expect((await fresh.ask(policies, bearer(jwt))).status).toBe(200);
  });
});

/** A browser's cookies, as far as the sign-in needs them. */
class Jar {
  readonly cookies = new Map<string, string>();

  async ask(path: string, headers: Record<string, string> = {}, from = web): Promise<Response> {
    const cookie = [...this.cookies].map((pair) => pair.join("=")).join("; ");
    const answer = await from.ask(path, { headers: { ...headers, ...(cookie === "" ? {} : { cookie }) } });
    for (const line of answer.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === "") this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    return answer;
  }

  /** Begins a sign-in and lets the provider agree: the path that it leads back to. */
  async untilCallback(next = "/policies"): Promise<string> {
    const begun = await this.ask(`/sign-in/oidc?next=${encodeURIComponent(next)}`);
    const agreed = await fetch(begun.headers.get("location") ?? "", { redirect: "manual" });
    const back = new URL(agreed.headers.get("location") ?? "");
    expect(back.origin).toBe("https://syncline.example.com");
    return back.pathname + back.search;
  }
}

describe("signing in by the provider", () => {
  it("leads there and back to the page, with a session that holds no token", async () => {
    const jar = new Jar();
    expect(await (await jar.ask("/sign-in?next=/changes")).text()).toContain('href="/sign-in/oidc?next=%2Fchanges"');
    const begun = await jar.ask("/sign-in/oidc");
    const { searchParams } = new URL(begun.headers.get("location") ?? "");
    expect(searchParams.get("redirect_uri")).toBe("https://syncline.example.com/sign-in/callback");
    expect(searchParams.get("code_challenge_method")).toBe("S256");
    expect(begun.headers.get("set-cookie")).toMatch(
      /^__Host-syncline-sign-in=[\w-]+; Max-Age=600; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
    );
    const answer = await jar.ask(await jar.untilCallback("/policies?q=a"));
    expect([answer.status, answer.headers.get("location")]).toEqual([303, "/policies?q=a"]);
    expect([...jar.cookies.keys()]).toEqual(["__Host-syncline"]);
    expect(answer.headers.getSetCookie().at(-1)).toMatch(/HttpOnly; Secure; SameSite=Strict$/);
    expect(await (await jar.ask("/policies")).text()).toContain("ana@example.com, may operate");
  });

  it("works where the provider closes a kept connection just as it is asked", async () => {
    provider.closesKept = true;
    const jar = new Jar();
    expect((await jar.ask(await jar.untilCallback())).status).toBe(303);
  });

  it("asks a browser that comes from the provider's site once more, for its cookie", async () => {
    const [fromAfar, here] = await Promise.all(
      ["cross-site", "same-origin"].map((site) => page({ "sec-fetch-site": site })),
    );
    expect([fromAfar?.status, fromAfar?.headers.get("refresh")]).toEqual([200, "0;url=/policies"]);
    expect(here?.status).toBe(303);
    const foreign = await web.ask("//evil.example.com/x", { headers: { "sec-fetch-site": "cross-site" } });
    expect(foreign.headers.get("refresh")).toBe("0;url=/");
  });

  it("works once: code and state are worth nothing afterwards, or in another browser", async () => {
    const [jar, other] = [new Jar(), new Jar()];
    const callback = await jar.untilCallback();
    expect((await other.ask(callback)).status).toBe(403);
    await other.untilCallback();
    expect((await other.ask(callback)).status).toBe(403);
    const flow = jar.cookies.get("__Host-syncline-sign-in") ?? "";
    expect((await jar.ask(callback)).status).toBe(303);
    expect((await jar.ask(callback)).status).toBe(403);
    const thief = new Jar();
    thief.cookies.set("__Host-syncline-sign-in", flow);
    expect((await thief.ask(callback)).status).toBe(403);
    expect([...thief.cookies.keys()]).toEqual([]);
  });

  it.each([
    ["the nonce of another sign-in", { nonce: "x" }],
    ["another audience", { aud: "shop" }],
    ["another issuer", { iss: "https://evil.example.com" }],
    ["an end in the past", { exp: 1 }],
  ])("takes no ID token with %s", async (_, forged) => {
    provider.forge = (claims) => ({ ...claims, ...forged });
    const jar = new Jar();
    expect((await jar.ask(await jar.untilCallback())).status).toBe(403);
    expect([...jar.cookies.keys()]).toEqual([]);
  });

  it("fails without the claim that names a person, and says which", async () => {
    provider.forge = (claims) => ({ ...claims, email: undefined });
    const jar = new Jar();
    const answer = await jar.ask(await jar.untilCallback());
    expect([answer.status, [...jar.cookies.keys()]]).toEqual([403, []]);
    expect(await answer.text()).toContain("no claim &quot;email&quot;");
  });

  it("leads to no foreign page, whatever it was asked for", async () => {
    for (const next of ["//evil.example.com", "https://evil.example.com", "/\\evil.example.com", "/\nx"]) {
      const jar = new Jar();
      expect((await jar.ask(await jar.untilCallback(next))).headers.get("location")).toBe("/");
    }
    const forged = new Jar();
    const callback = await forged.untilCallback();
    const name = "__Host-syncline-sign-in";
    const flow = JSON.parse(Buffer.from(forged.cookies.get(name) ?? "", "base64url").toString());
    const changed = JSON.stringify({ ...flow, next: "//evil.example.com" });
    forged.cookies.set(name, Buffer.from(changed).toString("base64url"));
    expect((await forged.ask(callback)).headers.get("location")).toBe("/");
    const headers = { "x-forwarded-host": "evil.example.com", "x-forwarded-proto": "http", host: "evil.example.com" };
    const { searchParams } = new URL((await new Jar().ask("/sign-in/oidc", headers)).headers.get("location") ?? "");
    expect(searchParams.get("redirect_uri")).toBe("https://syncline.example.com/sign-in/callback");
  });

  it("gives nothing more once the grant is gone, and again once it is back", async () => {
    const jar = new Jar();
    await jar.ask(await jar.untilCallback());
    text = authFile + grants.replace("value: operators", "value: none-has-it");
    pass(31_000);
    const refused = await jar.ask("/policies");
    expect([refused.status, (await refused.text()).includes("no grant fits")]).toEqual([403, true]);
    expect((await jar.ask("/sign-in")).status).toBe(200);
    text = authFile + grants.replace("scope: operate }", "scope: read }");
    pass(31_000);
    expect(await (await jar.ask("/policies")).text()).toContain("ana@example.com, read-only");
    text = authFile.replace("clientId: syncline", "clientId: another") + grants;
    pass(31_000);
    expect((await jar.ask("/policies")).status).toBe(303);
    text = authFile + grants;
    pass(31_000);
  });

  it("refuses a person whom no grant fits before there is a session", async () => {
    provider.claims = { sub: "u2", email: "bob@example.com", groups: ["sales"] };
    const jar = new Jar();
    const answer = await jar.ask(await jar.untilCallback());
    expect([answer.status, [...jar.cookies.keys()]]).toEqual([403, []]);
    expect(await answer.text()).toContain("bob@example.com&quot; is signed in, and may see nothing here");
  });

  it("asks one address that tries too often to wait", async () => {
    const fresh = await webForTest({ story: {}, set, auth: () => text });
    const tries = await Promise.all(Array.from({ length: 80 }, () => new Jar().ask("/sign-in/oidc", {}, fresh)));
    const refused = tries.filter(({ status }) => status === 429);
    expect([refused.length > 15, refused[0]?.headers.get("retry-after")]).toEqual([true, "1"]);
  });
});
