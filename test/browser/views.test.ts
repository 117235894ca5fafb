import { describe, expect, it } from "vitest";
import { History } from "../../src/store/history.ts";
import { browserForTest, overflowOf, violationsOf } from "../support/browser.ts";
import { testOutcome } from "../support/outcomes.ts";
import { webForTest } from "../support/web-fixture.ts";

const web = await webForTest();
const base = await web.serve();
const browser = await browserForTest(base);
const empty = await browserForTest(await (await webForTest({ story: {} })).serve());

const { slots } = await (await web.ask("/api/v1/policies/contracts-nightly"))
  .json()
  .then((body) => body as { slots: { slot: string }[] });
const newest = (policy: string) => `/policies/${policy}/slots/${slots.at(-1)?.slot}`;
// eyes.long.test.ts has all views in all conditions.
const views = ["/", "/policies", "/policies/contracts-nightly", newest("invoices"), "/next"];

it.each(views)("%s has nothing that axe finds, and fits 320 px", async (path) => {
  const page = await browser.open(path);
  expect(await violationsOf(page)).toEqual([]);
  await page.setViewportSize({ width: 320, height: 700 });
  expect(await overflowOf(page)).toBe(0);
});

it("an empty first page says so", async () => {
  const page = await empty.open("/");
  expect(await page.locator("main").innerText()).toMatch(/No policies yet/);
});

describe("the first page", () => {
  it("says what needs a person, since when, and leads to the run", async () => {
    const page = await browser.open("/");
    expect(await page.locator("h1").innerText()).toBe("4 things need a person");
    const first = page.locator(".attention li").first();
    expect(await first.innerText()).toMatch(
      /failing\s+invoices sync job 42: failed .*\s+since .* ago last good .* ago/,
    );
    await first.getByRole("link", { name: "Open the run" }).click();
    await page.waitForLoadState();
    expect(await page.locator("h1").innerText()).toContain("Slot ");
    expect(await page.locator("main").innerText()).toContain("the service said so");
  });

  it("changes in place when something ends, and keeps focus and what is open", async () => {
    const page = await browser.open("/policies/deliveries");
    await page.getByText("What the bars mean").click();
    await page.getByRole("link", { name: "Services" }).focus();
    await expect.poll(() => page.locator("[data-live]").innerText()).toBe("live");
    const [open] = await web.store.redis.zrevrange(web.store.key("slot-index", "deliveries"), 0, 0);
    const slotMs = Number(open);
    const at = new Date(slotMs).toISOString();
    await expect
      .poll(async () => {
        await new History(web.store).record(
          testOutcome({
            policy: "deliveries",
            taskId: `deliveries__run__42__${slotMs / 1_000}`,
            slot: at,
            startedAt: at,
            finishedAt: new Date(slotMs + 61_000).toISOString(),
            status: "failed",
            reason: "run-failed",
          }),
        );
        return page.locator(".state").innerText();
      })
      .toContain("failing");
    expect(await page.evaluate("document.activeElement?.textContent")).toBe("Services");
    expect(await page.locator(".legend").first().getAttribute("open")).not.toBeNull();
  });
});

it("tells in its tab how much needs a person, also when that changes", async () => {
  const own = await webForTest({ story: { orders: { endings: ["ok"] } } });
  const page = await (await browserForTest(await own.serve())).open("/");
  await expect.poll(() => page.locator("[data-live]").innerText()).toBe("live");
  expect(await page.title()).not.toContain("needs a person");
  const at = new Date().toISOString();
  const failed = { policy: "orders", taskId: "orders__run__42__1", slot: at, finishedAt: at } as const;
  await new History(own.store).record(testOutcome({ ...failed, status: "failed", reason: "run-failed" }));
  await expect.poll(() => page.title()).toBe("1 needs a person · Syncline");
});

it("keeps a cause of failures open when a newer one comes before it", async () => {
  const endings = Array.from({ length: 7 }, () => "failed" as const);
  const own = await webForTest({ story: { orders: { endings }, prices: { endings: ["ok"] } } });
  const page = await (await browserForTest(await own.serve())).open("/failed?since=all");
  await page.getByText("2 older").click();
  const at = new Date(Date.now() + 1_000).toISOString();
  const failed = { policy: "prices", taskId: `prices__run__42__${Date.now()}`, slot: at, finishedAt: at } as const;
  await new History(own.store).record(testOutcome({ ...failed, status: "failed", reason: "run-failed" }));
  await expect.poll(() => page.getByRole("row").filter({ hasText: "prices" }).count()).toBe(1);
  expect(await page.locator("details[open]").getByText("sync job 42").count()).toBe(2);
});

