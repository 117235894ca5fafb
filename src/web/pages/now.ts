// The first page: what is not well now, what ended just before, and what comes next.
import { html } from "hono/html";
import { showNear } from "../../core/instant.ts";
import { lowest } from "../../core/min-heap.ts";
import { counted } from "../../core/plain-text.ts";
import type { Outcome } from "../../model/outcome.ts";
import { type Attention, type AttentionItem, mustBeActedOn } from "../../queries/attention.ts";
import { plainHealths } from "../../queries/plain-troubles.ts";
import {
  countHealths,
  describeWaiting,
  hasHealth,
  needsPerson,
  type PolicyLine,
  policyHealths,
} from "../../queries/policy-lines.ts";
import { taskWords } from "../../queries/task-words.ts";
import { besideMark, type Html, type MarkName, mark, tag, toneOf, wordOf } from "./marks.ts";
import {
  actionText,
  care,
  policyLink,
  policyPath,
  runPath,
  section,
  slotPath,
  table,
  taskPath,
  tookText,
  when,
  withCode,
} from "./parts.ts";

const itemsMax = 100;
const nextMax = 10;

/** What the caller may do, and which pages tell them anything. */
interface Reach {
  readonly mayOperate: boolean;
  readonly seesLists: boolean;
  /** Processes, and what belongs to no service. */
  readonly seesAll: boolean;
}

/** Shows the state of everything, with the newest outcomes. */
export function nowPage(attention: Attention, newest: readonly Outcome[], reach: Reach): Html {
  const { lines, nowMs } = attention;
  const { fresh, known } = itemsOf(attention);
  const acknowledged =
    known.length === 0 ? "" : section("known", "Acknowledged", attentionList(known, attention, reach));
  return html`<h1>${headline(attention)}</h1>
${healthCounts(attention)}
${fresh.length === 0 ? "" : attentionList(fresh, attention, reach)}${acknowledged}
<div class="columns">
${section("next", "Next", nextSlots(lines, nowMs))}
${section("ended", "Just ended", justEnded(newest, attention))}
</div>`;
}

/** What is wrong, apart from what a person has taken note of. */
function itemsOf({ items }: Attention) {
  const known = items.filter(({ acknowledged }) => acknowledged !== undefined);
  const fresh = items.filter(({ acknowledged }) => acknowledged === undefined);
  const healing = fresh.filter(({ heals }) => heals).length;
  const heals = healing === 1 ? "1 trouble heals by itself" : `${healing} troubles heal by themselves`;
  const needy = fresh.filter(mustBeActedOn).length;
  return { known, fresh, needy, looks: fresh.length - healing - needy, heals: healing === 0 ? "" : heals };
}

function headline(attention: Attention): string {
  const { lines } = attention;
  const { needy, known, heals, looks } = itemsOf(attention);
  if (needy > 0) return `${counted(needy, "thing needs", "things need")} a person${heals && `, ${heals}`}`;
  if (heals) return `Not all is well: ${heals}, nothing needs a person`;
  const nothing = `Nothing ${known.length === 0 ? "" : "new "}needs a person`;
  if (looks > 0) return `${nothing}, ${counted(looks, "thing is", "things are")} worth a look`;
  if (known.length > 0) return nothing;
  if (lines.length === 0) return "No policies yet";
  const others = lines.filter(({ health }) => health !== "ok");
  const well = lines.length - others.length;
  if (others.length > 0)
    return `${well} of ${counted(lines.length, "policy", "policies")} ${well === 1 ? "is" : "are"} well, ${countHealths(others, plainHealths)}`;
  return lines.length === 1 ? "The one policy is well" : `All ${lines.length} policies are well`;
}

function healthCounts({ lines }: Attention): Html {
  const chips = policyHealths.flatMap((health) => {
    const count = lines.filter((line) => hasHealth(line, health)).length;
    return count === 0
      ? []
      : [html`<li><a class="chip" href="/policies?health=${health}"><b>${count}</b> ${mark(health)}</a></li>`];
  });
  return html`<ul class="chips" aria-label="Policies by health">${chips}</ul>`;
}

const aboutWord = { installation: "installation", service: "service", sink: "sink", list: "list", policy: "" };

function attentionList(items: readonly AttentionItem[], { nowMs }: Attention, reach: Reach): Html {
  const show = (item: AttentionItem) => attentionItem(item, linksOf(item, reach), nowMs);
  // Other pages have those that are cut, and nothing else.
  const beyond = (kind: AttentionItem["about"]) => items.filter(({ about }) => about === kind).slice(itemsMax);
  const [policies, lists] = [beyond("policy"), beyond("list")];
  const cut = new Set([...policies, ...lists]);
  const more = (count: number, where: Html) =>
    count > 0 ? html`<p class="quiet">and ${count} more: ${where}</p>` : "";
  return html`<ul class="attention">${items.filter((item) => !cut.has(item)).map(show)}</ul>
${more(policies.length, html`<a href="/policies">all policies, worst first</a>`)}
${more(lists.length, html`<a href="/feeds">lists</a>`)}`;
}

