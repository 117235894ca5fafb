import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { Changes } from "../../src/store/changes.ts";
import { createToken } from "../../src/web/tokens.ts";
import { browserForTest, overflowOf } from "../support/browser.ts";
import { webForTest } from "../support/web-fixture.ts";

const boss = createToken({ name: "boss", scope: "admin", services: [] });
const reader = createToken({ name: "reader", scope: "read", services: [] });
// Time flies, so that no request is refused for being too fast.
let flownMs = 0;
const clock = { ...systemClock, monotonicMs: () => (flownMs += 10_000) };
const web = await webForTest({ tokens: () => `${boss.line}\n${reader.line}`, clock });
const base = await web.serve();
const browser = await browserForTest(base);

/** Opens a page as the owner of a token: without a script, as all of it must work so. */
async function open(path: string, { token } = boss): Promise<Page> {
  const page = await browser.open("/sign-in", { javaScriptEnabled: false });
  await page.getByLabel("Token").fill(token);
  await page.keyboard.press("Enter");
  await page.waitForURL(`${base}/`);
  await page.goto(base + path);
  return page;
}

/** Follows a link and fills the form behind it by keyboard alone. */
async function act(page: Page, link: string, fill: (page: Page) => Promise<void> = async () => {}): Promise<void> {
  await page.getByRole("link", { name: link }).press("Enter");
  await page.waitForURL(/\?of=/);
  await fill(page);
  await page.getByLabel("Why").focus();
  await page.keyboard.type("ticket 7");
  await page.keyboard.press("Enter");
  await page.waitForURL(/done=/);
}

const saidOn = (page: Page) => page.locator(".done").innerText();
const newest = async () => (await new Changes(web.store).newest(1))[0];

describe("by keyboard and without a script", () => {
  it("pauses a policy, shows what falls away, and resumes it", async () => {
    const page = await open("/policies/invoices");
    await act(page, "Pause policy invoices…", async () => {
      expect(await page.locator("main").innerText()).toMatch(/2[34] slots of 1 policy in the next 24 hours/);
      await page.getByLabel("Ends by itself").selectOption("8h");
      await page.setViewportSize({ width: 320, height: 700 });
      expect(await overflowOf(page)).toBe(0);
    });
    expect(await saidOn(page)).toMatch(/pause policy invoices: ticket 7/);
    expect(await page.locator("main").innerText()).toMatch(/paused by boss .*until .*: ticket 7/);
    await act(page, "Resume policy invoices…");
    expect(await saidOn(page)).toMatch(/resume policy invoices: ticket 7/);
    expect(await newest()).toMatchObject({ what: "resume", actor: "boss", reason: "ticket 7" });
  });

  it("runs a policy, leads to its task, and cancels that", async () => {
    const page = await open("/policies/suspended");
    await act(page, "Run now…", async () => {
      expect(await page.locator("main").innerText()).toMatch(/run sync job 42, at main, repository HR/);
      expect(await page.locator("main").innerText()).toContain("The pause stays");
    });
    expect(page.url()).toMatch(/\/tasks\/suspended__run__42__m\d+\?done=/);
    await act(page, "Cancel…");
    expect(await saidOn(page)).toMatch(/cancel task suspended__run__42__m/);
  });

  it("does a failed task over, and another that may have run only with a tick", async () => {
    const { items } = await (
      await fetch(`${base}/api/v1/failed`, { headers: { authorization: `Bearer ${boss.token}` } })
    )
      .json()
      .then((body) => body as { items: { id: string; outcome: { status: string } }[] });
    const of = (status: string) => items.find(({ outcome }) => outcome.status === status)?.id ?? "";
    const page = await open(`/tasks/${of("unknown")}`);
    await act(page, "Replay…", async () => {
      await page.getByLabel("Why").fill("x");
      // The browser keeps the form; the server asks for the tick, too.
      await page.keyboard.press("Enter");
      expect(page.url()).toContain("/replay?of=");
      await page.getByLabel("Why").fill("");
      await page.getByLabel("Send it although it may have run").press("Space");
    });
    expect(page.url()).toMatch(/\/tasks\/archive__run__42__m/);
    await page.goto(`${base}/tasks/${of("failed")}`);
    await act(page, "Discard…");
    expect(await saidOn(page)).toContain("failed discard");
  });

  it("notes that a failure is known, and takes it back", async () => {
    const page = await open("/policies/personnel");
    await act(page, "Acknowledge…");
    expect(await page.locator("main").innerText()).toContain("ticket 7");
    await act(page, "Take back the acknowledgement…");
    expect(await newest()).toMatchObject({ what: "acknowledge --end" });
  });

  it("pauses everything only when the number of policies is typed", async () => {
    const page = await open("/policies");
    await page.getByRole("link", { name: "Pause all policies…" }).press("Enter");
    await page.getByLabel("How many policies").fill("7");
    await page.getByLabel("Why").fill("move");
    await page.keyboard.press("Enter");
    expect(await page.getByRole("alert").innerText()).toContain("type 8, the number of policies");
    expect(await page.getByLabel("Why").inputValue()).toBe("move");
    await page.getByLabel("How many policies").fill("8");
    await page.getByLabel("How many policies").focus();
    await page.keyboard.press("Enter");
    await page.waitForURL(/done=/);
    expect(await saidOn(page)).toContain("pause all policies: move");
    await act(page, "Resume all policies…");
  });
});

it("shows no way to change anything to a caller who may only look", async () => {
  const page = await open("/policies/invoices", reader);
  expect(await page.locator(".acts").count()).toBe(0);
  expect(
    (await web.ask("/pause?of=policy:invoices", { headers: { authorization: `Bearer ${reader.token}` } })).status,
  ).toBe(403);
});

it("does once what an impatient person sends twice", async () => {
  const page = await open("/run?of=deliveries");
  const cookie = (await page.context().cookies()).map(({ name, value }) => `${name}=${value}`).join("; ");
  const key = (await page.locator("input[name=key]").getAttribute("value")) ?? "";
  const send = () =>
    web.ask("/run?of=deliveries", {
      method: "POST",
      headers: { cookie, "sec-fetch-site": "same-origin" },
      body: new URLSearchParams({ key, reason: "twice" }),
    });
  const answers = await Promise.all([send(), send()]);
  const [first, second] = answers.map(({ headers }) => headers.get("location"));
  expect(first).toMatch(/^\/tasks\/deliveries__run__42__m\d+\?done=/);
  expect(second).toBe(first);
});
