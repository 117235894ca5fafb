// The services: breaker, patience, requests under way, and which policies hang on each.
import { html } from "hono/html";
import { counted } from "../../core/plain-text.ts";
import type { Attention } from "../../queries/attention.ts";
import { needsPerson } from "../../queries/policy-lines.ts";
import { shortHash } from "../../queries/policy-set.ts";
import type { QueryContext } from "../../queries/query-context.ts";
import { describeBreaker, describeThrottle, showPresence } from "../../queries/service-words.ts";
import { type Html, mark, tag } from "./marks.ts";
import { nothing, pauseLink, table, when } from "./parts.ts";

/** Shows services, sinks and processes. `mayPause`: the asker may pause a service. */
export function servicesPage(
  { status, lines, nowMs }: Attention,
  { set, isNarrowed }: QueryContext,
  mayPause: boolean,
): Html {
  const rows = status.services.map((one) => {
    const own = lines.filter(({ policy }) => policy.service === one.service);
    const bad = own.filter(({ health }) => needsPerson[health]).length;
    const limits = set.services.get(one.service)?.limits;
    const most = limits?.concurrencyMax === undefined ? "" : ` of ${limits.concurrencyMax}`;
    return [
      one.breaker === "open" ? tag("bad", "triangle", "breaker open") : mark("ok", "breaker closed"),
      html`<span class="name">${one.service}</span>`,
      one.breaker === "closed" && one.failures === 0 ? nothing : describeBreaker(one, nowMs),
      one.throttledUntilMs === undefined ? "no" : tag("warn", "clock", describeThrottle(one, nowMs)),
      `${one.inFlight}${most}`,
      html`<a href="/policies?service=${one.service}">${counted(own.length, "policy", "policies")}</a>${bad === 0 ? "" : html`<span class="under">${bad} need a person</span>`}${mayPause ? html`<span class="under">${pauseLink({ scope: "service", name: one.service }, status.pauses)}</span>` : ""}`,
    ];
  });
  const columns = [
    { label: "state" },
    { label: "service" },
    { label: "failures", isWide: true as const },
    { label: "asked for patience" },
    { label: "in flight", isNumber: true as const },
    { label: "hang on it" },
  ];
  const services =
    rows.length === 0 ? html`<p class="none">There is no service.</p>` : table("Services", columns, rows);
  return html`<h1>Services</h1>${services}${isNarrowed ? "" : html`${processes({ status, nowMs })}${sinks({ status, nowMs })}`}`;
}

function processes({ status, nowMs }: Pick<Attention, "status" | "nowMs">): Html {
  const { replicas } = status.config;
  const rows = replicas.map(({ where, roles, version, hash, sinceMs, rejected }) => [
    html`<span class="name">${where}</span>`,
    roles.join(", "),
    version,
    html`<code>${shortHash(hash)}</code>`,
    when(sinceMs, nowMs),
    rejected === null ? mark("ok", "in force") : tag("bad", "cross", `rejected: ${rejected.where} ${rejected.message}`),
  ]);
  const columns = [
    { label: "process" },
    { label: "roles" },
    { label: "version" },
    { label: "policies" },
    { label: "since" },
    { label: "newest file", isWide: true as const },
  ];
  const all =
    rows.length === 0 ? html`<p class="none">No process has said what it runs.</p>` : table("Processes", columns, rows);
  return html`<section aria-labelledby="processes"><h2 id="processes">Processes</h2><p class="quiet">Alive: ${showPresence(status.processes)}.</p>${all}</section>`;
}

function sinks({ status, nowMs }: Pick<Attention, "status" | "nowMs">): Html | "" {
  if (status.sinks.length === 0) return "";
  const rows = status.sinks.map(({ sink, waiting, oldestMs, failed, dropped }) => [
    html`<span class="name">${sink}</span>`,
    `${waiting}`,
    when(oldestMs, nowMs),
    `${failed}`,
    `${dropped}`,
  ]);
  const columns = [
    { label: "sink" },
    { label: "waiting", isNumber: true as const },
    { label: "the first since" },
    { label: "failed", isNumber: true as const },
    { label: "dropped", isNumber: true as const },
  ];
  return html`<section aria-labelledby="sinks"><h2 id="sinks">Sinks</h2>${table("Sinks", columns, rows)}</section>`;
}
