// All policies, the worst first, fifty a page, with filters that stand in the address.
import { html } from "hono/html";
import type { Policy } from "../../config/policy-set.ts";
import { counted } from "../../core/plain-text.ts";
import type { PauseSubject } from "../../model/pause.ts";
import { type Attention, describePolicy, pauseWords } from "../../queries/attention.ts";
import { hasHealth, type PolicyHealth, type PolicyLine, policyHealths } from "../../queries/policy-lines.ts";
import type { EndedSlot } from "../../queries/slot-strips.ts";
import { type Html, mark, wordOf } from "./marks.ts";
import {
  actionText,
  evidenceText,
  options,
  pageLinks,
  pauseLink,
  policyLink,
  runPath,
  scheduleText,
  table,
  tookText,
  when,
} from "./parts.ts";
import { legend, strip } from "./pictures.ts";

/** How many slots a strip shows. */
export const stripSlots = 30;
const rowsMax = 50;
/** Labels to choose from. */
const labelsShown = 200;

/** What the address asks for. */
export interface PolicyFilter {
  readonly q: string;
  readonly health: PolicyHealth | undefined;
  readonly service: string;
  readonly label: string;
  readonly page: number;
}

/** Reads the filter of an address, which has been checked (parameters.ts). */
export function readFilter(query: Readonly<Record<string, string>>): PolicyFilter {
  const { q = "", health, service = "", label = "", page = "1" } = query;
  return { q: q.trim(), health: policyHealths.find((one) => one === health), service, label, page: Number(page) };
}

/** The lines that fit, and those of the page. */
export function selectLines(lines: readonly PolicyLine[], { q, health, service, label, page }: PolicyFilter) {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  const labels = label === "" ? [] : label.split(",").map((one) => one.split(/=(.*)/s));
  const fitting = lines.filter((line) => {
    const { policy } = line;
    const isLabelled = labels.every(([name = "", value]) => {
      const own = policy.labels?.[name];
      return own !== undefined && (value === undefined || own === value);
    });
    const hasWantedHealth = health === undefined || hasHealth(line, health);
    return hasWantedHealth && (service === "" || policy.service === service) && isLabelled && isNamed(policy, words);
  });
  const pages = Math.max(1, Math.ceil(fitting.length / rowsMax));
  const at = Math.min(page, pages);
  return { fitting, shown: fitting.slice((at - 1) * rowsMax, at * rowsMax), pages, page: at };
}

