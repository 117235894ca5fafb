// The checks of `syncline doctor` that ask one service: reachable, token, identity, triggers,
// masks, sync jobs. Sends reads only, and stops after a failed first one. Called by
// doctor-command.ts.
import { matchesMask } from "../../config/match-mask.ts";
import type { Policy } from "../../config/policy-set.ts";
import { systemClock } from "../../core/clock.ts";
import { type Mask, ServiceError, type SyncService } from "../../service/client.ts";
import { shortOf, tellFailure } from "./failure-words.ts";
import { type Finding, withinLines } from "./finding.ts";
import type { ServiceLook } from "./service-look.ts";
import { checkSyncJobs } from "./sync-job-checks.ts";

const itemsMax = 20_000;
const syncJobsOfPolicyMax = 1_000;

/** Checks one service. */
export async function checkService(look: ServiceLook): Promise<readonly Finding[]> {
  const { settings, policies } = look;
  const subject = settings.name;
  const repositories = [...new Set(policies.map(({ repository }) => repository))];
  const beganMs = systemClock.monotonicMs();
  try {
    look.progress(`${subject}: reaching it`);
    await look.client.getTriggers(queryOf(repositories[0]), { signal: look.signal });
  } catch (error) {
    if (error instanceof ServiceError) return [tellFailure(subject, error)];
    throw error;
  }
  const tookMs = Math.round(systemClock.monotonicMs() - beganMs);
  const findings: Finding[] = [
    { check: "service", subject, level: "ok", what: `${settings.baseUrl} answered within ${tookMs} ms` },
    { check: "token", subject, level: "ok", what: `accepted${tokenEnd(look.client)}` },
    ...(await checkIdentity(look)),
  ];
  for (const repository of repositories) {
    const mine = policies.filter((policy) => policy.repository === repository);
    if (mine.some(({ action }) => action.kind === "run")) findings.push(await checkTriggers(look, repository));
    findings.push(...(await checkMasks(look, repository, mine)));
  }
  findings.push(...(await checkSyncJobs(look)));
  return findings;
}

function tokenEnd({ tokenExpiresAtMs }: SyncService): string {
  return tokenExpiresAtMs === undefined ? "" : `; it ends at ${new Date(tokenExpiresAtMs).toISOString()}`;
}

async function checkIdentity({ settings, client, signal }: ServiceLook): Promise<readonly Finding[]> {
  const { identity, name: subject } = settings;
  if (identity === undefined) return [];
  const { id, repository, administrator } = identity;
  const base = { check: "identity", subject, level: "problem" } as const;
  return attempt(
    { ...base, cure: "check services.*.identity: id and repository, and whether the token may load identities" },
    async () => {
      const [found] = await client.getIdentityById(id, { repository }, { signal });
      if (found === undefined)
        return { ...base, what: `repository ${repository} has no identity ${id}`, cure: "check services.*.identity" };
      const name = found.name ?? id;
      if (administrator && found.isAdministrator !== true) {
        const what = `${name} is ${found.isAdministrator === false ? "no administrator" : "not said to be an administrator"} of ${repository}`;
        return { ...base, what, cure: "give it the rights of an administrator, or drop identity.administrator" };
      }
      return { ...base, level: "ok", what: `${name} was loaded${administrator ? ", an administrator" : ""}` };
    },
  );
}

/**
 * A trigger only shows whether it is active (service-interface §2): which sync job it starts is not
 * known.
 */
async function checkTriggers(
  { settings, client, signal, progress }: ServiceLook,
  repository: string | undefined,
): Promise<Finding> {
  const subject = placeOf(settings.name, repository);
  progress(`${subject}: triggers`);
  const base = { check: "triggers", subject, level: "warning" } as const;
  const [finding] = await attempt(
    { ...base, cure: "without the triggers it is not known whether the service starts runs by itself" },
    async () => {
      let [count, active] = [0, 0];
      for await (const { items } of client.pages("GetTriggers", queryOf(repository), { signal, itemsMax })) {
        count += items.length;
        active += items.filter(({ isActive }) => isActive === true).length;
      }
      if (active === 0) return { ...base, level: "ok", what: `none of ${count} is active` };
      return {
        ...base,
        what: `${active} of ${count} are active: the service may start runs by itself, so activities may be ambiguous`,
        cure: "a trigger does not say which sync job it starts: make sure that none starts one that a policy names",
      };
    },
  );
  return finding ?? { ...base, level: "ok", what: "not looked at" };
}

async function checkMasks(
  look: ServiceLook,
  repository: string | undefined,
  policies: readonly Policy[],
): Promise<readonly Finding[]> {
  const { settings, client, signal, progress } = look;
  const picking = policies.flatMap((policy) =>
    policy.action.kind === "run" && "fromMasks" in policy.action ? [{ policy, filter: policy.action.fromMasks }] : [],
  );
  if (picking.length === 0) return [];
  const place = placeOf(settings.name, repository);
  progress(`${place}: masks`);
  const masks: Mask[] = [];
  const failed = await attempt(
    {
      check: "masks",
      subject: place,
      level: "problem",
      cure: "the policies with fromMasks start nothing until they can be read",
    },
    async () => {
      for await (const { items } of client.pages("GetJobMasks", queryOf(repository), { signal, itemsMax }))
        masks.push(...items);
      return undefined;
    },
  );
  if (failed.length > 0) return failed;
  const findings = picking.map(({ policy, filter }): Finding => {
    const picked = masks.filter(
      (mask) => mask.syncJobId !== undefined && mask.syncJobId !== null && matchesMask(filter, mask),
    );
    const count = new Set(picked.map(({ syncJobId }) => String(syncJobId))).size;
    const base = { check: "masks", subject: policy.name } as const;
    const where = `${policy.where.file}:${policy.where.line}`;
    if (count === 0) {
      const what = `none of ${masks.length} masks of ${place} matches, so it starts nothing (${where})`;
      return { ...base, level: "problem", what, cure: `compare run.fromMasks with \`syncline api GetJobMasks\`` };
    }
    if (count > syncJobsOfPolicyMax) {
      const what = `${count} sync jobs match; at most ${syncJobsOfPolicyMax} are started, so none is (${where})`;
      return { ...base, level: "problem", what, cure: "split the policy in two" };
    }
    return { ...base, level: "ok", what: `${picked.length} of ${masks.length} masks match: ${count} sync jobs` };
  });
  return withinLines(findings);
}

/** Runs one check; a failed exchange is a finding, too. */
async function attempt(
  onFailure: Omit<Finding, "what">,
  look: () => Promise<Finding | undefined>,
): Promise<readonly Finding[]> {
  try {
    const finding = await look();
    return finding === undefined ? [] : [withoutCureIfOk(finding)];
  } catch (error) {
    if (error instanceof ServiceError) return [{ ...onFailure, what: `cannot be read: ${shortOf(error)}` }];
    throw error;
  }
}

function withoutCureIfOk(finding: Finding): Finding {
  const { cure: _, ...rest } = finding;
  return finding.level === "ok" ? rest : finding;
}

function queryOf(repository: string | undefined): { readonly repository?: string } {
  return repository === undefined ? {} : { repository };
}

function placeOf(service: string, repository: string | undefined): string {
  return repository === undefined ? service : `${service}, ${repository}`;
}
