// Makes policies of scheduled commands that start or activate sync jobs, and says of each command
// what a policy does not keep. Pure; called by import-command.ts.
import type { PolicySet } from "../../config/policy-set.ts";
import { formatDuration } from "../../core/duration.ts";
import { getOrMake } from "../../core/get-or-make.ts";
import { checkCron } from "../../schedule/cron-pattern.ts";
import { type FoundCall, findCalls, type Script, type TokenOrigin } from "./find-calls.ts";
import { comment, flow, policyName, quoted } from "./policy-text.ts";

/** One scheduled command. `where`: what people call it; `notes`: what of it is not kept. */
export interface ScheduledJob {
  readonly where: string;
  /** What its policy is named after; undefined: after its sync jobs. */
  readonly name: string | undefined;
  readonly schedule: string;
  readonly timezone: string | undefined;
  /** One a container; a line of a crontab has one. */
  readonly scripts: readonly Script[];
  readonly settings: { readonly overlap?: "skip" | "allow"; readonly catchUpWindow?: string };
  readonly isSuspended: boolean;
  /** Why its schedule means another thing here, if so. */
  readonly unlike?: string;
  readonly notes: readonly string[];
}

/** What a file says. `leftOut`: how many of its jobs cannot be read. */
export interface ReadJobs {
  readonly jobs: readonly ScheduledJob[];
  readonly notes: readonly string[];
  readonly leftOut: number;
}

/** What is known beside the jobs. */
export interface JobSurroundings {
  /** The policy files of --config; undefined: the result describes the services, too. */
  readonly set: Pick<PolicySet, "services" | "policies"> | undefined;
  /** The service that the user named. */
  readonly service: string | undefined;
  /** The zone of jobs that name none. */
  readonly timezone: string | undefined;
}

/**
 * The policies as YAML. `notes`: a line for people each; `general`: those that no policy has as its
 * comment. `leftOut`: how many calls and schedules are not kept.
 */
export interface JobPolicies {
  services: readonly string[];
  policies: readonly string[];
  readonly notes: string[];
  readonly general: string[];
  count: number;
  leftOut: number;
}

/** A service that only the commands describe. */
interface FoundService {
  readonly name: string;
  readonly calls: FoundCall[];
}

interface Making extends JobPolicies {
  readonly given: JobSurroundings;
  readonly found: Map<string, FoundService>;
  readonly names: Set<string>;
}

/** Makes the policies of these jobs. */
export function toPolicies(jobs: readonly ScheduledJob[], given: JobSurroundings): JobPolicies {
  const making: Making = {
    ...{ given, found: new Map(), names: new Set(given.set?.policies.map(({ name }) => name)) },
    ...{ services: [], policies: [], notes: [], general: [], count: 0, leftOut: 0 },
  };
  making.policies = jobs.flatMap((job) => policiesOf(job, making));
  making.services = [...making.found].map(([baseUrl, service]) => serviceLine(baseUrl, service, making));
  return making;
}

function policiesOf(job: ScheduledJob, making: Making): string[] {
  const { calls, lost, refused } = findCalls(job.scripts);
  const say = (what: string) => sayIn(making, `${job.where}: ${what}`);
  const leaveOut = (what: string) => {
    making.leftOut += 1;
    say(`${what}: left out`);
  };
  for (const what of refused) leaveOut(what);
  const places = new Map<string, { service: string; calls: FoundCall[] }>();
  for (const call of calls) {
    const service = serviceOf(call, making);
    if ("refusal" in service) leaveOut(`${call.kind}(${call.syncJob}): ${service.refusal}`);
    else {
      if (service.note !== undefined) say(service.note);
      const key = flow([service.name, call.repository]);
      getOrMake(places, key, () => ({ service: service.name, calls: [] })).calls.push(call);
    }
  }
  if (calls.length + refused.length === 0) say("no call of run or activate is found in its command: left out");
  if (places.size === 0) return [];
  const schedule = scheduleOf(job, making.given);
  if ("problem" in schedule) making.leftOut += 1;
  const remarks = [
    ...job.notes,
    ...(lost.length === 0 ? [] : [`not kept of the command: ${lost.join(", ")}`]),
    ...(new Set(calls.flatMap(({ kind, syncJob }) => (kind === "run" ? [syncJob] : []))).size > 1
      ? ["the command starts one sync job after the other, a policy all at once: `after` keeps an order"]
      : []),
    ...("problem" in schedule ? [schedule.problem] : schedule.remarks),
    ...(job.isSuspended ? ["it is suspended: so its schedule is a comment"] : []),
  ];
  making.notes.push(...remarks.map((remark) => `${job.where}: ${remark}`));
  const head = [job.where, ...remarks].map((text) => `  ${comment(text)}`);
  return [...places.values()].flatMap((place) => [...head, ...placePolicies(job, place, { making, schedule })]);
}

function sayIn({ notes, general }: Making, text: string): void {
  notes.push(text);
  general.push(text);
}

type ScheduleText =
  | { readonly schedule: object; readonly remarks: readonly string[] }
  | { readonly schedule: object; readonly problem: string };

