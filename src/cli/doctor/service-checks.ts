// The checks of `syncline doctor` that ask one service: reachable, token, identity, triggers,
// masks, the lists of runs, sync jobs. Sends reads only, and stops when it is not reached.

import { matchesMask } from "../../config/mask-filter.ts";
import { type Policy, readsApprovals, type ServiceSettings } from "../../config/policy-set.ts";
import { fewAtATime } from "../../core/batcher.ts";
import { systemClock } from "../../core/clock.ts";
import type { ErrorKind } from "../../core/errors.ts";
import { defined } from "../../core/json.ts";
import { showName } from "../../core/plain-text.ts";
import { type ActivePredicate, createActivePredicate } from "../../feeds/mapping.ts";
import { operationOf } from "../../feeds/service-list.ts";
import { awaitedLists } from "../../model/feed.ts";
import { showFeed } from "../../queries/service-words.ts";
import { type Mask, ServiceError, type SyncJob, type SyncService } from "../../service/client.ts";
import { followedLists } from "../../tasks/followed-lists.ts";
import { describeOther } from "../../tasks/step.ts";
import { namedSyncJobs } from "../deleted-targets.ts";
import { showPlace } from "../table.ts";
import { describeFailure, type Finding, findingFor, shortOf, withinLines } from "./finding.ts";

/** What one check of a service needs. */
export interface ServiceCheck {
  readonly settings: ServiceSettings;
  /** The policies of this service. */
  readonly policies: readonly Policy[];
  readonly client: SyncService;
  readonly signal: AbortSignal;
  /** Called with what is being checked. */
  readonly progress: (text: string) => void;
}

const itemsMax = 20_000;
const syncJobsOfPolicyMax = 1_000;
const checkedMax = 5_000;
const atOnceMax = 4;
/** After this many failures in a row that say nothing about the sync job, the check stops. */
const silentMax = 5;
/** Failures that may be about the triggers alone. */
const ofOneList: ReadonlySet<ErrorKind> = new Set([
  "forbidden",
  "server",
  "contract",
  "not-found",
  "bad-request",
  "undocumented",
]);

/** Checks one service. */
export async function checkService(check: ServiceCheck): Promise<readonly Finding[]> {
  const { settings, policies, client } = check;
  const subject = settings.name;
  const repositories = [...new Set(policies.map(({ repository }) => repository))];
  const beganMs = systemClock.monotonicMs();
  let triggersError: ServiceError | undefined;
  try {
    check.progress(`${subject}: reaching it`);
    await client.getTriggers(defined({ repository: repositories[0] }), { signal: check.signal });
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    if (!ofOneList.has(error.kind) || !(await mayReadActivities(check, repositories[0])))
      return [describeFailure(subject, error, settings.baseUrl)];
    triggersError = error;
  }
  const tookMs = Math.round(systemClock.monotonicMs() - beganMs);
  const expiresAtMs = client.tokenExpiresAtMs;
  const tokenEnd = expiresAtMs === undefined ? "" : `; it ends at ${new Date(expiresAtMs).toISOString()}`;
  const token = findingFor("token", subject);
  const findings: Finding[] = [
    findingFor("service", subject).ok(`${settings.baseUrl} answered within ${tookMs} ms`),
    triggersError?.kind === "forbidden"
      ? token.warning(`it may not read triggers: ${shortOf(triggersError)}`, "give its account the right to read them")
      : token.ok(`accepted${tokenEnd}`),
    ...(await checkIdentity(check)),
  ];
  for (const repository of repositories) {
    const mine = policies.filter((policy) => policy.repository === repository);
    if (mine.some(({ action }) => action.kind === "run")) findings.push(await checkTriggers(check, repository));
    findings.push(...(await checkMasks(check, repository, mine)), ...(await checkLists(check, repository, mine)));
  }
  const isTold = triggersError?.kind === "forbidden" || policies.some(({ action }) => action.kind === "run");
  if (triggersError !== undefined && !isTold) findings.push(await checkTriggers(check, repositories[0]));
  findings.push(...(await checkSyncJobs(check)));
  return findings;
}

/** Whether the service answers and takes the token, though its triggers cannot be read. */
async function mayReadActivities({ client, signal }: ServiceCheck, repository: string | undefined): Promise<boolean> {
  try {
    await client.getActivities(defined({ repository }), { signal });
    return true;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return false;
  }
}

