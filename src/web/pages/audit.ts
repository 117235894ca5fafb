// The audit "planned = recorded": per policy, were all slots of a span recorded, and only those?
import { html } from "hono/html";
import {
  type AuditReport,
  auditedMax,
  auditMeaning,
  auditStates,
  auditSum,
  describeUnchecked,
  notesFor,
} from "../../queries/audit-policy.ts";
import { type Html, mark, tag } from "./marks.ts";
import { fullTime, nothing, pageLinks, policyLink, section, slotPath, table } from "./parts.ts";

/** Policies of one page: each costs a reading of its whole ledger. */
export const auditRowsMax = 15;
const findingsMax = 20;

/** What the address asks for. Days are those of UTC. */
export interface AuditFilter {
  readonly policy: string;
  readonly from: string;
  readonly to: string;
  readonly page: number;
}

/** Reads the filter of an address, which has been checked (parameters.ts). */
export function readAuditFilter({
  policy = "",
  from = "",
  to = "",
  page = "1",
}: Readonly<Record<string, string>>): AuditFilter {
  return { policy, from, to, page: Number(page) };
}

/** The instants of a filter: its first day begins, its last one ends. */
export function spanOf({ from, to }: AuditFilter): {
  readonly fromMs: number | undefined;
  readonly toMs: number | undefined;
} {
  return {
    fromMs: from === "" ? undefined : Date.parse(from),
    toMs: to === "" ? undefined : Date.parse(to) + 86_400_000 - 1,
  };
}

/** Where a page stands: so many policies are on those before it, `after` the last of them. */
interface PagePlace {
  readonly pages: number;
  readonly before: number;
  readonly after: string | undefined;
  readonly all: number;
}

/** Shows the audits of one page of policies. */
export function auditPage(reports: readonly AuditReport[], filter: AuditFilter, place: PagePlace): Html {
  const { pages } = place;
  const findings = reports.flatMap(({ policy, findings: found }) => found.map((one) => ({ policy, ...one })));
  // Of slots without a record yet the next look tells.
  const isOpen = reports.some(({ audit }) => (audit?.pending ?? 0) + (audit?.waiting ?? 0) > 0);
  const isWhole = !isOpen && describeUnchecked(reports).length === 0;
  const state =
    findings.length > 0
      ? tag("bad", "cross", "off")
      : reports.some(({ audit }) => (audit?.slots ?? 0) > 0)
        ? mark("ok", isWhole ? "proved" : "recorded")
        : mark("new", "nothing to check");
  const of = pages > 1 ? html` <span class="quiet">of the policies on this page</span>` : "";
  return html`<h1>Audit</h1>
${filterForm(filter)}
<p class="state">${state} ${auditSum(reports, findings.length)}${of}</p>
<p class="quiet">From and To are days in UTC. Which slots were due is computed again, and held against the record. ${exportLinks(filter, place)}</p>
${reportTable(reports)}
${findings.length === 0 ? "" : findingTable(findings)}
${pageLinks("/audit", { policy: filter.policy, from: filter.from, to: filter.to }, { page: filter.page, pages })}`;
}

function filterForm({ policy, from, to }: AuditFilter): Html {
  return html`<form class="filters" role="search" method="get" action="/audit">
<label class="grow">Policy <input type="search" name="policy" value="${policy}" maxlength="100"></label>
<label>From <input type="date" name="from" value="${from}"></label>
<label>To <input type="date" name="to" value="${to}"></label>
<button>Check</button></form>`;
}

/** The export begins with the page's policies, and has as many as an answer may have. */
function exportLinks(filter: AuditFilter, { pages, before, after = "", all }: PagePlace): Html {
  const { fromMs, toMs } = spanOf(filter);
  const iso = (ms: number | undefined) => (ms === undefined ? "" : new Date(ms).toISOString());
  const href = (format: string) => {
    const span = { since: iso(fromMs), until: iso(toMs) };
    const pairs = Object.entries({ q: filter.policy, ...span, limit: `${auditedMax}`, after, format });
    return `/api/v1/audit?${new URLSearchParams(pairs.filter(([, value]) => value !== "")).toString()}`;
  };
  const of = pages === 1 ? "" : ` of policies ${before + 1} to ${Math.min(before + auditedMax, all)} of ${all}`;
  return html`Export${of}: <a href="${href("csv")}" download="audit.csv">CSV</a>, <a href="${href("ndjson")}" download="audit.ndjson">NDJSON</a>.`;
}

function findingTable(findings: readonly (AuditReport["findings"][number] & { readonly policy: string })[]): Html {
  const rows = findings
    .slice(0, findingsMax)
    .map(({ policy, slotMs, problem, taskId }) => [
      tag("bad", "cross", problem),
      policyLink(policy),
      html`<a href="${slotPath(policy, slotMs)}">${fullTime(slotMs, "UTC")}</a>`,
      html`${auditMeaning[problem]}${taskId === null ? "" : html` <code>${taskId}</code>`}`,
    ]);
  const columns = ["finding", "policy", "slot", ["what it means", "wide"]] as const;
  const more =
    findings.length > findingsMax
      ? html`<p class="quiet">and ${findings.length - findingsMax} more; the export has all</p>`
      : "";
  return section("off", "Off", html`${table("Findings", columns, rows)}${more}`);
}

function reportTable(reports: readonly AuditReport[]): Html {
  const rows = reports.map((report) => {
    const { policy, audit, inFlight, findings } = report;
    return [
      policyLink(policy),
      audit === undefined ? nothing : fullTime(audit.afterMs + 1, "UTC"),
      `${audit?.slots ?? 0}`,
      ...auditStates.map((state) =>
        audit === undefined || audit.states[state] === 0 ? nothing : `${audit.states[state]}`,
      ),
      inFlight === 0 ? nothing : `${inFlight}`,
      findings.length === 0 ? nothing : tag("bad", "cross", `${findings.length}`),
      notesFor(report),
    ];
  });
  const numbers = ["slots", ...auditStates, "in flight", "off"].map((label) => [label, "num"] as const);
  const columns = ["policy", "checked from", ...numbers, ["note", "wide"] as const];
  return table("Audit by policy", columns, rows, { none: "No policy of this name." });
}