/** One policy a place; two where a command activates other sync jobs than it starts. */
function placePolicies(
  job: ScheduledJob,
  { service, calls }: { readonly service: string; readonly calls: readonly FoundCall[] },
  { making, schedule }: { readonly making: Making; readonly schedule: ScheduleText },
): string[] {
  const idsOf = (wanted: FoundCall["kind"]) => [
    ...new Set(calls.filter(({ kind }) => kind === wanted).map(({ syncJob }) => syncJob)),
  ];
  const [runs, activations] = [idsOf("run"), idsOf("activate")];
  const isBoth = runs.length > 0 && runs.length === activations.length && runs.every((id) => activations.includes(id));
  const actions = [
    ...(runs.length === 0 ? [] : [{ kind: "run", value: { syncJobs: runs, ...(isBoth ? { activate: true } : {}) } }]),
    ...(activations.length === 0 || isBoth ? [] : [{ kind: "activate", value: { syncJobs: activations } }]),
  ];
  const repository = calls[0]?.repository;
  const hash = "problem" in schedule || job.isSuspended ? "# " : "";
  return actions.flatMap(({ kind, value }) => {
    making.count += 1;
    const wanted = job.name ?? [kind, repository, ...value.syncJobs.slice(0, 3)].join("-");
    const { overlap, catchUpWindow } = job.settings;
    return [
      `  - name: ${policyName(wanted, making.names)}`,
      `    service: ${service}`,
      ...(repository === undefined ? [] : [`    repository: ${quoted(repository)}`]),
      `    ${kind}: ${flow(value)}`,
      `    ${hash}schedule: ${flow(schedule.schedule)}`,
      ...(overlap === undefined ? [] : [`    overlap: ${overlap}`]),
      ...(catchUpWindow === undefined ? [] : [`    ${hash}catchUpWindow: ${catchUpWindow}`]),
    ];
  });
}

function scheduleOf({ schedule: written, timezone, unlike }: ScheduledJob, given: JobSurroundings): ScheduleText {
  const [, prefix, text = written] = /^(?:CRON_)?TZ=(\S+)\s+(.*)$/.exec(written.trim()) ?? [];
  const every = everyOf(text);
  if (every !== undefined)
    return { schedule: { every }, remarks: ["@every counts from another instant here: compare `syncline plan`"] };
  const named = prefix ?? timezone ?? given.timezone;
  const zone = named ?? "UTC";
  const cron = text.replaceAll("?", "*");
  const problem = checkCron(cron, zone) ?? unlike;
  const schedule = { cron, timezone: zone };
  if (problem !== undefined) return { schedule, problem: `its schedule cannot be kept: ${problem}` };
  const guess = "no time zone is named: it is read as UTC; --timezone says another";
  return { schedule, remarks: named === undefined ? [guess] : [] };
}

/** An interval as `@every` writes it (1h30m), as one of ours; undefined for another text. */
function everyOf(schedule: string): string | undefined {
  const [, text = ""] = /^@every\s+((?:\d+[hms])+)$/i.exec(schedule) ?? [];
  const unitMs = { h: 3_600_000, m: 60_000, s: 1_000 };
  const parts = [...text.matchAll(/(\d+)([hms])/gi)];
  const ms = parts.reduce((sum, [, count, unit]) => sum + Number(count) * unitMs[unit?.toLowerCase() as "h"], 0);
  return ms >= 1_000 ? formatDuration(ms) : undefined;
}

type ServiceOf = { readonly name: string; readonly note?: string } | { readonly refusal: string };

function serviceOf(call: FoundCall, { given, found }: Making): ServiceOf {
  const { service } = given;
  const services = given.set?.services;
  const address = addressOf(call.baseUrl);
  if (address === undefined) {
    const what = `the address ${call.baseUrl} is not known here`;
    if (services !== undefined && service !== undefined) return { name: service, note: `${what}: taken as ${service}` };
    return { refusal: `${what} (with --config, \`syncline import --service NAME\` says which service it is)` };
  }
  if (services !== undefined) {
    const known = [...services].find(([, { baseUrl }]) => addressOf(baseUrl) === address);
    if (known !== undefined) return { name: known[0] };
    return { refusal: `no service of --config has the address ${address}` };
  }
  const first = service ?? "main";
  const name = found.size === 0 ? first : `${first}-${found.size + 1}`;
  const known = getOrMake(found, address, () => ({ name, calls: [] }));
  known.calls.push(call);
  return { name: known.name };
}

/** The address without a slash at its end; undefined when a part of it is not known. */
function addressOf(baseUrl: string): string | undefined {
  if (/[$`{]/.test(baseUrl) || !URL.canParse(baseUrl)) return undefined;
  const { origin, pathname } = new URL(baseUrl);
  return `${origin}${pathname.replace(/\/+$/, "")}`;
}

/** A service with what its calls say: address, path form and token. Secrets are never written. */
function serviceLine(baseUrl: string, { name, calls }: FoundService, making: Making): string {
  const say = (what: string) => sayIn(making, `service ${name}: ${what}`);
  const sources = calls.flatMap(({ token }) => (token === undefined || token.kind === "literal" ? [] : [token]));
  const texts = [...new Set(sources.map(showToken))];
  const [source] = sources;
  if (calls.some(({ token }) => token?.kind === "literal"))
    say("an access token stands in a command in plain text; it is not written here");
  if (texts.length > 1) say(`its calls take the token from ${texts.join(" and ")}: the first is taken`);
  if (source === undefined) say("put its access token into the environment variable SYNC_TOKEN");
  else say(`the worker needs its access token in ${showToken(source)}`);
  const token = source?.kind === "file" ? { file: source.path } : { env: source?.variable ?? "SYNC_TOKEN" };
  const form = calls.every(({ pathForm }) => pathForm === "segment") ? { pathForm: "segment" } : {};
  return `  ${name}: ${flow({ baseUrl, token, ...form })}`;
}

function showToken(source: Exclude<TokenOrigin, { kind: "literal" }>): string {
  return source.kind === "env" ? `the environment variable ${source.variable}` : `the file ${source.path}`;
}
