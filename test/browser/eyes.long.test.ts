// Every page for every pair of eyes: what axe knows of WCAG 2.2 AA, light and dark, from 320 to
// 1,920 px, forced colours and paper; full of 200 policies with the longest names, and empty.
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { createToken } from "../../src/web/tokens.ts";
import { browserForTest, overflowOf, violationsOf } from "../support/browser.ts";
import { webForTest } from "../support/web-fixture.ts";
import { crowdedStory, writeTroubles } from "../support/web-story.ts";

const boss = createToken({ name: "boss", scope: "admin", services: [] });
// Time flies, so that no request is refused for being too fast.
let flownMs = 0;
const clock = { ...systemClock, monotonicMs: () => (flownMs += 10_000) };
const tokens = () => boss.line;
const full = await webForTest({ story: crowdedStory(), tokens, clock });
await writeTroubles(full.store);
const empty = await webForTest({ story: {}, tokens, clock });
const browser = await browserForTest(await full.serve());
const emptyBrowser = await browserForTest(await empty.serve());

const asked = await full.ask("/api/v1/policies/invoices", { headers: { authorization: `Bearer ${boss.token}` } });
const { slots } = (await asked.json()) as { slots: { slot: string }[] };
const slot = slots.at(-1)?.slot ?? "";
const longest = `${"unbroken".repeat(8).slice(0, 60)}-40`;
const [discarded, failed] = slots.slice(-2).map((one) => `invoices__run__42__${Date.parse(one.slot) / 1_000}`);
const overviews = [
  "/",
  "/policies",
  "/failed",
  "/next",
  "/next?at=03:20",
  "/by-hand",
  "/feeds",
  "/audit",
  "/services",
  "/changes",
];
const views = [
  ...overviews,
  ...["/policies/contracts-nightly", `/policies/${longest}?days=90`, "/policies/suspended"],
  ...[`/policies/invoices/days/${slot.slice(0, 10)}`, `/policies/invoices/slots/${slot}`, `/tasks/${failed}`],
  ...[`/policies/deliveries/slots/${slot}`, "/policies/invoices/by-hand", "/feeds/main/HR/conflictDetails"],
];
const forms = [
  ...[`/pause?of=policy:${longest}`, "/resume?of=policy:suspended", `/run?of=${longest}`],
  ...[
    "/run-sync-job?of=",
    "/acknowledge?of=invoices",
    "/unacknowledge?of=approvals",
    `/replay?of=${failed}`,
    `/discard?of=${discarded}`,
  ],
  ...["/pause?of=service:main", "/resume?of=service:main", "/pause?of=all", "/resume?of=all"],
];
const typed = { count: `${Object.keys(crowdedStory()).length}`, syncJob: "77", reason: "ticket 7" };

/** Opens a page as an admin. `isFine`: what its console may say. */
function open(path: string, where = browser): Promise<Page> {
  const extraHTTPHeaders = { authorization: `Bearer ${boss.token}` };
  return where.open(path, { extraHTTPHeaders }, (message) => /status of 4\d\d/.test(message));
}

/** Light and dark, narrow and wide. */
async function expectLegible(page: Page): Promise<void> {
  await page.emulateMedia({ colorScheme: "light" });
  expect(await violationsOf(page)).toEqual([]);
  await page.emulateMedia({ colorScheme: "dark" });
  expect(await violationsOf(page, "color-contrast")).toEqual([]);
  for (const width of [320, 1_920]) {
    await page.setViewportSize({ width, height: 900 });
    expect(await overflowOf(page), `${page.url()} at ${width} px`).toBe(0);
  }
}

/** What of a page cannot be told from the paper: marks, bars, names, headings. */
function vanishedOn(page: Page): Promise<string[]> {
  return page.evaluate(`
    [...document.querySelectorAll("main :is(h1, h2, .mark, .name, td, .bar, .day, .ran, .slot)")]
      .filter((one) => one.checkVisibility())
      .filter((one) => {
        const { color, fill, stroke } = getComputedStyle(one);
        const paper = getComputedStyle(document.body).backgroundColor;
        const isShape = one instanceof SVGElement;
        return isShape ? [fill, stroke].every((ink) => ink === "none" || ink === paper) : color === paper;
      })
      .map((one) => one.outerHTML.slice(0, 80))`);
}

describe("full", () => {
  it.each(views)("%s is legible in light, dark, narrow and wide", async (path) => {
    await expectLegible(await open(path));
  });

  it.each(["/policies/contracts-nightly", "/next", `/tasks/${failed}`])(
    "%s loses nothing in forced colours, without motion, on paper",
    async (path) => {
      const page = await open(path);
      const seen = () =>
        page.locator("h1, h2, .state, td").evaluateAll((all) => all.filter((one) => one.checkVisibility()).length);
      const all = await seen();
      await page.emulateMedia({ forcedColors: "active", reducedMotion: "reduce" });
      expect(await vanishedOn(page)).toEqual([]);
      const moving = "getComputedStyle(document.links[1]).transitionDuration";
      expect(await page.evaluate(moving)).toBe("0s");
      await page.emulateMedia({ forcedColors: "none", media: "print", colorScheme: "dark" });
      expect(await vanishedOn(page)).toEqual([]);
      expect(await seen()).toBe(all);
    },
  );
});

describe("empty", () => {
  it.each(overviews)("%s is legible in light, dark, narrow and wide", async (path) => {
    await expectLegible(await open(path, emptyBrowser));
  });
});

/** Fills the form, sends it, and looks at where it leads. */
async function expectLegibleAfter(page: Page): Promise<void> {
  for (const [name, text] of Object.entries(typed)) {
    const field = page.locator(`.stack [name=${name}]`);
    if ((await field.count()) > 0) await field.fill(text);
  }
  await page.locator(".stack button").click();
  await page.locator(".done").waitFor();
  await expectLegible(page);
}

describe("where something is changed", () => {
  it.each(forms)("%s is legible, also after a mistake and when done", async (path) => {
    const page = await open(path);
    await expectLegible(page);
    await page.evaluate("document.querySelector('.stack').noValidate = true");
    await page.locator(".stack button").click();
    await page.getByRole("alert").waitFor();
    expect(await violationsOf(page)).toEqual([]);
    await expectLegibleAfter(page);
    if (!path.startsWith("/run?")) return;
    await page.getByRole("link", { name: "Cancel…" }).click();
    await expectLegibleAfter(page);
  });
});

describe("where a person is stopped", () => {
  it.each(["/policies/none", `/run?of=${"y".repeat(500)}`, `/next?at=${"y".repeat(500)}`])(
    "%.20s is legible",
    async (path) => {
      await expectLegible(await open(path));
    },
  );

  it("the sign-in is legible, also after a wrong token", async () => {
    const page = await browser.open("/sign-in", {}, (message) => message.includes("status of 403"));
    await expectLegible(page);
    await page.getByLabel("Token").fill("syncline_wrong");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").waitFor();
    expect(await violationsOf(page)).toEqual([]);
  });
});
