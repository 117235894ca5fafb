// Makes the checked request of `syncline api` and prints its answer. Called by api.ts.
import type { JsonObject } from "../core/json.ts";
import type { Page, SyncService } from "../service/client.ts";
import type { Operation } from "../service/operations.ts";
import { explainServiceError } from "./api-error.ts";
import { type ApiRequest, isListRequest } from "./api-request.ts";
import type { CommandIo, ExitCode } from "./command-io.ts";
import { safeJson } from "./table.ts";

type AnyPage = Page<JsonObject>;

/** What an answer looks like to the printer. */
type Result =
  | { readonly type: "json"; readonly value: unknown }
  | { readonly type: "page"; readonly page: AnyPage }
  | { readonly type: "done"; readonly what: string }
  | { readonly type: "deletion"; readonly isDeleted: boolean };

type Caller = (service: SyncService, request: ApiRequest, signal: AbortSignal) => Promise<Result>;

const json = (value: unknown): Result => ({ type: "json", value });
const ofPage = (page: AnyPage): Result => ({ type: "page", page });

/** A total table: an operation without an entry does not compile. */
const callers: Readonly<Record<Operation, Caller>> = {
  GetSyncJobById: async (service, r, signal) => json(await service.getSyncJobById(r.key, r, { signal })),
  UpdateSyncJobById: async (service, r, signal) => json(await service.updateSyncJobById(r.key, r.body, r, { signal })),
  DeleteSyncJobById: async (service, r, signal) => {
    const result = await service.deleteSyncJobById(r.key, r, { signal });
    return { type: "deletion", isDeleted: result !== "not-deleted" };
  },
  RunSyncJob: async (service, r, signal) => {
    await service.runSyncJob(r.key, r, { signal });
    return { type: "done", what: `sync job ${r.key}: the service accepted the start of a run` };
  },
  EnableSyncJobById: async (service, r, signal) => {
    await service.enableSyncJobById(r.key, r, { signal });
    return { type: "done", what: `sync job ${r.key}: activated` };
  },
  UpdateEcmDocumentMaskById: async (service, r, signal) =>
    json(await service.updateEcmDocumentMaskById(r.key, r.body, r, { signal })),
  GetJobMasks: async (service, r, signal) => ofPage(await service.getJobMasks(r, { signal })),
  UpdateDriveSyncTargetById: async (service, r, signal) =>
    json(await service.updateDriveSyncTargetById(r.key, r.body, r, { signal })),
  UpdateSiteSyncTargetById: async (service, r, signal) =>
    json(await service.updateSiteSyncTargetById(r.key, r.body, r, { signal })),
  GetApprovals: async (service, r, signal) => ofPage(await service.getApprovals(r, { signal })),
  GetIdentityById: async (service, r, signal) => {
    const query = { repository: r.repository ?? "", select: r.select, expand: r.expand };
    return json({ value: await service.getIdentityById(r.key, query, { signal }) });
  },
  GetTriggers: async (service, r, signal) => ofPage(await service.getTriggers(r, { signal })),
  GetAuthActivities: async (service, r, signal) => ofPage(await service.getAuthActivities(r, { signal })),
  GetActivities: async (service, r, signal) => ofPage(await service.getActivities(r, { signal })),
  GetConflictDetails: async (service, r, signal) => ofPage(await service.getConflictDetails(r, { signal })),
};

/** Makes the request and prints its answer. @throws ServiceError */
export async function callOperation(service: SyncService, request: ApiRequest, io: CommandIo): Promise<ExitCode> {
  if (isListRequest(request)) {
    if (request.isCount) {
      io.out(String(await service.count(request.operation, request, { signal: io.signal })));
      return 0;
    }
    if (request.isAll) {
      for await (const page of service.pages(request.operation, request, { signal: io.signal })) {
        for (const item of page.items) io.out(safeJson(item));
      }
      return 0;
    }
  }
  return print(await callers[request.operation](service, request, io.signal), request, io);
}

function print(result: Result, request: ApiRequest, io: CommandIo): ExitCode {
  const write = (value: unknown) => io.out(safeJson(value, request.isJson ? 0 : 2));
  switch (result.type) {
    case "json":
      write(result.value);
      return 0;
    case "page":
      return printPage(result.page, write, io);
    case "done":
      if (request.isJson) write({ operation: request.operation, key: toKey(request.key), status: "accepted" });
      else io.out(result.what);
      return 0;
    case "deletion":
      io.out(String(result.isDeleted));
      if (result.isDeleted) return 0;
      io.err(`error: the service did not delete sync job ${request.key}: check that the key exists and may be deleted`);
      return 1;
  }
}

function printPage(page: AnyPage, write: (value: unknown) => void, io: CommandIo): ExitCode {
  // Shows only that there is more: a link's query may open it without a token. --all reads on.
  const link = page.nextLink === undefined ? {} : { "@odata.nextLink": page.nextLink.replace(/\?.*$/s, "?[…]") };
  write({ value: page.items, ...link });
  if (page.linkProblem === undefined) return 0;
  const { lines, exitCode } = explainServiceError(page.linkProblem);
  for (const line of lines) io.err(line);
  return exitCode;
}

function toKey(key: string): number | string {
  return Number.isSafeInteger(Number(key)) ? Number(key) : key;
}
