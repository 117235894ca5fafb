// The rules over all files: names that are used but not defined, and what may stand only once.
import { didYouMean } from "../../core/nearest-word.ts";
import { labelsOf } from "../../model/label.ts";
import { type Path, type Problem, problemOfFile, type ReportProblem } from "../problem.ts";
import type { PolicyDraft } from "../schema/policy-file.ts";
import type { CheckedFile } from "../schema-problems.ts";
import { checkChains } from "./chain-rules.ts";
import { policyLimits } from "./policy-limits.ts";
import { sinkPath } from "./policy-rules.ts";

/**
 * Applies the rules over all files. `isWhole` is false when a file could not be read: it may hold
 * what is missing. Returns the problems that are of no single place.
 */
export function checkCrossRules(files: readonly CheckedFile[], isWhole: boolean): readonly Problem[] {
  if (isWhole) checkNames(files);
  checkDoubles(files);
  checkDeclaredTwice(files);
  checkChains(files, isWhole);
  checkNeeds(files, isWhole);
  checkHosts(files);
  const [first, ...more] = files.filter(({ draft }) => draft.notifications !== undefined);
  for (const { report } of more) {
    const message = `notifications is there twice: first in ${first?.yaml.file}`;
    report(["notifications"], message, { hint: "keep one of them", place: "key" });
  }
  return tooMany(files);
}

type ClosedInput = Pick<PolicyDraft, "holidays" | "blackout">;

/** Reports services, sinks and calendars that no file defines. */
function checkNames(files: readonly CheckedFile[]): void {
  const services = files.flatMap(({ draft }) => Object.keys(draft.services ?? {}));
  const sinks = files.flatMap(({ draft }) => Object.keys(draft.sinks ?? {}));
  const calendars = files.flatMap(({ draft }) => Object.keys(draft.calendars ?? {}));
  const labels = [...new Set(files.flatMap(({ draft }) => (draft.policies ?? []).flatMap(labelsOf)))];
  const known = { service: new Set(services), sink: new Set(sinks), calendar: new Set(calendars) };
  const candidates = { service: services, sink: sinks, calendar: calendars };
  for (const { draft, report } of files) {
    const check = (what: keyof typeof known, name: string, path: Path) => {
      if (known[what].has(name)) return;
      const hint = didYouMean(name, candidates[what].slice(0, policyLimits.servicesMax));
      report(path, `there is no ${what} "${name}"`, { hint: hint ?? `describe it under ${what}s` });
    };
    const checkNotify = ({ notify = [] }: Pick<PolicyDraft, "notify">, path: Path) => {
      for (const [index, item] of notify.entries()) {
        const { sink, match = {} } = typeof item === "string" ? { sink: item } : item;
        check("sink", sink, sinkPath(notify, index, path));
        for (const [key, text] of Object.entries(match))
          checkLabel(labels, `${key}=${text}`, [...path, "notify", index, "match", key], report);
      }
    };
    for (const [name, { to, label = {}, by }] of Object.entries(draft.notifications?.digests ?? {})) {
      const at = ["notifications", "digests", name];
      for (const [index, sink] of to.entries()) check("sink", sink, [...at, "to", index]);
      for (const [key, text] of Object.entries(label))
        checkLabel(labels, `${key}=${text}`, [...at, "label", key], report);
      if (by !== undefined && !labels.some((label) => label.startsWith(`${by}=`)))
        report([...at, "by"], `no policy has a label "${by}"`);
    }
    const checkClosed = ({ holidays = [], blackout = [] }: ClosedInput, path: Path) => {
      for (const [key, list] of Object.entries({ holidays, blackout }))
        for (const [index, item] of list.entries())
          if (typeof item === "string" && !/^\d/.test(item)) check("calendar", item, [...path, key, index]);
    };
    checkClosed(draft.defaults ?? {}, ["defaults"]);
    checkNotify(draft.defaults ?? {}, ["defaults"]);
    for (const [index, policy] of (draft.policies ?? []).entries()) {
      if (policy.service !== undefined) check("service", policy.service, ["policies", index, "service"]);
      checkNotify(policy, ["policies", index]);
      checkClosed(policy, ["policies", index]);
    }
  }
}

/** Reports a label that no policy has: a typo would choose nothing. */
function checkLabel(labels: readonly string[], label: string, path: Path, report: ReportProblem): void {
  if (labels.includes(label)) return;
  const hint = didYouMean(label, labels.slice(0, policyLimits.servicesMax)) ?? "give it to a policy under labels";
  report(path, `no policy has the label ${label}`, { hint });
}

/** Names defined twice: the problem is at the second and names the first. */
function checkDoubles(files: readonly CheckedFile[]): void {
  const first = new Map<string, { readonly yaml: CheckedFile["yaml"]; readonly path: Path }>();
  for (const { yaml, draft, report } of files) {
    const check = (what: string, name: string, path: Path) => {
      const known = first.get(`${what} ${name}`);
      if (known === undefined) first.set(`${what} ${name}`, { yaml, path });
      else {
        const where = `${known.yaml.file}:${known.yaml.lineOf(known.path)}`;
        const hint = what === "default" ? "set it in one file only" : "give one of them another name";
        const place = what === "policy" ? "value" : "key";
        report(path, `the ${what} "${name}" is there twice: first in ${where}`, { hint, place });
      }
    };
    for (const name of Object.keys(draft.services ?? {})) check("service", name, ["services", name]);
    for (const name of Object.keys(draft.sinks ?? {})) check("sink", name, ["sinks", name]);
    for (const name of Object.keys(draft.calendars ?? {})) check("calendar", name, ["calendars", name]);
    for (const name of Object.keys(draft.defaults ?? {})) check("default", name, ["defaults", name]);
    for (const [index, { name }] of (draft.policies ?? []).entries())
      if (name !== undefined) check("policy", name, ["policies", index, "name"]);
  }
}

