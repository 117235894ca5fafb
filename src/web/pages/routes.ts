// Adds the pages to the application: asks the queries and hands what they find to the templates.
import type { Context, Hono } from "hono";
import { readAttention } from "../../queries/attention.ts";
import { comingSlots } from "../../queries/coming-slots.ts";
import { readPolicyDays } from "../../queries/policy-days.ts";
import { readChanges, readLine, readNewestOutcomes, readNowMs, readStoryAt } from "../../queries/records.ts";
import { readSlotStrips } from "../../queries/slot-strips.ts";
import { policyOf } from "../api/operation.ts";
import type { Looks } from "../looks.ts";
import { notFound } from "../problem.ts";
import type { WebEnv } from "../web-env.ts";
import { changesPage, changesShown } from "./changes.ts";
import { type Frame, page } from "./layout.ts";
import type { Html } from "./marks.ts";
import { nowPage, nowTitle } from "./now.ts";
import { policiesPage, readFilter, selectLines, stripSlots } from "./policies.ts";
import { policyPage, policySlots } from "./policy.ts";
import { runPage } from "./run.ts";
import { servicesPage } from "./services.ts";

const newestShown = 12;

/** Adds the pages. `hasTokens`: callers signed in, and may sign out. */
export function addPages(app: Hono<WebEnv>, looks: Looks, hasTokens: boolean): void {
  const show = (c: Context<WebEnv>, frame: Omit<Frame, "caller" | "canSignOut">, content: Html) =>
    c.html(page({ ...frame, caller: c.get("caller"), canSignOut: hasTokens }, content));

  app.get("/", async (c) => {
    const context = c.get("query");
    const attention = await looks.of("attention", context, readAttention);
    const outcomes = await looks.of("newest", context, (asked) =>
      readNewestOutcomes(asked, attention.lines, newestShown),
    );
    return show(c, { title: nowTitle(attention), here: "now" }, nowPage(attention, outcomes));
  });

  app.get("/policies", async (c) => {
    const context = c.get("query");
    const attention = await looks.of("attention", context, readAttention);
    const filter = readFilter(c.req.query());
    const selected = selectLines(attention.lines, filter);
    const names = selected.shown.map(({ policy }) => policy.name);
    const strips = await looks.of(`strips ${names.join()}`, context, (asked) =>
      readSlotStrips(asked, names, stripSlots),
    );
    return show(c, { title: "Policies", here: "policies" }, policiesPage(attention, filter, selected, strips));
  });

  app.get("/policies/:name", async (c) => {
    const context = c.get("query");
    const policy = policyOf(context, c.req.param("name"));
    const { name } = policy;
    const view = await looks.of(`policy ${name}`, context, async (asked) => {
      const nowMs = await readNowMs(asked);
      const [line, strips, days] = await Promise.all([
        readLine(asked, policy),
        readSlotStrips(asked, [name], policySlots.past),
        readPolicyDays(asked, policy, policySlots.days),
      ]);
      return {
        line,
        nowMs,
        days,
        slots: strips.get(name) ?? [],
        coming: comingSlots(policy, nowMs, policySlots.coming),
      };
    });
    return show(c, { title: name, here: "policies" }, policyPage(view));
  });

  app.get("/policies/:name/slots/:instant", async (c) => {
    const context = c.get("query");
    const policy = policyOf(context, c.req.param("name"));
    const instantMs = parseInstant(c.req.param("instant"));
    const view = await looks.of(`slot ${policy.name} ${instantMs}`, context, async (asked) => {
      const [story, { usualMs }, nowMs] = await Promise.all([
        readStoryAt(asked, policy, instantMs),
        readLine(asked, policy),
        readNowMs(asked),
      ]);
      return { policy, story, usualMs, nowMs };
    });
    return show(c, { title: `${policy.name}, ${view.story.slot ?? "no slot"}`, here: "policies" }, runPage(view));
  });

  app.get("/services", async (c) => {
    const context = c.get("query");
    const attention = await looks.of("attention", context, readAttention);
    return show(c, { title: "Services", here: "services" }, servicesPage(attention, context));
  });

  app.get("/changes", async (c) => {
    const context = c.get("query");
    const changes = await looks.of("changes", context, (asked) => readChanges(asked, changesShown));
    const nowMs = await readNowMs(context);
    return show(c, { title: "Changes", here: "changes" }, changesPage(changes, context.isNarrowed, nowMs));
  });
}

/** @throws WebError for a text that is no instant. */
function parseInstant(text: string): number {
  const instantMs = /^\d{4}-\d\d-\d\dT[\d:.]{5,12}Z$/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(instantMs))
    throw notFound(`${text.slice(0, 40)} is no instant`, "write one such as 2026-11-22T02:30:00Z");
  return instantMs;
}
