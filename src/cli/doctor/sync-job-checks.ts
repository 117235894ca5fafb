// The check of `syncline doctor` for every sync job that a policy names. Sends reads only. Called
// by service-checks.ts.
import type { Policy } from "../../config/policy-set.ts";
import { showName } from "../../core/show-name.ts";
import { type ActiveSign, createActiveSign } from "../../feeds/mapping.ts";
import { ServiceError, type SyncJob } from "../../service/client.ts";
import { syncJobsOf } from "../deleted-targets.ts";
import { shortOf } from "./failure-words.ts";
import { type Finding, withinLines } from "./finding.ts";
import type { ServiceLook } from "./service-look.ts";

const checkedMax = 5_000;
const atOnceMax = 4;
/** After this many failures in a row that say nothing about the sync job, the check stops. */
const silentMax = 5;

interface Named {
  readonly id: number;
  readonly repository: string | undefined;
  readonly policies: readonly Policy[];
}

/** Reads each sync job once, a few at a time. Names missing ones with their policies. */
export async function checkSyncJobs(look: ServiceLook): Promise<readonly Finding[]> {
  const { settings, client, signal, progress } = look;
  const all = namedSyncJobs(look.policies);
  if (all.length === 0) return [];
  const wanted = all.slice(0, checkedMax);
  const left = [...wanted].reverse();
  const findings: Finding[] = [];
  const wrong: Finding[] = [];
  const sign = settings.syncJob === undefined ? undefined : createActiveSign(settings.syncJob);
  const select = selectOf(sign);
  let [found, silent] = [0, 0];
  const workOff = async () => {
    for (let next = left.pop(); next !== undefined && silent < silentMax; next = left.pop()) {
      progress(`${settings.name}: sync job ${wanted.length - left.length} of ${wanted.length}`);
      try {
        const repository = next.repository === undefined ? {} : { repository: next.repository };
        const syncJob = await client.getSyncJobById(next.id, { ...repository, ...select }, { signal });
        found += 1;
        silent = 0;
        wrong.push(...wrongGuards(next, syncJob.name), ...wrongSign(next, syncJob, sign));
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        silent = saysSomething(error) ? 0 : silent + 1;
        findings.push(tellMissing(next, error, select.select));
      }
    }
  };
  const readers = Math.min(atOnceMax, settings.limits.concurrencyMax ?? atOnceMax);
  await Promise.all(Array.from({ length: readers }, workOff));
  const subject = settings.name;
  const bad = findings.length;
  if (left.length > 0 && silent >= silentMax)
    findings.unshift({
      check: "sync jobs",
      subject,
      level: "problem",
      what: `${wanted.length - found - bad} of ${wanted.length} were not asked for: ${silentMax} in a row could not be read`,
      cure: "see the first of them below",
    });
  const ok: Finding = {
    check: "sync jobs",
    subject,
    level: "ok",
    what: `${found} of ${all.length} that policies name are there`,
  };
  const cut: readonly Finding[] =
    all.length <= checkedMax
      ? []
      : [
          {
            check: "sync jobs",
            subject,
            level: "warning",
            what: `only ${checkedMax} of ${all.length} were asked for`,
            cure: "ask for the others with --config on a part of the files",
          },
        ];
  return [...(found > 0 ? [ok] : []), ...withinLines(findings), ...withinLines(wrong), ...cut];
}

function namedSyncJobs(policies: readonly Policy[]): readonly Named[] {
  const named = new Map<string, Named>();
  for (const policy of policies) {
    for (const id of syncJobsOf(policy)) {
      const key = JSON.stringify([policy.repository, id]);
      const known = named.get(key);
      named.set(key, { id, repository: policy.repository, policies: [...(known?.policies ?? []), policy] });
    }
  }
  return [...named.values()];
}

/** Delete policies whose guard is not the name of the sync job: they would delete nothing. */
function wrongGuards({ id, policies }: Named, name: string | null | undefined): readonly Finding[] {
  return policies.flatMap(({ action, service, name: policy, where }): readonly Finding[] => {
    if (action.kind !== "delete" || action.name === name) return [];
    const what = `policy ${policy} would delete ${showName(action.name)}, and it has ${showName(name)} (${where.file}:${where.line})`;
    const cure = "correct delete.name, if it is the right sync job";
    return [{ check: "sync jobs", subject: `${service}, ${id}`, level: "problem", what, cure }];
  });
}

function selectOf(sign: ActiveSign | undefined): { readonly select?: readonly string[] } {
  if (sign === undefined || sign.select.length === 0) return {};
  return { select: [...new Set(["syncJobId", "name", ...sign.select])] };
}

/**
 * The configured sign of being active does not work for a sync job that a policy activates: each
 * activation would wait in vain.
 */
function wrongSign({ id, policies }: Named, syncJob: SyncJob, sign: ActiveSign | undefined): readonly Finding[] {
  const policy = policies.find(({ action }) => action.kind === "activate");
  if (sign === undefined || policy === undefined) return [];
  const seen = sign.read(syncJob);
  if (!("wrong" in seen)) return [];
  const what = `whether it is active cannot be told for policy ${policy.name}: mapping.syncJob.${seen.wrong}`;
  const cure = `look at it with \`syncline api GetSyncJobById --key ${id}\`; where the property is not shown unasked, name it in mapping.syncJob.select`;
  return [{ check: "sync jobs", subject: `${policy.service}, ${id}`, level: "problem", what, cure }];
}

/**
 * 404 is not documented for this read (service-interface §7), so a 400 may mean the same, or the
 * service knows none of the selected properties.
 */
function tellMissing({ id, repository, policies }: Named, error: ServiceError, select?: readonly string[]): Finding {
  const subject = `${policies[0]?.service ?? ""}, ${repository === undefined ? "" : `${repository}, `}${id}`;
  const [first] = policies;
  const more = policies.length > 1 ? ` and ${policies.length - 1} more` : "";
  const who = first === undefined ? "" : ` (policy ${first.name}, ${first.where.file}:${first.where.line}${more})`;
  const base = { check: "sync jobs", subject, level: "problem" } as const;
  if (error.kind === "not-found" && policies.every(({ action }) => action.kind === "delete"))
    return { ...base, level: "warning", what: `there is none to delete (404)${who}`, cure: "remove the policy" };
  switch (error.kind) {
    case "not-found":
      return {
        ...base,
        what: `there is no such sync job${who}`,
        cure: "correct the id or the repository, or remove it from the policy",
      };
    case "bad-request":
      if (select !== undefined)
        return {
          ...base,
          what: `the service refuses to read it with the properties ${select.join(", ")} (400)${who}`,
          cure: `try \`syncline api GetSyncJobById --key ${id}\`: if that is answered, correct mapping.syncJob.select, else the id or the repository`,
        };
      return {
        ...base,
        what: `the service refuses to read it (400), so most likely there is none${who}`,
        cure: "correct the id or the repository, or remove it from the policy",
      };
    case "unauthorized":
    case "forbidden":
      return {
        ...base,
        what: `the token may not read it: ${shortOf(error)}${who}`,
        cure: "give its account the rights, or correct the id",
      };
    default:
      return {
        ...base,
        what: `cannot be read: ${shortOf(error)}${who}`,
        cure: "try again; if it stays so, ask the service's operators",
      };
  }
}

function saysSomething({ kind }: ServiceError): boolean {
  return kind === "not-found" || kind === "bad-request" || kind === "unauthorized" || kind === "forbidden";
}
