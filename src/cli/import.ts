// `syncline import SERVICE`: declares existing objects, to start from: document masks, the sync
// jobs that masks name, and their names. Reads only, bounded.
import { Command } from "commander";
import { createService } from "../app/create-service.ts";
import type { ServiceSettings } from "../config/policy-set.ts";
import { policyLimits } from "../config/rules/policy-limits.ts";
import type { DeclaredKind } from "../core/declared-object.ts";
import { silentLog } from "../core/event-log.ts";
import { ServiceError, type SyncService } from "../service/client.ts";
import { escapeControls } from "../service/error-body.ts";
import type { CommandIo } from "./command-io.ts";
import { withService } from "./connections.ts";
import { configOption, findService, loadPoliciesOrThrow } from "./shared-options.ts";
import { safeJson, showPlace } from "./table.ts";

interface ImportOptions {
  readonly config: string;
  readonly repository?: string;
  readonly policiesOnly?: true;
}

const masksMax = 20_000;
const syncJobsMax = 5_000;
const syncJobsAtOnce = 4;
const problemsShown = 20;

const help = `
The output is a policy file of its own, with the service in it. In the folder that describes the service already, use --policies-only.
Exit codes: 0 everything was read, 1 something could not be, 2 wrong use or configuration, 3 the service is out of reach.

Examples:
  $ syncline import main --config policies/ --repository HR > declared.yaml && syncline validate declared.yaml
  $ syncline import main --config policies/ --policies-only > policies/declared.yaml && syncline plan --state policies/`;

/** The command `import`. */
export function importCommand(io: CommandIo): Command {
  return new Command("import")
    .argument("<service>", "name of the service in the policies")
    .addOption(configOption())
    .option("--repository <key>", "destination repository (default: the service chooses)")
    .option("--policies-only", "leave the service out, for a folder that describes it already")
    .addHelpText("after", help)
    .action(async (name: string, options: ImportOptions) => {
      const set = await loadPoliciesOrThrow(options.config, io);
      const settings = findService(set, name);
      const client = createService(settings, { variables: io.settings.variables, log: silentLog });
      const { repository } = options;
      await withService(client, io, async (service) => {
        const { existing, problems } = await readExisting(service, repository, io).finally(() => io.progress?.(""));
        const withSettings = options.policiesOnly !== true;
        for (const line of toYaml({ settings, repository, existing, problems, withSettings })) io.out(line);
        if (problems.length > 0) io.exitCode = 1;
      });
    });
}

/** One existing object, with its name if the service shows one. */
interface Existing {
  readonly kind: Extract<DeclaredKind, "syncJob" | "docMask">;
  readonly id: string;
  readonly name: string | null | undefined;
}

/** @throws ServiceError when the masks cannot be read. */
async function readExisting(service: SyncService, repository: string | undefined, io: CommandIo) {
  const masks = new Map<string, Existing>();
  const syncJobIds = new Set<string>();
  const query = repository === undefined ? {} : { repository };
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
  const left = ids.slice(0, syncJobsMax);
  const workOff = async () => {
    for (let id = left.shift(); id !== undefined && !io.signal.aborted; id = left.shift()) {
      io.progress?.(`${existing.length + 1} of ${ids.length} sync jobs`);
      try {
        const { name } = await service.getSyncJobById(id, query, { signal: io.signal });
        existing.push({ kind: "syncJob", id, name });
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        problems.push(`sync job ${id} cannot be read: ${error.message}`);
      }
    }
  };
  await Promise.all(Array.from({ length: syncJobsAtOnce }, workOff));
  if (ids.length > syncJobsMax) problems.push(`only ${syncJobsMax} of ${ids.length} sync jobs were read`);
  if (io.signal.aborted) problems.push("stopped before everything was read");
  const more = problems.length - problemsShown;
  return { existing, problems: [...problems.slice(0, problemsShown), ...(more > 0 ? [`and ${more} more`] : [])] };
}

function byId(a: Existing, b: Existing): number {
  return Number(a.id) - Number(b.id);
}

/** What goes into the file. */
interface ImportText {
  readonly settings: ServiceSettings;
  readonly repository: string | undefined;
  readonly existing: readonly Existing[];
  readonly problems: readonly string[];
  /** False: the service is described in another file of the same folder. */
  readonly withSettings: boolean;
}

/** The policy file, line by line. */
function toYaml({ settings, repository, existing, problems, withSettings }: ImportText): string[] {
  const usable = existing.filter(isUsable);
  const left = existing.filter((one) => !isUsable(one));
  return [
    comment(
      `what exists at ${showPlace(settings.name, repository)}: keep what shall stay so, and remove the rest; \`syncline plan --state\` shows what differs`,
    ),
    comment("drive-type and site-type targets are not here: no operation reads them (driveTargets, siteTargets)"),
    ...problems.map((problem) => comment(problem)),
    ...left.map(({ kind, id }) =>
      comment(`${kind} ${id} is left out: it has no name, or an id or a name that is too long`),
    ),
    "apiVersion: syncline/v1",
    ...(withSettings ? ["services:", `  ${settings.name}: ${flow(serviceOf(settings))}`] : []),
    usable.length === 0 ? "policies: []" : "policies:",
    ...batches(usable).flatMap((batch, index) => policyLines(batch, { settings, repository, number: index + 1 })),
  ];
}

function policyLines(
  objects: readonly Existing[],
  { settings, repository, number }: Pick<ImportText, "settings" | "repository"> & { readonly number: number },
): string[] {
  return [
    `  - name: ${policyName(settings.name, repository, number)}`,
    `    service: ${settings.name}`,
    ...(repository === undefined ? [] : [`    repository: ${quoted(repository)}`]),
    "    # without a schedule it is applied by `syncline apply` only",
    `    # schedule: { cron: "0 5 * * *" }`,
    "    apply:",
    ...kindLines("syncJobs", objects, "syncJob"),
    ...kindLines("docMasks", objects, "docMask"),
  ];
}

function kindLines(key: string, objects: readonly Existing[], kind: Existing["kind"]): string[] {
  const lines = objects
    .filter((one) => one.kind === kind)
    .map(({ id, name }) => `        ${id}: { name: ${quoted(name ?? "")} }`);
  return lines.length === 0 ? [] : [`      ${key}:`, ...lines];
}

function batches(objects: readonly Existing[]): Existing[][] {
  const size = policyLimits.objectsMax;
  return Array.from({ length: Math.ceil(objects.length / size) }, (_, index) =>
    objects.slice(index * size, (index + 1) * size),
  );
}

function isUsable({ id, name }: Existing): boolean {
  return /^(0|[1-9]\d{0,14})$/.test(id) && !!name && name.length <= policyLimits.textCharactersMax;
}

function policyName(service: string, repository: string | undefined, number: number): string {
  const words = `${service}-${repository ?? ""}`.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  return `${words.slice(0, 45).replace(/-+$/, "")}-declared${number === 1 ? "" : `-${number}`}`;
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

/** JSON is YAML; a text with `${` would be read as a variable. */
function flow(value: object): string {
  return JSON.stringify(value, (_, item: unknown) => (typeof item === "string" ? withoutVariables(item) : item));
}

function quoted(text: string): string {
  return safeJson(withoutVariables(text));
}

function withoutVariables(text: string): string {
  return text.replaceAll("${", () => "$${");
}

function comment(text: string): string {
  return `# ${escapeControls(text)}`;
}