/** Where the next step can be taken: pages for all of it but what only a command does. */
function linksOf(
  { about, name, state, acknowledged, touches: [line] }: AttentionItem,
  { mayOperate, seesLists, seesAll }: Reach,
) {
  const go = (href: string, words: string) => html` <a class="go" href="${href}">${words}</a>`;
  const act = (path: string, of: string, words: string) =>
    mayOperate ? go(`/${path}?of=${encodeURIComponent(of)}`, words) : "";
  if (about === "list") return [seesLists ? go("/feeds", "Open the feeds") : ""];
  if (line === undefined || about !== "policy")
    return [about === "installation" && !seesAll ? "" : go("/services", "Open the services")];
  const { last } = (state === "unusual" ? line.unusual : line.worst) ?? {};
  const isOfSlots = state === "missed" || state === "late" || state === "unplanned";
  return [
    isOfSlots || last === undefined
      ? go(`${policyPath(name)}#slots`, "Open its slots")
      : go(runPath(name, last), "Open the run"),
    state === "unplanned" && seesAll ? go("/services#processes", "Open the processes") : "",
    state === "quarantined" ? act("resume", `policy:${name}`, "Resume…") : "",
    (state === "late" || state === "missed") && line.underWayMs === undefined ? act("run", name, "Run now…") : "",
    needsPerson[line.health] && acknowledged === undefined ? act("acknowledge", name, "Acknowledge…") : "",
  ];
}

function attentionItem(item: AttentionItem, links: ReturnType<typeof linksOf>, nowMs: number): Html {
  const { about, name, state, sinceMs, lastSuccessMs, nextStep } = item;
  const isPolicy = about === "policy";
  const what = isHealth(state) ? besideMark(state, item.what) : item.what;
  const title = isPolicy ? policyLink(name) : html`<span class="name">${aboutWord[about]} ${name}</span>`;
  const since = sinceMs === undefined ? "" : html`<span>since ${when(sinceMs, nowMs)}</span>`;
  // A run with new conflicts has ended well: then it is no word of comfort.
  const success =
    isPolicy && (lastSuccessMs ?? 0) < (sinceMs ?? nowMs)
      ? html`<span>last good ${lastSuccessMs === undefined ? "never" : when(lastSuccessMs, nowMs)}</span>`
      : "";
  return html`<li class="${toneOfItem(item)}">${markOfItem(item)}<p>${title} ${what}</p><p class="facts">${since} ${success} ${care(item)}</p><p class="step">${withCode(nextStep)}${links}</p></li>`;
}

function isHealth(state: string): state is MarkName {
  return policyHealths.some((health) => health === state);
}

function markOfItem({ state }: Pick<AttentionItem, "state">): Html {
  return isHealth(state) ? mark(state) : tag(toneOfItem({ state }), "triangle", state);
}

function toneOfItem({ state }: Pick<AttentionItem, "state">): ReturnType<typeof toneOf> {
  return isHealth(state) ? toneOf(state) : state === "unusual" ? "warn" : "bad";
}

function nextSlots(lines: readonly PolicyLine[], nowMs: number): Html {
  const coming = lowest(lines, nextMax, ({ nextMs = Number.POSITIVE_INFINITY }) => nextMs);
  const due = coming.filter(({ nextMs }) => nextMs !== undefined);
  const rows = due.map((line) => {
    const { policy, pauses, waitingMs, nextMs = nowMs } = line;
    const waits = waitingMs === undefined ? actionText(policy) : mark("service-down", describeWaiting(line, nowMs));
    return [
      html`${when(nextMs, nowMs)}<span class="under">${showNear(nextMs, policy.timezone, nowMs)}</span>`,
      html`${policyLink(policy.name)}<span class="under">${pauses.length === 0 ? waits : mark("paused", "paused until then")}</span>`,
    ];
  });
  const none = "No policy has a slot ahead.";
  return table("The next slot of each policy", ["due", ["policy", "wide"]], rows, { none, isBrief: true });
}

function justEnded(newest: readonly Outcome[], { nowMs, lines }: Attention): Html {
  const names = new Set(newest.map(({ policy }) => policy));
  const shown = lines.filter(({ policy }) => names.has(policy.name));
  const zones = new Map(shown.map(({ policy }) => [policy.name, policy.timezone]));
  const rows = newest.map((outcome) => {
    const slotMs = Date.parse(outcome.slot);
    const words = taskWords({ ...outcome, slotMs }, zones.get(outcome.policy), nowMs);
    const known = zones.has(outcome.policy);
    const story =
      outcome.origin === "manual"
        ? html`<a href="${taskPath(outcome.taskId)}">${words}</a>`
        : known
          ? html`<a href="${slotPath(outcome.policy, slotMs)}">${words}</a>`
          : words;
    return [
      mark(outcome.status),
      html`${known ? policyLink(outcome.policy) : outcome.policy}<span class="under">${story}</span>`,
      tookText(outcome.durationMs ?? undefined),
      when(Date.parse(outcome.finishedAt), nowMs),
    ];
  });
  const columns = ["ended", ["policy", "wide"], ["took", "num"], "when"] as const;
  return table("The newest outcomes", columns, rows, { none: "Nothing has ended yet.", isBrief: true });
}

/** The title for the browser's tab: what needs a person, what heals, or how many are well. */
export function nowTitle(attention: Attention): string {
  const { lines, counts } = attention;
  const { needy, heals } = itemsOf(attention);
  const well = counts.get("ok") ?? 0;
  if (needy > 0) return `${needy} ${needy === 1 ? "needs" : "need"} a person`;
  return heals || (well === lines.length ? wordOf("ok") : `${well} of ${lines.length} well`);
}
