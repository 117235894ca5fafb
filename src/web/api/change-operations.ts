// The operations that change something, or start it. routes.ts adds them to the application,
// openapi.ts describes them; what they do is in acts.ts.
import * as z from "zod";
import { checkPolicyFiles } from "../../config/load-policies.ts";
import { durationPattern, parseDuration } from "../../core/duration.ts";
import { toIso } from "../../core/instant.ts";
import { reasonCharactersMax } from "../../model/change.ts";
import { selectorOf } from "../../model/label.ts";
import { noteCharactersMax, type PauseSubject } from "../../model/pause.ts";
import type { Scope } from "../../model/scope.ts";
import { toAcknowledged } from "../../queries/policy-lines.ts";
import { readNowMs } from "../../queries/records.ts";
import {
  type Acting,
  acknowledgePolicy,
  cancelTask,
  discardFailed,
  endPolicyAcknowledgement,
  type KeyedActing,
  pauseSubject,
  replayFailed,
  resumeSubject,
  runOne,
  runPolicy,
} from "../acts.ts";
import { badRequest } from "../problem.ts";
import { toPauseAnswer } from "./answers.ts";
import { instant, nameOf } from "./operation.ts";
import * as schemas from "./schemas.ts";

/** One operation. `isKeyed`: it needs an `Idempotency-Key`. */
export interface ChangeOperation {
  readonly method: "post" | "put" | "delete";
  readonly path: string;
  readonly name: string;
  readonly summary: string;
  readonly needs: Scope;
  readonly isKeyed: boolean;
  readonly inPath: z.ZodObject;
  readonly query: z.ZodObject;
  /** Undefined: it takes none. */
  readonly body: z.ZodObject | undefined;
  readonly answer: z.ZodType;
  readonly act: (acting: KeyedActing, given: Readonly<Record<string, unknown>>) => Promise<unknown>;
}

const nothing = z.strictObject({});

/** One operation with the types of its parameters. */
function change<Path extends z.ZodObject, Query extends z.ZodObject, Body extends z.ZodObject>(
  options: Pick<ChangeOperation, "method" | "path" | "name" | "summary" | "needs" | "answer"> & {
    readonly in?: Path;
    readonly query?: Query;
    readonly body?: Body;
    readonly isKeyed?: true;
    readonly act: (acting: KeyedActing, given: z.output<Path> & z.output<Query> & z.output<Body>) => Promise<unknown>;
  },
): ChangeOperation {
  const { in: inPath = nothing, query = nothing, body, isKeyed = false, act, ...rest } = options;
  // The routes parse all before they call: what comes in is what the schemas give.
  return { ...rest, inPath, query, body, isKeyed, act: act as ChangeOperation["act"] };
}

const variablesMax = 200;
const targetForms = "policy:NAME, service:NAME, label:NAME=VALUE or all";
const reason = z
  .string()
  .trim()
  .min(1, "say why")
  .max(reasonCharactersMax)
  .meta({ examples: ["ticket 7"] });
const name = z.string().min(1).max(200);
const target = name.meta({ description: targetForms, examples: ["policy:invoices"] });
const inName = z.strictObject({ name: nameOf.policy });
const selected = {
  ids: z.array(nameOf.task).min(1).max(1_000).optional(),
  ...{ policy: name.optional(), label: name.optional(), sink: name.optional() },
  ...{ all: z.literal(true).optional(), corrected: z.literal(true).optional() },
};

const ofPolicy = { examples: [{ policy: "invoices", reason: "ticket 7" }] };

/** The subject that a target such as `policy:invoices` names. */
export function subjectOf(target: string): PauseSubject {
  if (target === "all") return { scope: "all", name: "" };
  const [, scope, named = ""] = /^(policy|service|label):(.+)$/s.exec(target) ?? [];
  if (scope === "policy" || scope === "service") return { scope, name: named };
  if (scope === "label") return { scope, name: selectorOf(named.split(",")) };
  throw badRequest([{ pointer: "/target", detail: `write ${targetForms}` }]);
}

