// Adds the operations to the application: reads parameters, checks answers, and writes them as
// JSON, NDJSON or CSV, as the caller accepts. What changes something is asked for as JSON.
import type { Context, Hono } from "hono";
import type * as z from "zod";
import { csvLine } from "../../core/csv.ts";
import { isJsonObject, type JsonObject } from "../../core/json.ts";
import type { QueryContext } from "../../queries/query-context.ts";
import { type AnswerCache, heldBriefly } from "../answer-cache.ts";
import { checkScope, checkWhole, localCaller } from "../identity.ts";
import { badRequest, limitBody, type PartProblem, WebError } from "../problem.ts";
import { Representation, send } from "../representation.ts";
import type { WebEnv } from "../web-env.ts";
import { type ChangeOperation, changeOperations } from "./change-operations.ts";
import { describeApi } from "./openapi.ts";
import type { ApiOperation } from "./operation.ts";
import { operations } from "./operations.ts";

/** The forms of a list beside JSON, by the word of `?format=`. */
const lineForms = {
  ndjson: { type: "application/x-ndjson", write: toNdjson },
  csv: { type: "text/csv", write: toCsv },
} as const;

/** Policy files to check are the largest. */
const bodyBytesMax = 1_048_576;

const pathOf = ({ path }: ParameterSchemas) => `/api/v1${path.replaceAll(/\{(\w+)\}/g, ":$1")}`;

/** Adds `/api/v1`. */
export function addApi(app: Hono<WebEnv>, cache: AnswerCache): void {
  for (const operation of operations) {
    app.get(pathOf(operation), async (c) => {
      const caller = c.get("caller") ?? localCaller;
      if (!operation.isOfPolicies) checkWhole(caller);
      const given = { ...readPath(c, operation), ...readQuery(c, operation) };
      const read = async (context: QueryContext) => {
        const found = (await operation.read({ context, cache, caller }, given)) as object;
        return cache.made(found, operation.path, () => operation.answer.parse(found) as object);
      };
      const context = c.get("query");
      const name = `${operation.path} ${JSON.stringify(given)}`;
      // A list is made once for all who ask; what one caller pages through is not kept.
      const isShared = operation.isList && !["after", "since", "until"].some((one) => given[one] !== undefined);
      return answer(c, operation, await (isShared ? cache.of(name, context, read, heldBriefly) : read(context)), cache);
    });
  }
  for (const operation of changeOperations) {
    app.on(operation.method.toUpperCase(), pathOf(operation), limitBody(bodyBytesMax), async (c) => {
      const acting = { ...c.get("acting"), key: operation.isKeyed ? readKey(c) : "" };
      checkScope(acting.caller, operation.needs);
      const given = { ...readPath(c, operation), ...readQuery(c, operation), ...(await readBody(c, operation)) };
      return c.json(operation.answer.parse(await operation.act(acting, given)));
    });
  }
  const description = new Representation(JSON.stringify(describeApi(), undefined, 2), "application/json");
  app.get("/api/v1/openapi.json", (c) => send(c, description));
}

async function readBody(c: Context<WebEnv>, { body }: ChangeOperation): Promise<Record<string, unknown>> {
  if (body === undefined) return {};
  const detail = "send a JSON object, and Content-Type: application/json";
  if (!/^application\/json(;|$)/i.test(c.req.header("content-type") ?? ""))
    throw badRequest([{ pointer: "/", detail }]);
  const given: unknown = await c.req.json().catch((error: unknown) => {
    if (error instanceof WebError) throw error;
    throw badRequest([{ pointer: "/", detail }]);
  });
  return parse(body, given);
}

function readKey(c: Context<WebEnv>): string {
  const key = c.req.header("idempotency-key") ?? "";
  if (/^[\x21-\x7e]{1,128}$/.test(key)) return key;
  const detail = "send a key of your own, new for each start: 1 to 128 visible ASCII characters, such as a UUID";
  throw badRequest([{ pointer: "/Idempotency-Key", detail }]);
}

type ParameterSchemas = Pick<ApiOperation, "inPath" | "query" | "path">;

function readPath(c: Context<WebEnv>, { inPath, path }: ParameterSchemas): Record<string, unknown> {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  return parse(inPath, Object.fromEntries(names.map((name) => [name, c.req.param(name)])));
}

function readQuery(c: Context<WebEnv>, { query }: ParameterSchemas): Record<string, unknown> {
  const given = new URL(c.req.url).searchParams;
  const twice = [...new Set(given.keys())].filter((name) => given.getAll(name).length > 1);
  if (twice.length > 0) throw badRequest(twice.map((name) => ({ pointer: `/${name}`, detail: "is given twice" })));
  return parse(query, Object.fromEntries(given));
}

function parse(schema: z.ZodObject, given: unknown): Record<string, unknown> {
  const { success, data, error } = schema.safeParse(given);
  if (success) return data;
  throw badRequest(
    error.issues.map((issue): PartProblem => {
      const unknown = issue.code === "unrecognized_keys" ? issue.keys.join("/") : "";
      return { pointer: `/${[...issue.path, unknown].filter((part) => part !== "").join("/")}`, detail: issue.message };
    }),
  );
}

function answer(
  c: Context<WebEnv>,
  { isList, query, answer: schema }: ApiOperation,
  body: object,
  cache: AnswerCache,
): Promise<Response> {
  const { pathname, searchParams } = new URL(c.req.url);
  // A link can say `?format=csv`, where it cannot say what it accepts.
  const wanted = searchParams.get("format") ?? "";
  const next = isJsonObject(body) ? body["next"] : undefined;
  // The `next` of a story is its next slot.
  if (typeof next === "string" && "after" in query.shape) {
    searchParams.set("after", next);
    c.header("link", `<${pathname}?${searchParams}>; rel="next"`);
  }
  c.header("vary", "Accept");
  const accepted = c.req.header("accept") ?? "";
  const [, form] =
    Object.entries(lineForms).find(
      ([name, { type }]) => isList && (wanted === "" ? accepted.includes(type) : name === wanted),
    ) ?? [];
  // In these forms an answer has its items only.
  const told: JsonObject = form !== undefined && isJsonObject(body) ? body : {};
  const leftOut = told["listsLeftOut"];
  if (typeof leftOut === "number" && leftOut > 0) c.header("syncline-lists-left-out", `${leftOut}`);
  if (told["isAll"] === false) c.header("syncline-is-all", "false");
  const represent = () => {
    if (form === undefined) return new Representation(JSON.stringify(body), "application/json");
    const items = isJsonObject(body) && Array.isArray(body["items"]) ? body["items"].filter(isJsonObject) : [];
    return new Representation(form.write(items, schema), `${form.type}; charset=utf-8`);
  };
  return send(c, cache.made(body, form?.type ?? "", represent));
}

type Items = readonly Readonly<Record<string, unknown>>[];

function toNdjson(items: Items): string {
  return items.map((item) => `${JSON.stringify(item)}\n`).join("");
}

/** The columns are all fields that an item may have, so that pages fit together. */
function toCsv(items: Items, list: z.ZodType): string {
  const columns = Object.keys((list as z.ZodObject<{ items: z.ZodArray<z.ZodObject> }>).shape.items.element.shape);
  return [columns, ...items.map((item) => columns.map((column) => item[column]))]
    .map((cells) => `${csvLine(cells)}\r\n`)
    .join("");
}
