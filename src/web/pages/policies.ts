// All policies, the worst first, fifty a page, with filters that stand in the address.
import { html } from "hono/html";
import { counted } from "../../core/plain-text.ts";
import type { Attention } from "../../queries/attention.ts";
import { describePolicy } from "../../queries/attention.ts";
import { type PolicyHealth, type PolicyLine, policyHealths } from "../../queries/policy-lines.ts";
import type { EndedSlot } from "../../queries/slot-strips.ts";
import { type Html, mark, wordOf } from "./marks.ts";
import {
  actionText,
  pageLinks,
  pauseLink,
  policyLink,
  scheduleText,
  slotPath,
  table,
  taskPath,
  tookText,
  when,
} from "./parts.ts";
import { legend, strip } from "./pictures.ts";

/** How many slots a strip shows. */
export const stripSlots = 30;
const rowsMax = 50;

/** What the address asks for. */
export interface PolicyFilter {
  readonly q: string;
  readonly health: PolicyHealth | undefined;
  readonly service: string;
  readonly label: string;
  readonly page: number;
}

/** Reads the filter of an address; what makes no sense there filters nothing. */
export function readFilter(query: Readonly<Record<string, string>>): PolicyFilter {
  const { q = "", health, service = "", label = "", page = "" } = query;
  return {
    q: q.slice(0, 100).trim(),
    health: policyHealths.find((one) => one === health),
    service: service.slice(0, 100),
    label: label.slice(0, 200),
    page: /^[1-9]\d{0,4}$/.test(page) ? Number(page) : 1,
  };
}

/** The lines that fit, and those of the page. */
export function selectLines(lines: readonly PolicyLine[], { q, health, service, label, page }: PolicyFilter) {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  const [name = "", value] = label.split(/=(.*)/s);
  const fitting = lines.filter(({ policy, health: is }) => {
    const text = `${policy.name} ${policy.service} ${policy.repository ?? ""} ${actionText(policy)}`.toLowerCase();
    const own = policy.labels?.[name];
    const isLabelled = label === "" || (own !== undefined && (value === undefined || own === value));
    const fits = (health === undefined || is === health) && (service === "" || policy.service === service);
    return fits && isLabelled && words.every((word) => text.includes(word));
  });
  const pages = Math.max(1, Math.ceil(fitting.length / rowsMax));
  const at = Math.min(page, pages);
  return { fitting, shown: fitting.slice((at - 1) * rowsMax, at * rowsMax), pages, page: at };
}

/** Shows them. `strips`: of the shown ones. `mayPause`: the asker may pause them together. */
export function policiesPage(
  { lines, nowMs, status }: Attention,
  filter: PolicyFilter,
  selected: ReturnType<typeof selectLines>,
  { strips, mayPause }: { readonly strips: ReadonlyMap<string, readonly EndedSlot[]>; readonly mayPause: boolean },
): Html {
  const { fitting, shown } = selected;
  const { q, health, service, label } = filter;
  const rows = shown.map((line) => policyCells(line, strips.get(line.policy.name) ?? [], nowMs));
  const columns = [
    { label: "health" },
    { label: "policy", isRoomy: true as const },
    { label: `last ${stripSlots} slots` },
    { label: "last outcome", isWide: true as const },
    { label: "last good" },
    { label: "next" },
    { label: "usually takes", isNumber: true as const },
  ];
  const found =
    lines.length === 0
      ? html`<p class="none">There are no policies. <code>syncline plan</code> shows those of a file.</p>`
      : html`<p class="none">No policy fits. <a href="/policies">Show all ${lines.length}</a>.</p>`;
  return html`<h1>Policies</h1>
${filterForm(lines, filter)}
<p class="quiet" role="status">${fitting.length === lines.length ? counted(lines.length, "policy", "policies") : `${fitting.length} of ${counted(lines.length, "policy", "policies")}`}, worst first</p>
${mayPause && rows.length > 0 ? html`<p class="acts">${pauseLink(filter.label === "" ? { scope: "all", name: "" } : { scope: "label", name: filter.label }, status.pauses)}</p>` : ""}
${rows.length === 0 ? found : table("Policies, worst first", columns, rows)}
${pageLinks("/policies", { q, health: health ?? "", service, label }, selected)}
${legend()}
<p><a href="/by-hand">Runs by hand without a policy</a></p>`;
}

function policyCells({ policy, ...line }: PolicyLine, slots: readonly EndedSlot[], nowMs: number): (Html | string)[] {
  const place = policy.repository === undefined ? policy.service : `${policy.service}, ${policy.repository}`;
  return [
    mark(line.health),
    html`${policyLink(policy.name)}<span class="under">${actionText(policy)} · ${place}</span><span class="under">${scheduleText(policy)}</span>`,
    strip(slots, stripSlots),
    outcomeCell({ policy, ...line }, nowMs),
    when(line.worst?.lastGoodMs, nowMs),
    line.pauses.length > 0 ? mark("paused") : when(line.nextMs, nowMs),
    tookText(line.usualMs),
  ];
}

/** What its health means, and the run that says so. */
function outcomeCell(line: PolicyLine, nowMs: number): Html | string {
  const words = describePolicy(line, nowMs);
  const last = line.worst?.last;
  if (last === undefined) return words;
  const under = html`<span class="under">${when(last.finishedMs, nowMs)}, evidence ${last.evidence}</span>`;
  const href = last.origin === "manual" ? taskPath(last.taskId) : slotPath(line.policy.name, last.slotMs);
  if (line.pauses.length === 0) return html`<a href="${href}">${words}</a>${under}`;
  return html`${words}<span class="under">before: <a href="${href}">${last.status}</a> ${when(last.finishedMs, nowMs)}</span>`;
}

function filterForm(lines: readonly PolicyLine[], { q, health, service, label }: PolicyFilter): Html {
  const services = [...new Set(lines.map(({ policy }) => policy.service))].toSorted();
  const labels = lines.flatMap(({ policy }) => Object.entries(policy.labels ?? {}).map((pair) => pair.join("=")));
  const option = (value: string, text: string, chosen: string) =>
    html`<option value="${value}"${value === chosen ? html` selected` : ""}>${text}</option>`;
  const known = [...new Set(labels)].toSorted().slice(0, 200);
  const labelField =
    known.length === 0
      ? ""
      : html`<label>Label <select name="label">${option("", "any", label)}${known.map((one) => option(one, one, label))}</select></label>`;
  return html`<form class="filters" role="search" method="get" action="/policies" data-instant>
<label class="grow">Search <input type="search" name="q" value="${q}" maxlength="100" autocomplete="off"></label>
<label>Health <select name="health">${option("", "any", health ?? "")}${policyHealths.map((one) => option(one, wordOf(one), health ?? ""))}</select></label>
<label>Service <select name="service">${option("", "any", service)}${services.map((one) => option(one, one, service))}</select></label>
${labelField}
<button>Filter</button>
</form>`;
}
