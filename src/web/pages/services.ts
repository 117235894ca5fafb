// The services: breaker, throttling, requests under way, and which policies hang on each.
import { html } from "hono/html";
import { counted } from "../../core/plain-text.ts";
import type { Attention } from "../../queries/attention.ts";
import { healsByItself, isToldByOutage } from "../../queries/outages.ts";
import { needsPerson, type PolicyLine } from "../../queries/policy-lines.ts";
import { shortHash } from "../../queries/policy-set.ts";
import type { QueryContext } from "../../queries/query-context.ts";
import { describeBreaker, describeThrottle, knownInFlight, showPresence } from "../../queries/service-words.ts";
import { type Html, mark, tag } from "./marks.ts";
import { nothing, pauseLink, section, table, when } from "./parts.ts";

/** Shows services, sinks and processes. `mayPause`: the caller may pause a service. */
export function servicesPage(
  { status, lines, nowMs }: Attention,
  { set, view }: QueryContext,
  mayPause: boolean,
): Html {
  const rows = status.services.map((one) => {
    const own = lines.filter(({ policy }) => policy.service === one.service);
    const bad = own.filter((line) => isForPerson(line, status.services)).length;
    const limits = set.services.get(one.service)?.limits;
    const most = limits?.concurrencyMax === undefined ? "" : ` of ${limits.concurrencyMax}`;
    const inFlight = knownInFlight(one, status.countedServices);
    return [
      one.breaker === "open" ? tag("bad", "triangle", "breaker open") : mark("ok", "breaker closed"),
      html`<span class="name">${one.service}</span>`,
      one.breaker === "closed" && one.failures === 0 ? nothing : describeBreaker(one, nowMs),
      one.throttledUntilMs === undefined ? "no" : tag("warn", "clock", describeThrottle(one, nowMs)),
      inFlight === undefined ? nothing : `${inFlight}${most}`,
      html`<a href="/policies?service=${one.service}">${counted(own.length, "policy", "policies")}</a>${bad === 0 ? "" : html`<span class="under">${bad} ${bad === 1 ? "needs" : "need"} a person</span>`}${mayPause ? html`<span class="under">${pauseLink({ scope: "service", name: one.service }, status.pauses)}</span>` : ""}`,
    ];
  });
  const columns = ["state", "service", ["failures", "wide"], "throttled", ["in flight", "num"], "hang on it"] as const;
  const services = table("Services", columns, rows, { none: "There is no service." });
  return html`<h1>Services</h1>${services}${view.isNarrowed ? "" : html`${processes({ status, nowMs })}${sinks({ status, nowMs })}`}`;
}

/** Whether the first page shows it as one that needs a person. */
function isForPerson(line: PolicyLine, services: Attention["status"]["services"]): boolean {
  const { health, acknowledged } = line;
  return needsPerson[health] && acknowledged === undefined && !healsByItself(line) && !isToldByOutage(line, services);
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
  const columns = ["process", "roles", "version", "policies", "since", ["newest file", "wide"]] as const;
  const all = table("Processes", columns, rows, { none: "No process has said what it runs." });
  return section("processes", "Processes", html`<p class="quiet">Alive: ${showPresence(status.processes)}.</p>${all}`);
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
  const columns = ["sink", ["waiting", "num"], "the first since", ["failed", "num"], ["dropped", "num"]] as const;
  return section("sinks", "Sinks", table("Sinks", columns, rows));
}