it("keeps what is typed when a page changes, and hears nothing while hidden", async () => {
  const own = await webForTest({ story: { orders: { endings: ["ok"] } } });
  const page = await (await browserForTest(await own.serve())).open("/audit");
  await page.locator("[name=policy]").fill("orders");
  await page.locator("[name=from]").fill("2026-11-21");
  await page.locator("[name=to]").focus();
  await expect.poll(() => page.locator("[data-live]").innerText()).toBe("live");
  expect(await page.locator("[name=policy]").inputValue()).toBe("orders");
  expect(await page.locator("[name=from]").inputValue()).toBe("2026-11-21");
  const turn = (state: string) =>
    page.evaluate(`Object.defineProperty(document, "visibilityState", { value: "${state}", configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));`);
  await turn("hidden");
  await expect.poll(() => own.parts.live.size).toBe(0);
  await turn("visible");
  await expect.poll(() => own.parts.live.size).toBe(1);
});

describe("a new operator", () => {
  it("learns what failed tonight and why, a line a cause, and what happened", async () => {
    const page = await browser.open("/");
    await page.getByRole("link", { name: "Failed" }).click();
    await page.getByRole("link", { name: "24 hours" }).click();
    await page.waitForURL(/since=24h/);
    const row = page.getByRole("row").filter({ hasText: "invoices" });
    await row.first().waitFor();
    expect(await row.count()).toBe(1);
    const words = /failed ×4\s+invoices\s+main\s+HTTP 500: .*server-error\s.*\d\d:\d\d sync job 42\s.* to .*\d\d:\d\d/s;
    expect(await row.innerText()).toMatch(words);
    await row.getByRole("link", { name: "sync job 42" }).first().click();
    await page.waitForLoadState();
    expect(await page.locator("main").innerText()).toMatch(/came due.*the start was sent.*evidence\s+direct/s);
  });

  it("learns who paused a policy, until when, and why", async () => {
    const page = await browser.open("/?");
    await page.getByRole("link", { name: "1 paused" }).click();
    await page.getByRole("link", { name: "suspended" }).click();
    await page.waitForLoadState();
    expect(await page.locator("main").innerText()).toMatch(/paused by ana@desk since .*, until it is resumed: </);
  });

  it("learns what runs in the hour from 02:00, without a script", async () => {
    const page = await browser.open("/next", { javaScriptEnabled: false });
    await page.getByLabel("The hour from").fill("02:00");
    await page.getByRole("button", { name: "Show" }).click();
    const slots = page.getByRole("table", { name: "Slots ahead, in order" });
    expect(await page.locator("#slots ~ details summary").innerText()).toMatch(
      /^7 slots in the hour from 02:00 UTC, \d of them at 02:00 itself$/,
    );
    expect(await slots.getByRole("row").filter({ hasText: "suspended" }).innerText()).toContain("skipped");
  });
});

describe("the list of policies", () => {
  it("filters while one types, and keeps the filter in the address", async () => {
    const page = await browser.open("/policies");
    expect(await page.locator("tbody tr").count()).toBe(8);
    await page.getByLabel("Search").pressSequentially("contr");
    // Slow keys filter by a part of the word first.
    await expect.poll(() => page.url()).toContain("?q=contr");
    await expect.poll(() => page.locator("tbody tr").count()).toBe(1);
    expect(await page.evaluate("document.activeElement?.name")).toBe("q");
    await page.reload();
    expect(await page.locator("tbody tr").count()).toBe(1);
  });

  it("works by keyboard alone, and without a script", async () => {
    const page = await browser.open("/policies", { javaScriptEnabled: false });
    await page.keyboard.press("Tab");
    expect(await page.locator(":focus").innerText()).toBe("To the content");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    await page.keyboard.type("invoices");
    await page.keyboard.press("Enter");
    await page.waitForURL(/q=invoices/);
    expect(await page.locator("tbody tr").count()).toBe(1);
    await page.getByRole("link", { name: "invoices", exact: true }).press("Enter");
    await page.waitForURL(/policies\/invoices$/);
    await page.getByText("The same as a table").first().press("Enter");
    await page.getByRole("row").nth(2).getByRole("link").press("Enter");
    await page.waitForURL(/slots/);
    expect(await page.locator("h1").innerText()).toContain("Slot");
  });
});

it("shows markup of notes, errors and changes as text", async () => {
  for (const path of [
    "/changes",
    "/policies/suspended",
    newest("invoices"),
    "/feeds",
    "/feeds/main/HR/conflictDetails",
    "/next",
  ]) {
    const page = await browser.open(path);
    expect(await page.locator("main").textContent()).toContain('<img src=x onerror="alert(1)">');
    expect(await page.locator('img[src="x"], main script').count()).toBe(0);
  }
});

it("prints without navigation, in dark ink on white", async () => {
  const page = await browser.open("/policies", { colorScheme: "dark" });
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  expect(await page.locator(".filters").isVisible()).toBe(false);
  const ink = await page.evaluate("getComputedStyle(document.querySelector('h1')).color");
  expect(ink).toBe("rgb(29, 35, 38)");
});
