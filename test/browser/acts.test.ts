// What people change on the pages: each act by keyboard alone and without a script.
import type { Locator, Page } from "playwright-core";
import { expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { createToken } from "../../src/web/tokens.ts";
import { browserForTest, overflowOf } from "../support/browser.ts";
import { webForTest } from "../support/web-fixture.ts";
import { smallStory } from "../support/web-story.ts";

const boss = createToken({ name: "boss", scope: "admin", services: [] });
const reader = createToken({ name: "reader", scope: "read", services: [] });
// Time flies, so that no request is refused for being too fast.
let flownMs = 0;
const clock = { ...systemClock, monotonicMs: () => (flownMs += 10_000) };
const expectation = { kind: "successBy", at: "06:00", on: "*" } as const;
const story = { ...smallStory, "just-added": { endings: [], more: { expect: expectation } } };
const web = await webForTest({ story, tokens: () => `${boss.line}\n${reader.line}`, clock });
const late = { sinceMs: 2, fromMs: 1, atMs: 2, toldMs: 2, why: "no slot began" };
const lateState = JSON.stringify({ v: 1, expect: "", judgedMs: 2, late, sinks: [] });
await web.store.redis.hset(web.store.key("notifications", "deadlines"), "just-added", lateState);
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

const tabsMax = 120;

/** Goes there by the Tab key, and sees where it is. */
async function tabTo(page: Page, there: Locator): Promise<void> {
  const isThere = () => there.evaluate((one) => one.matches(":focus-visible"));
  for (let tabs = 0; !(await isThere()); tabs += 1) {
    expect(tabs, `${there} within ${tabsMax} tabs`).toBeLessThan(tabsMax);
    await page.keyboard.press("Tab");
  }
  expect(await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")).toBe("solid");
}

/** What a person does: opens a link, fills fields by typing, sends the form with Enter. */
interface Act {
  /** Where the link stands; undefined: where the act before has led. */
  readonly from?: string;
  readonly link: string;
  /** What the form says before. */
  readonly says: RegExp;
  readonly fields?: Readonly<Record<string, string>>;
  /** Where it leads, and what the page says of it there. */
  readonly to: RegExp;
  readonly done: RegExp;
  readonly shows?: RegExp;
}

async function act(page: Page, title: string, { from, link, says, fields = {}, to, done, shows }: Act): Promise<void> {
  if (from !== undefined) await page.goto(base + from);
  await tabTo(page, page.getByRole("link", { name: link, exact: true }));
  await page.keyboard.press("Enter");
  await page.waitForURL(/\?of=/);
  expect(await page.locator("main").innerText(), title).toMatch(says);
  expect(await overflowOf(page), title).toBe(0);
  for (const [label, text] of Object.entries({ ...fields, Why: "ticket 7" })) {
    await tabTo(page, page.getByLabel(label));
    await page.keyboard.type(text);
  }
  await page.keyboard.press("Enter");
  await page.waitForURL(/done=/);
  expect(page.url(), title).toMatch(to);
  expect(await page.locator(".done").innerText(), title).toMatch(done);
  const focus = () => page.evaluate("document.activeElement.className");
  await expect.poll(focus, { message: title }).toContain("done");
  if (shows !== undefined) expect(await page.locator("main").innerText(), title).toMatch(shows);
}

/** The task of the failed list that ended so. */
async function failedTask(status: string): Promise<string> {
  const asked = await web.ask("/api/v1/failed", { headers: { authorization: `Bearer ${boss.token}` } });
  const { items } = (await asked.json()) as { items: { id: string; outcome: { status: string } }[] };
  return `/tasks/${items.find(({ outcome }) => outcome.status === status)?.id}`;
}

const acts: Readonly<Record<string, Act>> = {
  "pauses a policy and shows until when": {
    from: "/policies/invoices",
    link: "Pause…",
    says: /2[34] slots of 1 policy come due in the next 24 hours.*for 4 hours: 4 slots/s,
    fields: { "Ends by itself": "for 8" },
    to: /policies\/invoices\?/,
    done: /paused policy invoices: ticket 7\./,
    shows: /paused by boss .*until .*: ticket 7/,
  },
  "resumes it": {
    link: "Resume…",
    says: /paused by boss/,
    to: /policies\/invoices\?/,
    done: /resumed policy invoices: ticket 7/,
  },
  "runs a policy, and leads to its task": {
    from: "/policies/suspended",
    link: "Run now…",
    says: /run sync job 42, at main, repository HR.*The pause stays/s,
    to: /\/tasks\/suspended__run__42__m\d+\?/,
    done: /queued policy suspended: ticket 7\. Reload this page to see how it ends\./,
  },
  "cancels that task": {
    link: "Cancel…",
    says: /the service has no way to stop a run/,
    to: /\/tasks\/suspended__run__42__m\d+\?/,
    done: /cancelled suspended: sync job 42/,
  },
  "runs a sync job that has no policy": {
    from: "/by-hand",
    link: "Run a sync job…",
    says: /without a policy/,
    fields: { "Number of the sync job": "77" },
    to: /\/tasks\/\S+__run__77__m\d+\?/,
    done: /queued sync job 77 of main: ticket 7/,
  },
  "does over what may have run, with a tick": {
    from: await failedTask("unknown"),
    link: "Replay…",
    says: /Nothing proves that its start did not run/,
    fields: { "Send it although it may have run": " " },
    to: /\/tasks\/archive__run__42__m/,
    done: /queued again archive: sync job 42, slot .*: ticket 7\. Reload this page to see how it ends\./,
  },
  "takes a failure off the list": {
    from: await failedTask("failed"),
    link: "Discard…",
    says: /It is not done over/,
    to: /\/tasks\/invoices__run__42__\d+\?/,
    done: /taken off the failed list invoices: sync job 42, .*: ticket 7\.$/,
  },
  "starts what is late, from the first page": {
    from: "/",
    link: "Run now…",
    says: /run sync job 42/,
    to: /\/tasks\/just-added__run__42__m\d+\?/,
    done: /queued policy just-added/,
  },
  "takes note of what is late and never ran": {
    from: "/policies/just-added",
    link: "Acknowledge…",
    says: /Notices go on/,
    to: /policies\/just-added\?/,
    done: /acknowledged policy just-added/,
    shows: /late.*acknowledged by boss.*ticket 7/,
  },
  "takes note of a failure": {
    from: "/policies/personnel",
    link: "Acknowledge…",
    says: /Notices go on/,
    to: /policies\/personnel\?/,
    done: /acknowledged policy personnel/,
    shows: /acknowledged by boss.*ticket 7/,
  },
  "takes that back": {
    link: "Take back the acknowledgement…",
    says: /needs a person again/,
    to: /policies\/personnel\?/,
    done: /acknowledgement taken back policy personnel/,
  },
  "pauses a service": {
    from: "/services",
    link: "Pause service main…",
    says: /slots of 8 policies/,
    to: /\/services\?/,
    done: /paused service main/,
  },
  "resumes a service": {
    link: "Resume service main…",
    says: /paused by boss/,
    to: /\/services\?/,
    done: /resumed service main/,
  },
  "pauses all, with their number": {
    from: "/policies",
    link: "Pause all policies…",
    says: /It is 8 policies/,
    fields: { "How many policies": "8" },
    to: /\/policies\?/,
    done: /paused all policies: ticket 7/,
  },
  "resumes all": {
    link: "Resume all policies…",
    says: /paused by boss/,
    to: /\/policies\?/,
    done: /resumed all policies: ticket 7/,
  },
};

it("does every act by keyboard alone, without a script, at 320 px", async () => {
  const page = await browser.open("/policies", { javaScriptEnabled: false, viewport: { width: 320, height: 700 } });
  await tabTo(page, page.getByLabel("Token"));
  await page.keyboard.type(boss.token);
  await page.keyboard.press("Enter");
  await page.waitForURL(`${base}/policies`);
  for (const [title, one] of Object.entries(acts)) await act(page, title, one);
  await tabTo(page, page.getByRole("button", { name: "Sign out" }));
  await page.keyboard.press("Enter");
  await page.waitForURL(`${base}/sign-in`);
  await page.goto(`${base}/policies`);
  expect(page.url()).toBe(`${base}/sign-in?next=%2Fpolicies`);
}, 900_000);

it("keeps what was typed when something is wrong with it", async () => {
  const page = await open("/pause?of=all");
  await page.getByLabel("How many policies").fill("7");
  await page.getByLabel("Why").fill("move");
  await page.keyboard.press("Enter");
  expect(await page.getByRole("alert").innerText()).toContain("type 8, the number of policies");
  expect(await page.getByLabel("Why").inputValue()).toBe("move");
  await page.goto(`${base}/run-sync-job?of=`);
  await page.getByLabel("Number of the sync job").fill("x1");
  await page.getByLabel("Repository").fill("HR");
  await page.getByLabel("Why").fill("move");
  await page.keyboard.press("Enter");
  expect(await page.getByRole("alert").innerText()).toContain("type the number of the sync job");
  expect(await page.getByLabel("Repository").inputValue()).toBe("HR");
  await page.goto(`${base}/acknowledge?of=personnel`);
  await page.getByLabel("Why").fill("   ");
  await page.keyboard.press("Enter");
  expect(await page.getByRole("alert").innerText()).toContain("say why, in at most 200 characters");
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
  expect(second?.split("?")[0]).toBe(first?.split("?")[0]);
});