async function checkIdentity({ settings, client, signal }: ServiceCheck): Promise<readonly Finding[]> {
  const { identity, name: subject } = settings;
  if (identity === undefined) return [];
  const { id, repository, administrator } = identity;
  const { ok, problem } = findingFor("identity", subject);
  const unread = "check services.*.identity: id and repository, and whether the token may load identities";
  const finding = await orUnread(problem, unread, async () => {
    const [found] = await client.getIdentityById(id, { repository }, { signal });
    if (found === undefined || (found.id == null && found.name == null))
      return problem(`repository ${repository} has no identity ${id}`, "check services.*.identity");
    if (found.id != null && found.id.toLowerCase() !== id.toLowerCase())
      return problem(`the service answered with identity ${found.id} instead of ${id}`, "check services.*.identity");
    const name = found.name ?? id;
    if (!administrator || found.isAdministrator === true)
      return ok(`${name} was loaded${administrator ? ", an administrator" : ""}`);
    const said = found.isAdministrator === false ? "no administrator" : "not said to be an administrator";
    return problem(
      `${name} is ${said} of ${repository}`,
      "give it the rights of an administrator, or drop identity.administrator",
    );
  });
  return [finding];
}

/** A trigger does not show which sync job it starts (service-interface §2). */
async function checkTriggers(check: ServiceCheck, repository: string | undefined): Promise<Finding> {
  const { settings, client, signal, progress } = check;
  const subject = showPlace(settings.name, repository);
  progress(`${subject}: triggers`);
  const { ok, warning } = findingFor("triggers", subject);
  const unread = "without the triggers it is not known whether the service starts runs by itself";
  return orUnread(warning, unread, async () => {
    let [count, active] = [0, 0];
    for await (const { items } of client.pages("GetTriggers", defined({ repository }), { signal, itemsMax })) {
      count += items.length;
      active += items.filter(({ isActive }) => isActive === true).length;
    }
    if (active === 0) return ok(`none of ${count} is active`);
    return warning(
      `${active} of ${count} are active: the service may start runs by itself, so activities may be ambiguous`,
      "a trigger does not say which sync job it starts: make sure that none starts one that a policy names",
    );
  });
}

async function checkMasks(
  { settings, client, signal, progress }: ServiceCheck,
  repository: string | undefined,
  policies: readonly Policy[],
): Promise<readonly Finding[]> {
  const picking = policies.flatMap(({ action, name, where }) =>
    action.kind === "run" && "fromMasks" in action ? [{ name, where, filter: action.fromMasks }] : [],
  );
  if (picking.length === 0) return [];
  const place = showPlace(settings.name, repository);
  progress(`${place}: masks`);
  const masks: Mask[] = [];
  const unread = "the policies with fromMasks start nothing until they can be read";
  const failure = await orUnread(findingFor("masks", place).problem, unread, async () => {
    for await (const { items } of client.pages("GetJobMasks", defined({ repository }), { signal, itemsMax }))
      masks.push(...items);
    return undefined;
  });
  if (failure !== undefined) return [failure];
  const findings = picking.map(({ name, where: { file, line }, filter }): Finding => {
    const { ok, problem } = findingFor("masks", name);
    const picked = masks.filter(
      (mask) => mask.syncJobId !== undefined && mask.syncJobId !== null && matchesMask(filter, mask),
    );
    const count = new Set(picked.map(({ syncJobId }) => String(syncJobId))).size;
    if (count === 0)
      return problem(
        `none of ${masks.length} masks of ${place} matches and names a sync job, so it starts nothing (${file}:${line})`,
        "compare run.fromMasks with `syncline api GetJobMasks`",
      );
    if (count > syncJobsOfPolicyMax)
      return problem(
        `${count} sync jobs match; at most ${syncJobsOfPolicyMax} are started, so none is (${file}:${line})`,
        "split the policy in two",
      );
    return ok(`${picked.length} of ${masks.length} masks match: ${count} sync jobs`);
  });
  return withinLines(findings);
}

