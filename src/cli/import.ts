// `syncline import SERVICE`: declares existing objects, to start from: document masks, the sync
// jobs that masks name, and their names. Reads only, bounded. Called by program.ts.
import { Command } from "commander";
import { silentLog } from "../core/event-log.ts";
import { ServiceError, type SyncService } from "../service/client.ts";
import { explainServiceError } from "./api-error.ts";
import type { CommandIo } from "./command-io.ts";
import { type Existing, importToYaml } from "./declared/import-text.ts";
import type { CreateService } from "./doctor/doctor-command.ts";
import { configOption, findService, loadPoliciesOrThrow } from "./shared-options.ts";

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
export function importCommand(io: CommandIo, createService: CreateService): Command {
  return new Command("import")
    .description("write what exists at a service as a declaration (apply) to start from")
    .argument("<service>", "name of the service in the policies")
    .addOption(configOption())
    .option("--repository <key>", "destination repository (default: the service chooses)")
    .option("--policies-only", "leave the service out, for a folder that describes it already")
    .addHelpText("after", help)
    .action(async (name: string, options: ImportOptions) => {
      const set = await loadPoliciesOrThrow(options.config, io);
      const settings = findService(set, name);
      const service = createService(settings, { variables: io.settings.variables, log: silentLog });
      const { repository } = options;
      try {
        const { existing, problems } = await readExisting(service, repository, io);
        const withService = options.policiesOnly !== true;
        for (const line of importToYaml({ settings, repository, existing, problems, withService })) io.out(line);
        if (problems.length > 0) io.exitCode = 1;
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        const { lines, exitCode } = explainServiceError(error);
        for (const line of lines) io.err(line);
        io.exitCode = exitCode;
      } finally {
        io.progress?.("");
        service.close();
      }
    });
}

interface Found {
  readonly existing: readonly Existing[];
  readonly problems: readonly string[];
}

/** @throws ServiceError when the masks cannot be read. */
async function readExisting(service: SyncService, repository: string | undefined, io: CommandIo): Promise<Found> {
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
  const { existing, problems } = await readSyncJobs(service, { ids: [...syncJobIds], query, io });
  return { existing: [...existing.sort(byId), ...[...masks.values()].sort(byId)], problems };
}

interface SyncJobsAsked {
  readonly ids: readonly string[];
  readonly query: { readonly repository?: string };
  readonly io: CommandIo;
}

async function readSyncJobs(service: SyncService, { ids, query, io }: SyncJobsAsked) {
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