/** All operations that change something. */
export const changeOperations: readonly ChangeOperation[] = [
  change({
    method: "post",
    path: "/pauses",
    name: "pause",
    summary: "Skip the slots of a policy, a service, a label or all from now on; replaces the pause in force",
    needs: "operate",
    body: z.strictObject({
      target,
      until: instant.optional(),
      for: z.string().regex(durationPattern, "write a duration such as 4h").optional(),
      reason: reason.max(noteCharactersMax),
    }),
    answer: schemas.pauseSchema,
    act: async (acting, { target, until, for: time, reason: why }) => {
      if (until !== undefined && time !== undefined)
        throw badRequest([{ pointer: "/until", detail: "give until or for, not both" }]);
      const untilMs = time === undefined ? until : (await readNowMs(acting.context)) + parseDuration(time);
      return toPauseAnswer(await pauseSubject(acting, subjectOf(target), untilMs ?? null, why));
    },
  }),
  change({
    method: "delete",
    path: "/pauses/{target}",
    name: "resume",
    summary: "End the pause, or the quarantine, of exactly this policy, service or label, or the one of all",
    needs: "operate",
    in: z.strictObject({ target }),
    query: z.strictObject({ reason, catchUp: z.stringbool().default(false) }),
    answer: z.object({
      ended: z.array(schemas.pauseSchema),
      stillPaused: z.array(schemas.pauseSchema),
      caughtUp: z.array(z.object({ policy: z.string(), slot: z.iso.datetime(), tasks: z.array(z.string()) })),
      left: z.array(z.string()).meta({ description: "not caught up: run by hand what is still skipped" }),
    }),
    act: async (acting, { target, reason: why, catchUp }) => {
      const wish = { reason: why, catchUp };
      const { ended, stillPaused, caughtUp, left } = await resumeSubject(acting, subjectOf(target), wish);
      return {
        ended: ended.map(toPauseAnswer),
        stillPaused: stillPaused.map(toPauseAnswer),
        caughtUp: caughtUp.map(({ policy, slotMs, tasks }) => ({ policy, slot: toIso(slotMs), tasks })),
        left,
      };
    },
  }),
  change({
    method: "post",
    path: "/policies/{name}/runs",
    name: "runPolicy",
    summary: "Run a policy now, whatever its schedule and its pauses say",
    needs: "operate",
    isKeyed: true,
    in: inName,
    body: z.strictObject({ reason }),
    answer: schemas.startedSchema,
    act: (acting, given) => runPolicy(acting, given.name, given.reason),
  }),
  change({
    method: "post",
    path: "/services/{name}/runs",
    name: "runSyncJob",
    summary: "Run a sync job that has no policy now, as the defaults of the policy files say",
    needs: "operate",
    isKeyed: true,
    in: z.strictObject({ name: nameOf.service }),
    body: z.strictObject({
      syncJob: z
        .int()
        .min(1)
        .meta({ examples: [42] }),
      repository: name.optional(),
      reason,
    }),
    answer: schemas.startedSchema,
    act: (acting, { name: service, syncJob, repository, reason: why }) =>
      runOne(acting, { service, syncJob, repository }, why),
  }),
  change({
    method: "put",
    path: "/policies/{name}/acknowledgement",
    name: "acknowledge",
    summary: "Note that you know what is wrong; ends when it is well again or gets worse",
    needs: "operate",
    in: inName,
    body: z.strictObject({ reason }),
    answer: schemas.acknowledgedSchema,
    act: async (acting, { name: policy, reason: why }) => toAcknowledged(await acknowledgePolicy(acting, policy, why)),
  }),
  change({
    method: "delete",
    path: "/policies/{name}/acknowledgement",
    name: "endAcknowledgement",
    summary: "Take an acknowledgement back",
    needs: "operate",
    in: inName,
    query: z.strictObject({ reason }),
    answer: nothing,
    act: async (acting, { name: policy, reason: why }) => {
      await endPolicyAcknowledgement(acting, policy, why);
      return {};
    },
  }),
  change({
    method: "post",
    path: "/failed/replay",
    name: "replayFailed",
    summary: "Do over what is on the failed list: name ids, or a policy, a label, a sink or all",
    needs: "operate",
    isKeyed: true,
    body: z.strictObject({ ...selected, force: z.boolean().default(false), reason }).meta(ofPolicy),
    answer: schemas.failedListResultSchema,
    act: (acting, { force: isForced, reason: why, ids = [], ...group }) =>
      replayFailed(acting, { ids, ...group }, { reason: why, isForced }),
  }),
  change({
    method: "post",
    path: "/failed/discard",
    name: "discardFailed",
    summary: "Take entries off the failed list; outcomes stay in the history",
    needs: "operate",
    body: z.strictObject({ ...selected, reason }).meta(ofPolicy),
    answer: schemas.failedListResultSchema,
    act: (acting, { reason: why, ids = [], ...group }) => discardFailed(acting, { ids, ...group }, why),
  }),
  change({
    method: "post",
    path: "/tasks/{id}/cancel",
    name: "cancelTask",
    summary: "Send nothing more of a task, and stop to follow what was sent: it goes on at the service",
    needs: "operate",
    in: z.strictObject({ id: nameOf.task }),
    body: z.strictObject({ reason }),
    answer: z.object({
      wasSent: z
        .boolean()
        .nullable()
        .describe("Whether its request went out before. Null for an apply: its outcome tells what it has changed."),
    }),
    act: (acting, { id, reason: why }) => cancelTask(acting, id, why),
  }),
  change({
    method: "post",
    path: "/config/validate",
    name: "validateConfig",
    summary: "Check policy files, by name, as one set; changes nothing",
    needs: "operate",
    body: z.strictObject({
      files: z
        .record(z.string().min(1).max(200), z.string())
        .meta({ examples: [{ "policies.yaml": "apiVersion: syncline/v1" }] }),
      variables: z
        .record(z.string().max(100), z.string().max(4_096))
        .refine((all) => Object.keys(all).length <= variablesMax, `at most ${variablesMax} variables`)
        .default({})
        .meta({ description: "by name; the server's own are not used" }),
    }),
    answer: schemas.validatedSchema,
    act: validate,
  }),
];

type Texts = Readonly<Record<string, string>>;

async function validate({ load }: Acting, { files, variables }: { readonly files: Texts; readonly variables: Texts }) {
  const names = Object.keys(files).toSorted();
  const texts = names.map((file) => ({ file, text: files[file] ?? "" }));
  // Files and variables of the server are not for those who ask.
  const options = { ...load, variables, readsFiles: false };
  const loaded = await checkPolicyFiles("the request", { texts, files: names, problems: [] }, options);
  if (loaded.ok) return { ok: true, policies: loaded.set.policies.length, problems: [] };
  const problems = loaded.problems.map((one) => ({ ...one, hint: one.hint ?? null }));
  return { ok: false, policies: 0, problems };
}