/** Reads the beginning of the lists that show how a run went. */
async function checkLists(
  { settings: { name: service }, client, signal, progress }: ServiceCheck,
  repository: string | undefined,
  policies: readonly Policy[],
): Promise<readonly Finding[]> {
  const followed = policies.filter(({ action, follow }) => action.kind === "run" && follow.until !== "accepted");
  if (followed.length === 0) return [];
  const isBlockable = followed.some(({ follow }) => readsApprovals(follow));
  const findings: Finding[] = [];
  for (const list of isBlockable ? awaitedLists : followedLists) {
    const subject = showFeed({ service, repository: repository ?? null, list });
    progress(subject);
    const { problem, warning } = findingFor("feeds", subject);
    const isOfApprovals = list === "approvals";
    const unread = isOfApprovals ? "no run is found blocked" : "runs are started, and end as unknown,";
    const failure = await orUnread(isOfApprovals ? warning : problem, `${unread} until it can be read`, async () => {
      for await (const { linkProblem } of client.pages(operationOf[list], defined({ repository }), { signal })) {
        if (linkProblem !== undefined) throw linkProblem;
        break;
      }
      return undefined;
    });
    if (failure !== undefined) findings.push(failure);
  }
  return findings;
}

/** Runs one check; a failed exchange is a finding, too. */
async function orUnread<T>(
  level: (what: string, cure: string) => Finding,
  cure: string,
  check: () => Promise<T>,
): Promise<T | Finding> {
  try {
    return await check();
  } catch (error) {
    if (error instanceof ServiceError) return level(`cannot be read: ${shortOf(error)}`, cure);
    throw error;
  }
}

interface NamedSyncJob {
  readonly id: number;
  readonly repository: string | undefined;
  readonly policies: readonly Policy[];
}

/** Reads each sync job once, a few at a time. Names missing ones with their policies. */
async function checkSyncJobs(check: ServiceCheck): Promise<readonly Finding[]> {
  const { settings, client, signal, progress } = check;
  const all = syncJobsNamedBy(check.policies);
  if (all.length === 0) return [];
  const wanted = all.slice(0, checkedMax);
  // By index, with holes: answers come in any order, findings in that of the policies.
  const missing: Finding[] = [];
  const wrong: (readonly Finding[])[] = [];
  const predicate = settings.syncJob === undefined ? undefined : createActivePredicate(settings.syncJob);
  const select = selectOf(predicate);
  const givenUp = new AbortController();
  let [found, silent] = [0, 0];
  const read = async (named: NamedSyncJob, index: number) => {
    progress(`${settings.name}: sync job ${index + 1} of ${wanted.length}`);
    try {
      const query = { ...defined({ repository: named.repository }), ...select };
      const syncJob = await client.getSyncJobById(named.id, query, { signal });
      silent = 0;
      const other = describeWrongAnswer(named, syncJob);
      if (other === undefined) {
        found += 1;
        wrong[index] = [...wrongGuards(named, syncJob.name), ...wrongPredicate(named, syncJob, predicate)];
      } else missing[index] = other;
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      silent = saysSomething(error) ? 0 : silent + 1;
      if (silent >= silentMax) givenUp.abort();
      missing[index] = describeMissing(named, error, select.select);
    }
  };
  await fewAtATime(wanted, Math.min(atOnceMax, settings.limits.concurrencyMax ?? atOnceMax), read, givenUp.signal);
  const { ok, warning, problem } = findingFor("sync jobs", settings.name);
  const findings = missing.flat();
  const bad = findings.length;
  if (found + bad < wanted.length) {
    const what = `${wanted.length - found - bad} of ${wanted.length} were not asked for: ${silentMax} in a row could not be read`;
    findings.unshift(problem(what, "see the first of them below"));
  }
  const cut = `only ${checkedMax} of ${all.length} were asked for`;
  return [
    ...(found > 0 ? [ok(`${found} of ${all.length} that policies name are there`)] : []),
    ...withinLines(findings),
    ...withinLines(wrong.flat()),
    ...(all.length > checkedMax ? [warning(cut, "ask for the others with --config on a part of the files")] : []),
  ];
}

function syncJobsNamedBy(policies: readonly Policy[]): readonly NamedSyncJob[] {
  const named = new Map<string, NamedSyncJob>();
  for (const policy of policies) {
    for (const id of namedSyncJobs(policy)) {
      const key = JSON.stringify([policy.repository, id]);
      const known = named.get(key);
      named.set(key, { id, repository: policy.repository, policies: [...(known?.policies ?? []), policy] });
    }
  }
  return [...named.values()];
}

