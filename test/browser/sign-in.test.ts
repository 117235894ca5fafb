import { expect, it } from "vitest";
import { browserForTest, overflowOf, violationsOf } from "../support/browser.ts";
import { IdentityProvider } from "../support/identity-provider.ts";
import { freePort } from "../support/redis-servers.ts";
import { webForTest } from "../support/web-fixture.ts";

// Two sites, as in life: the dashboard is at localhost, the provider at 127.0.0.1.
const provider = await IdentityProvider.start();
const port = await freePort();
const base = `http://localhost:${port}`;
const web = await webForTest({
  tokens: () => "",
  auth: () => `
name: email
oidc:
  issuer: ${provider.issuer}
  clientId: ${provider.clientId}
  clientSecretFile: ${provider.secretFile}
  publicUrl: ${base}
grants: [{ claim: groups, value: operators, scope: operate }]
`,
});
await web.serve(port);
const browser = await browserForTest(base, [provider.issuer]);

it("leads a person to the provider, and back to the page that was wanted", async () => {
  const page = await browser.open("/policies?q=invoices");
  expect(await violationsOf(page)).toEqual([]);
  await page.getByRole("link", { name: "Sign in with your organization" }).click();
  await page.getByRole("link", { name: "Continue as Ana" }).click();
  await page.waitForURL(`${base}/policies?q=invoices`);
  expect(await page.locator(".who").innerText()).toContain("ana@example.com, may operate");
  const cookies = await page.context().cookies();
  expect(cookies.map(({ name, sameSite, httpOnly, secure }) => [name, sameSite, httpOnly, secure])).toEqual([
    ["__Host-syncline", "Strict", true, true],
  ]);
  // A link on another site, such as one of a notice, leads to the page, and to no second sign-in.
  await page.goto(`${provider.issuer}/linking?to=${encodeURIComponent(`${base}/changes`)}`);
  await page.getByRole("link", { name: "See" }).click();
  await page.waitForURL(`${base}/changes`);
  await expect.poll(() => page.locator("h1").innerText()).toBe("Changes");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL(/sign-in$/);
  await page.goto(`${base}/changes`);
  expect(page.url()).toBe(`${base}/sign-in?next=%2Fchanges`);
});

it("tells a person whom no grant fits what to do, without a script, at 320 px", async () => {
  provider.claims = { sub: "u2", email: "bob@example.com", groups: ["sales"] };
  const narrow = { javaScriptEnabled: false, viewport: { width: 320, height: 700 } };
  const page = await browser.open("/", narrow, (message) => message.includes("status of 403"));
  await page.getByRole("link", { name: "Sign in with your organization" }).press("Enter");
  await page.getByRole("link", { name: "Continue as Ana" }).press("Enter");
  await page.waitForURL(/callback/);
  expect(await page.locator("main").innerText()).toMatch(/"bob@example\.com" is signed in.*adds a grant/s);
  expect(await overflowOf(page)).toBe(0);
  await page.getByRole("link", { name: "Sign in again" }).press("Enter");
  await page.waitForURL(/sign-in$/);
});