/** Whether all of these words stand in what names a policy. */
function isNamed(policy: Policy, words: readonly string[]): boolean {
  if (words.length === 0) return true;
  const text = `${policy.name} ${policy.service} ${policy.repository ?? ""} ${actionText(policy)}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

/** The services and labels of these policies, in order. */
export function choicesOf(policies: readonly Policy[]) {
  const labels = policies.flatMap((policy) => Object.entries(policy.labels ?? {}).map((pair) => pair.join("=")));
  const services = policies.map(({ service }) => service);
  return { services: [...new Set(services)].toSorted(), labels: [...new Set(labels)].toSorted() };
}

/**
 * Shows them. `strips`: of the shown ones. `choices`: of all. `isByLabels`: the caller may see
 * only policies with certain labels. `pausable`: what they may pause together.
 */
export function policiesPage(
  { lines, nowMs, status }: Attention,
  filter: PolicyFilter,
  selected: ReturnType<typeof selectLines>,
  {
    strips,
    choices,
    isByLabels,
    pausable,
  }: {
    readonly strips: ReadonlyMap<string, readonly EndedSlot[]>;
    readonly choices: ReturnType<typeof choicesOf>;
    readonly isByLabels: boolean;
    readonly pausable: PauseSubject | undefined;
  },
): Html {
  const { fitting, shown } = selected;
  const { q, health, service, label } = filter;
  const rows = shown.map((line) => policyCells(line, strips.get(line.policy.name) ?? [], nowMs));
  const columns = [
    "health",
    ["policy", "roomy"],
    `last ${stripSlots} slots`,
    ["last outcome", "wide"],
    "last good",
    "next",
    ["usually takes", "num"],
  ] as const;
  const none =
    lines.length === 0
      ? html`There are no policies. <code>syncline plan</code> shows those of a file.`
      : html`No policy fits. <a href="/policies">Show all ${lines.length}</a>.`;
  return html`<h1>Policies</h1>
${filterForm(choices, filter)}
<p class="acts"><span class="quiet" role="status">${fitting.length === lines.length ? counted(lines.length, "policy", "policies") : `${fitting.length} of ${counted(lines.length, "policy", "policies")}`}, worst first</span>
${pausable !== undefined && rows.length > 0 ? pauseLink(pausable, status.pauses) : ""}</p>
${table("Policies, worst first", columns, rows, { none })}
${pageLinks("/policies", { q, health: health ?? "", service, label }, selected)}
${legend()}
${isByLabels ? "" : html`<p><a href="/by-hand">Runs by hand without a policy</a></p>`}`;
}

function policyCells({ policy, ...line }: PolicyLine, slots: readonly EndedSlot[], nowMs: number): (Html | string)[] {
  const place = policy.repository === undefined ? policy.service : `${policy.service}, ${policy.repository}`;
  return [
    mark(line.health),
    html`${policyLink(policy.name)}<span class="under">${actionText(policy)} · ${place} · ${scheduleText(policy)}</span>`,
    strip(slots, stripSlots),
    outcomeCell({ policy, ...line }, nowMs),
    when(line.worst?.lastSuccessMs, nowMs),
    line.pauses.length > 0 && line.nextMs === undefined
      ? mark("paused")
      : html`${when(line.nextMs, nowMs)}${line.pauses.length > 0 ? html`<span class="under">after the pause</span>` : ""}`,
    tookText(line.usualMs),
  ];
}

/** What its health means, and the run that says so. */
function outcomeCell(line: PolicyLine, nowMs: number): Html | string {
  const words = describePolicy(line, nowMs);
  const last = line.worst?.last;
  if (last === undefined) return words;
  const under = html`<span class="under">${when(last.finishedMs, nowMs)}${evidenceText(last)}</span>`;
  const href = runPath(line.policy.name, last);
  if (line.pauses.length === 0) return html`<a href="${href}">${words}</a>${under}`;
  const [pause] = line.health === "paused" || line.health === "quarantined" ? [] : line.pauses;
  const paused = pause === undefined ? "" : html`<span class="under">${pauseWords(pause, line.policy, nowMs)}</span>`;
  return html`${words}${paused}<span class="under">before: <a href="${href}">${last.status}</a> ${when(last.finishedMs, nowMs)}</span>`;
}

function filterForm(
  { services, labels }: ReturnType<typeof choicesOf>,
  { q, health, service, label }: PolicyFilter,
): Html {
  const any = ["", "any"] as const;
  const shown = [...new Set([...labels.slice(0, labelsShown), ...(label === "" ? [] : [label])])].toSorted();
  const rest = new Set([...labels, ...shown]).size - shown.length;
  const more = rest > 0 ? html`<option disabled>and ${rest} more: ?label=NAME=VALUE in the address</option>` : "";
  const healths = policyHealths.map((one) => [one, wordOf(one)] as const);
  const labelField =
    shown.length === 0
      ? ""
      : html`<label>Label <select name="label">${options([any, ...shown], label)}${more}</select></label>`;
  return html`<form class="filters" role="search" method="get" action="/policies" data-instant>
<label class="grow">Search <input type="search" name="q" value="${q}" maxlength="100" autocomplete="off"></label>
<label>Health <select name="health">${options([any, ...healths], health)}</select></label>
<label>Service <select name="service">${options([any, ...services], service)}</select></label>
${labelField}
<button>Filter</button>
</form>`;
}