/** Two policies that declare one field differently would undo each other's changes at each slot. */
function checkDeclaredTwice(files: readonly CheckedFile[]): void {
  const first = new Map<string, { readonly value: string; readonly policy: string | undefined }>();
  for (const { draft, report } of files) {
    for (const [index, { name, service, repository = null, apply = {} }] of (draft.policies ?? []).entries()) {
      for (const [kind, id, field, value] of declaredFields(apply)) {
        const key = JSON.stringify([service, repository, kind, id, field]);
        const known = first.get(key);
        if (known === undefined) first.set(key, { value, policy: name });
        else if (known.value !== value)
          report(
            ["policies", index, "apply", kind, id, field],
            `${kind}.${id}.${field} is declared differently by ${known.policy}`,
            { hint: "declare it in one place only" },
          );
      }
    }
  }
}

function declaredFields(apply: NonNullable<PolicyDraft["apply"]>) {
  return Object.entries(apply).flatMap(([kind, objects]) =>
    Object.entries(objects).flatMap(([id, fields]) =>
      Object.entries<string>(fields).map(([field, value]) => [kind, id, field, value] as const),
    ),
  );
}

/** Reports inputs that no file has, and policies that would wait for each other for ever. */
function checkNeeds(files: readonly CheckedFile[], isWhole: boolean): void {
  const policies = new Map(files.flatMap(({ draft }) => (draft.policies ?? []).map((one) => [one.name ?? "", one])));
  const beforeOf = (name: string) => {
    const { needs, after } = policies.get(name) ?? {};
    return [needs?.policy, after?.policy].filter((one) => one !== undefined);
  };
  for (const { draft, report } of files) {
    for (const [index, { name = "", needs }] of (draft.policies ?? []).entries()) {
      if (needs === undefined) continue;
      const at = ["policies", index, "needs", "policy"];
      if (isWhole && !policies.has(needs.policy)) {
        const names = [...policies.keys()].slice(0, policyLimits.servicesMax);
        report(at, `there is no policy "${needs.policy}"`, { hint: didYouMean(needs.policy, names) });
      }
      const before = new Set([needs.policy]);
      for (const one of before) for (const next of beforeOf(one)) before.add(next);
      if (!before.has(name)) continue;
      const what = needs.policy === name ? "a policy cannot need itself" : `${needs.policy} waits for ${name} itself`;
      report(at, `${what}: once stale, neither would start again`, { hint: "remove one of needs and after" });
    }
  }
}

/**
 * Reports webhooks and heartbeats on hosts that no `outbound.hosts` names. Services and token
 * endpoints are not limited by it.
 */
function checkHosts(files: readonly CheckedFile[]): void {
  if (files.every(({ draft }) => draft.outbound === undefined)) return;
  const allowed = files.flatMap(({ draft }) => draft.outbound?.hosts ?? []);
  for (const { draft, report } of files) {
    const check = (who: string, url: string | undefined, path: Path) => {
      if (url === undefined || !URL.canParse(url)) return;
      const { hostname } = new URL(url);
      if (allowed.some((pattern) => isAllowedHost(hostname, pattern))) return;
      const hint = "add the host to outbound.hosts, or name another one here";
      report(path, `${who} a host that outbound.hosts does not name`, { hint });
    };
    for (const [name, { webhook, email }] of Object.entries(draft.sinks ?? {})) {
      check(`sink "${name}" sends to`, webhook?.url, ["sinks", name, "webhook", "url"]);
      check(`sink "${name}" sends to`, email && mailUrl(email.host), ["sinks", name, "email", "host"]);
    }
    for (const [index, { name, heartbeat }] of (draft.policies ?? []).entries())
      check(`the heartbeat of policy "${name}" asks`, heartbeat?.url, ["policies", index, "heartbeat", "url"]);
  }
}

/** The URL of a mail server. An IPv6 address stands in brackets, as in `outbound.hosts`. */
function mailUrl(host: string): string {
  const url = `smtp://[${host}]`;
  return URL.canParse(url) ? url : `smtp://${host.toLowerCase()}`;
}

/** Whether a host is the one named, or lies below the domain after `*.`; both in lower case. */
export function isAllowedHost(hostname: string, pattern: string): boolean {
  const host = hostname.replace(/\.$/, "");
  return pattern.startsWith("*.") ? host.endsWith(pattern.slice(1)) : host === pattern;
}

function tooMany(files: readonly CheckedFile[]): Problem[] {
  const limits = {
    policies: policyLimits.policiesMax,
    services: policyLimits.servicesMax,
    sinks: policyLimits.sinksMax,
    calendars: policyLimits.calendarsMax,
  };
  return Object.entries(limits).flatMap(([what, most]) => {
    const countIn = ({ draft }: CheckedFile) => Object.keys(draft[what as keyof typeof limits] ?? []).length;
    const total = files.reduce((sum, file) => sum + countIn(file), 0);
    const file = files.at(-1)?.yaml.file ?? "";
    const hint = "split them over two installations";
    return total > most ? [problemOfFile(file, `${total} ${what} in all: ${most} is the most`, hint)] : [];
  });
}