/** Delete policies whose guard is not the name of the sync job: they would delete nothing. */
function wrongGuards({ id, policies }: NamedSyncJob, name: string | null | undefined): readonly Finding[] {
  return policies.flatMap(({ action, service, name: policy, where }): readonly Finding[] => {
    if (action.kind !== "delete" || action.name === name) return [];
    const what = `policy ${policy} would delete ${showName(action.name)}, and it has ${showName(name)} (${where.file}:${where.line})`;
    const cure = "correct delete.name, if it is the right sync job";
    return [findingFor("sync jobs", `${service}, ${id}`).problem(what, cure)];
  });
}

function selectOf(predicate: ActivePredicate | undefined): { readonly select?: readonly string[] } {
  if (predicate === undefined || predicate.select.length === 0) return {};
  return { select: [...new Set(["syncJobId", "name", ...predicate.select])] };
}

/** Without a working predicate, each activation would wait in vain. */
function wrongPredicate(
  { id, policies }: NamedSyncJob,
  syncJob: SyncJob,
  predicate: ActivePredicate | undefined,
): readonly Finding[] {
  const policy = policies.find(({ action }) => action.kind === "activate");
  if (predicate === undefined || policy === undefined) return [];
  const seen = predicate.read(syncJob);
  if (!("wrong" in seen)) return [];
  const what = `whether it is active cannot be told for policy ${policy.name}: mapping.syncJob.${seen.wrong}`;
  const cure = `look at it with \`syncline api GetSyncJobById --key ${id}\`; where the property is not shown unasked, name it in mapping.syncJob.select`;
  return [findingFor("sync jobs", `${policy.service}, ${id}`).problem(what, cure)];
}

/** Findings about one sync job, and which policies name it. */
function aboutNamed({ id, repository, policies }: NamedSyncJob) {
  const [first] = policies;
  const more = policies.length > 1 ? ` and ${policies.length - 1} more` : "";
  const who = first === undefined ? "" : ` (policy ${first.name}, ${first.where.file}:${first.where.line}${more})`;
  return { ...findingFor("sync jobs", `${showPlace(first?.service ?? "", repository)}, ${id}`), who };
}

/** With the wrong form of a path, the answer may be a list. */
function describeWrongAnswer(named: NamedSyncJob, syncJob: SyncJob): Finding | undefined {
  const isNone = syncJob.syncJobId == null && syncJob.name == null;
  const other = isNone ? "the answer shows no sync job" : describeOther({ target: String(named.id) }, syncJob);
  if (other === undefined) return undefined;
  const { problem, who } = aboutNamed(named);
  return problem(
    `${other}${who}`,
    `check services.*.pathForm; \`syncline api GetSyncJobById --key ${named.id}\` shows the answer`,
  );
}

/** 404 is not documented for this read (service-interface §7), so a 400 may mean the same. */
function describeMissing(named: NamedSyncJob, error: ServiceError, select?: readonly string[]): Finding {
  const { id, policies } = named;
  const { warning, problem, who } = aboutNamed(named);
  const correct = "correct the id or the repository, or remove it from the policy";
  switch (error.kind) {
    case "not-found":
      if (policies.every(({ action }) => action.kind === "delete"))
        return warning(`there is none to delete (404)${who}`, "remove the policy");
      return problem(`there is no such sync job${who}`, correct);
    case "bad-request":
      if (select === undefined)
        return problem(`the service refuses to read it (400), so most likely there is none${who}`, correct);
      return problem(
        `the service refuses to read it with the properties ${select.join(", ")} (400)${who}`,
        `try \`syncline api GetSyncJobById --key ${id}\`: if that is answered, correct mapping.syncJob.select, else the id or the repository`,
      );
    case "unauthorized":
    case "forbidden":
      return problem(
        `the token may not read it: ${shortOf(error)}${who}`,
        "give its account the rights, or correct the id",
      );
    default:
      return problem(
        `cannot be read: ${shortOf(error)}${who}`,
        "try again; if it stays so, ask the service's operators",
      );
  }
}

function saysSomething({ kind }: ServiceError): boolean {
  return kind === "not-found" || kind === "bad-request" || kind === "unauthorized" || kind === "forbidden";
}
