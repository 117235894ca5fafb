// The part of `syncline doctor` that asks for every sync job that a policy names. Called by service-checks.ts. Sends reads only.
import type { Policy } from "../../config/policy-set.ts";
import { ServiceError } from "../../service/client.ts";
import { shortOf } from "./failure-words.ts";
import { type Finding, withinLines } from "./finding.ts";
import type { ServiceLook } from "./service-look.ts";

const checkedMax = 5_000;
const atOnceMax = 4;
/** After so many failures in a row that say nothing of the sync job, the service is left alone. */
const silentMax = 5;

interface Named {
  readonly id: number;
  readonly repository: string | undefined;
  readonly policies: readonly Policy[];
}

/** Asks for each sync job once, a few at a time. Those that are missing are named with their policies. */
export async function checkSyncJobs(look: ServiceLook): Promise<readonly Finding[]> {
  const { settings, client, signal, progress } = look;
  const all = namedSyncJobs(look.policies);
  if (all.length === 0) return [];
  const wanted = all.slice(0, checkedMax);
  const left = [...wanted].reverse();
  const findings: Finding[] = [];
  let [found, silent] = [0, 0];
  const workOff = async () => {
    for (let next = left.pop(); next !== undefined && silent < silentMax; next = left.pop()) {
      progress(`${settings.name}: sync job ${wanted.length - left.length} of ${wanted.length}`);
      try {
        await client.getSyncJobById(next.id, next.repository === undefined ? {} : { repository: next.repository }, {
          signal,
        });
        found += 1;
        silent = 0;
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        silent = saysSomething(error) ? 0 : silent + 1;
        findings.push(tellMissing(next, error));
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
      cure: "look at the first of them below",
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
  return [...(found > 0 ? [ok] : []), ...withinLines(findings), ...cut];
}

function namedSyncJobs(policies: readonly Policy[]): readonly Named[] {
  const named = new Map<string, Named>();
  for (const policy of policies) {
    for (const id of syncJobIds(policy)) {
      const key = JSON.stringify([policy.repository, id]);
      const known = named.get(key);
      named.set(key, { id, repository: policy.repository, policies: [...(known?.policies ?? []), policy] });
    }
  }
  return [...named.values()];
}

function syncJobIds({ action }: Policy): readonly number[] {
  if (action.kind === "apply") return action.objects.filter(({ kind }) => kind === "syncJob").map(({ id }) => id);
  return "syncJobs" in action ? action.syncJobs : [];
}

/** 404 is not documented for this read (service-interface §7), so a 400 may mean the same. */
function tellMissing({ id, repository, policies }: Named, error: ServiceError): Finding {
  const subject = `${policies[0]?.service ?? ""}, ${repository === undefined ? "" : `${repository}, `}${id}`;
  const [first] = policies;
  const more = policies.length > 1 ? ` and ${policies.length - 1} more` : "";
  const who = first === undefined ? "" : ` (policy ${first.name}, ${first.where.file}:${first.where.line}${more})`;
  const base = { check: "sync jobs", subject, level: "problem" } as const;
  switch (error.kind) {
    case "not-found":
      return {
        ...base,
        what: `there is no such sync job${who}`,
        cure: "correct the id or the repository, or remove it from the policy",
      };
    case "bad-request":
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
        cure: "ask again; when it stays so, ask those who run the service",
      };
  }
}

function saysSomething({ kind }: ServiceError): boolean {
  return kind === "not-found" || kind === "bad-request" || kind === "unauthorized" || kind === "forbidden";
}
