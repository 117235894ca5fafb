// A Chromium for the tests of a file. Each of its pages fails its test on an error in the console,
// a violation of the content security policy, or a request to another origin.
import axe from "axe-core";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { afterAll, expect, inject, onTestFinished } from "vitest";

const flags = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];

/** Opens pages of one server. */
export interface TestBrowser {
  /** Opens a page that goes with its test. `isFine`: what its console may say. */
  open(path: string, options?: BrowserContextOptions, isFine?: (message: string) => boolean): Promise<Page>;
}

/** Starts a browser for a test file. `others`: origins that its pages may ask, too. */
export async function browserForTest(base: string, others: readonly string[] = []): Promise<TestBrowser> {
  const { command, env } = inject("chromium");
  const browser: Browser = await chromium.launch({
    executablePath: command,
    args: flags,
    timeout: 100_000,
    env: { ...process.env, ...env },
  });
  afterAll(() => browser.close());
  return {
    open: async (path, options = {}, isFine = () => false) => {
      const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
      context.setDefaultTimeout(60_000);
      const wrong: string[] = [];
      context.on("console", (message) => {
        // A form that was filled wrong is answered with 400 or 422, which Chromium takes for news.
        if (/the server responded with a status of 4(00|22)/.test(message.text())) return;
        if (message.type() === "error" || message.type() === "warning") wrong.push(message.text());
      });
      context.on("weberror", (error) => wrong.push(String(error.error())));
      context.on("request", (request) => {
        if (![new URL(base).origin, ...others].includes(new URL(request.url()).origin))
          wrong.push(`asked ${request.url()}`);
      });
      onTestFinished(async () => {
        await context.close();
        expect(wrong.filter((message) => !isFine(message))).toEqual([]);
      });
      const page = await context.newPage();
      await page.goto(base + path);
      return page;
    },
  };
}

/**
 * What axe finds on a page, by rule and place; empty: nothing. `only`: one rule. Run in the page
 * itself: @axe-core/playwright brings all that is right out of it, too, which takes 10 to 25 times
 * as long.
 */
export async function violationsOf(page: Page, only?: string): Promise<string[]> {
  const runOnly = only === undefined ? { type: "tag", values: rules } : { type: "rule", values: [only] };
  const options = JSON.stringify({ runOnly, resultTypes: ["violations"] });
  if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(axe.source);
  const violations = await page.evaluate<axe.Result[]>(`axe.run(${options}).then(({ violations }) => violations)`);
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id} ${target}: ${failureSummary}`),
  );
}

/** How far a page reaches beyond the right edge, in pixels. */
export function overflowOf(page: Page): Promise<number> {
  return page.evaluate("Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth)");
}
