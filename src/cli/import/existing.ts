// What exists at a service, as policies to start from: document masks, the sync jobs that masks
// name, and their names. Reads only, bounded. Called by import-command.ts.

import type { ServiceSettings } from "../../config/policy-set.ts";
import { policyLimits } from "../../config/rules/policy-limits.ts";
import { fewAtATime } from "../../core/batcher.ts";
import type { DeclaredKind } from "../../core/declared-object.ts";
import { defined } from "../../core/json.ts";
import { cutText } from "../../core/plain-text.ts";
import { ServiceError, type SyncService } from "../../service/client.ts";
import { batchesOf } from "../../store/script.ts";
import type { CommandIo } from "../command-io.ts";
import { showPlace } from "../table.ts";
import { comment, flow, policyName, quoted } from "./policy-text.ts";

const masksMax = 20_000;
const syncJobsMax = 5_000;
const syncJobsAtOnce = 4;
const problemsShown = 20;
const nameShownMax = 100;

interface Existing {
  readonly kind: Extract<DeclaredKind, "syncJob" | "docMask">;
  readonly id: string;
  readonly name: string | null | undefined;
}

/** Reads what masks name, and the names. @throws ServiceError when the masks cannot be read. */
export async function readExisting(service: SyncService, repository: string | undefined, io: CommandIo) {
  const masks = new Map<string, Existing>();
  const syncJobIds = new Set<string>();
  const query = defined({ repository });
  for await (const page of service.pages("GetJobMasks", query, { signal: io.signal, itemsMax: masksMax })) {
    for (const { maskId, name, type, syncJobId } of page.items) {
      if (syncJobId !== undefined && syncJobId !== null) syncJobIds.add(String(syncJobId));
      // Only document masks can be changed. Source: service-interface §4.1
      if (type !== "FolderMask" && maskId !== undefined && maskId !== null)
        masks.set(String(maskId), { kind: "docMask", id: String(maskId), name });
    }
    io.progress?.(`${masks.size} document masks`);
  }
  const { existing, problems } = await readSyncJobs(service, [...syncJobIds], query, io);
  return { existing: [...existing.sort(byId), ...[...masks.values()].sort(byId)], problems };
}

async function readSyncJobs(
  service: SyncService,
  ids: readonly string[],
  query: { readonly repository?: string },
  io: CommandIo,
) {
  const existing: Existing[] = [];
  const problems: string[] = [];
  const read = async (id: string) => {
    io.progress?.(`${existing.length + 1} of ${ids.length} sync jobs`);
    try {
      const { name } = await service.getSyncJobById(id, query, { signal: io.signal });
      existing.push({ kind: "syncJob", id, name });
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      problems.push(`sync job ${id} cannot be read: ${error.message}`);
    }
  };
  await fewAtATime(ids.slice(0, syncJobsMax), syncJobsAtOnce, read, io.signal);
  if (ids.length > syncJobsMax) problems.push(`only ${syncJobsMax} of ${ids.length} sync jobs were read`);
  if (io.signal.aborted) problems.push("stopped before everything was read");
  const more = problems.length - problemsShown;
  return { existing, problems: [...problems.slice(0, problemsShown), ...(more > 0 ? [`and ${more} more`] : [])] };
}

function byId(a: Existing, b: Existing): number {
  return Number(a.id) - Number(b.id);
}

interface ImportText {
  readonly settings: ServiceSettings;
  readonly repository: string | undefined;
  readonly existing: readonly Existing[];
  readonly problems: readonly string[];
  /** False: the service is described in another file of the same folder. */
  readonly withSettings: boolean;
  /** Policies that start the sync jobs, or that declare what exists. */
  readonly as: "run" | "apply";
}

/** What exists as a policy file, line by line. */
export function toPolicyFile({ settings, repository, existing, problems, withSettings, as }: ImportText): string[] {
  const { isUsable, size, head, why, body } = forms[as];
  const usable = existing.filter(isUsable);
  const left = existing.filter((one) => !isUsable(one) && (as === "apply" || one.kind === "syncJob"));
  const names = new Set<string>();
  const policies = [...batchesOf(usable, size)].flatMap((batch) => [
    `  - name: ${policyName(`${settings.name}-${repository ?? ""}-${as === "apply" ? "declared" : "runs"}`, names)}`,
    `    service: ${settings.name}`,
    ...(repository === undefined ? [] : [`    repository: ${quoted(repository)}`]),
    ...body(batch),
  ]);
  return [
    ...head(showPlace(settings.name, repository)).map(comment),
    ...problems.map(comment),
    ...left.map(({ kind, id }) => comment(`${kind} ${id} is left out: ${why}`)),
    "apiVersion: syncline/v1",
    ...(withSettings ? ["services:", `  ${settings.name}: ${flow(serviceOf(settings))}`] : []),
    ...(policies.length === 0 ? ["policies: []"] : ["policies:", ...policies]),
  ];
}

const isId = (id: string) => /^(0|[1-9]\d{0,14})$/.test(id);

const forms = {
  apply: {
    size: policyLimits.objectsMax,
    isUsable: ({ id, name }: Existing) => isId(id) && !!name && name.length <= policyLimits.textCharactersMax,
    why: "it has no name, or an id or a name that is too long",
    head: (place: string) => [
      `what exists at ${place}: keep what shall stay so, and remove the rest; \`syncline plan --state\` shows what differs`,
      "drive-type and site-type targets are not here: no operation reads them (driveTargets, siteTargets)",
    ],
    body: (objects: readonly Existing[]) => [
      "    # without a schedule it is applied by `syncline apply` only",
      `    # schedule: { cron: "0 5 * * *" }`,
      "    apply:",
      ...kindLines("syncJobs", objects, "syncJob"),
      ...kindLines("docMasks", objects, "docMask"),
    ],
  },
  run: {
    size: policyLimits.syncJobsMax,
    isUsable: ({ kind, id }: Existing) => kind === "syncJob" && isId(id),
    why: "its id is too long",
    head: (place: string) => [
      `the sync jobs that masks at ${place} name: a policy for each group that shall start at one time`,
      "`run: { fromMasks: {} }` in place of the list takes those that masks name when the slot is due",
    ],
    body: (objects: readonly Existing[]) => [
      "    # without a schedule only `syncline run` starts it",
      `    # schedule: { cron: "0 2 * * *", timezone: UTC }`,
      "    run:",
      "      syncJobs:",
      ...objects.map(({ id, name }) => `        - ${id} ${comment(cutText(name ?? "no name", nameShownMax))}`),
    ],
  },
} as const;

function kindLines(key: string, objects: readonly Existing[], kind: Existing["kind"]): string[] {
  const lines = objects
    .filter((one) => one.kind === kind)
    .map(({ id, name }) => `        ${id}: { name: ${quoted(name ?? "")} }`);
  return lines.length === 0 ? [] : [`      ${key}:`, ...lines];
}

/** The service as the policies describe it, as far as a call needs. */
function serviceOf({ baseUrl, token, tls, pathForm }: ServiceSettings): object {
  return { baseUrl, token: loginOf(token), ...(tls === undefined ? {} : { tls }), pathForm };
}

function loginOf(token: ServiceSettings["token"]): object {
  if (token.kind === "file") return { file: token.path };
  if (token.kind === "env") return { env: token.variable };
  const { kind: _, ...oauth2 } = token;
  return { oauth2 };
}
