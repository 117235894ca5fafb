// Adds the operations to the application: reads parameters, checks answers, and writes them as
// JSON, NDJSON or CSV, as the caller accepts.
import type { Context, Hono } from "hono";
import type * as z from "zod";
import { csvLine } from "../../core/csv.ts";
import { isJsonObject } from "../../core/json.ts";
import { localCaller } from "../access.ts";
import type { Looks } from "../looks.ts";
import { badRequest, type PartProblem } from "../problem.ts";
import type { WebEnv } from "../web-env.ts";
import { describeApi } from "./openapi.ts";
import type { Operation } from "./operation.ts";
import { operations } from "./operations.ts";

/** The forms of a list, by the media type that asks for them. */
const lineForms = { "application/x-ndjson": toNdjson, "text/csv": toCsv } as const;

/** Adds `/api/v1`. */
export function addApi(app: Hono<WebEnv>, looks: Looks): void {
  for (const operation of operations) {
    app.get(`/api/v1${operation.path.replaceAll(/\{(\w+)\}/g, ":$1")}`, async (c) => {
      const given = { ...readPath(c, operation), ...readQuery(c, operation) };
      const found = await operation.read(
        { context: c.get("query"), looks, caller: c.get("caller") ?? localCaller },
        given,
      );
      return answer(c, operation, operation.answer.parse(found));
    });
  }
  const description = JSON.stringify(describeApi(), undefined, 2);
  app.get("/api/v1/openapi.json", (c) => c.body(description, 200, { "content-type": "application/json" }));
}

function readPath(c: Context<WebEnv>, { inPath, path }: Operation): Record<string, unknown> {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  return parse(inPath, Object.fromEntries(names.map((name) => [name, c.req.param(name)])));
}

function readQuery(c: Context<WebEnv>, { query }: Operation): Record<string, unknown> {
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

function answer(c: Context<WebEnv>, { isList, path }: Operation, body: unknown): Response {
  const next = isJsonObject(body) && typeof body["next"] === "string" ? body["next"] : undefined;
  if (next !== undefined) {
    const { searchParams } = new URL(c.req.url);
    searchParams.set("after", next);
    c.header("link", `</api/v1${path}?${searchParams}>; rel="next"`);
  }
  c.header("vary", "Accept");
  const accepted = c.req.header("accept") ?? "";
  const form = Object.entries(lineForms).find(([type]) => isList && accepted.includes(type));
  if (form === undefined) return c.json(body);
  const [type, write] = form;
  const items = isJsonObject(body) && Array.isArray(body["items"]) ? body["items"].filter(isJsonObject) : [];
  return c.body(write(items), 200, { "content-type": `${type}; charset=utf-8` });
}

type Items = readonly Readonly<Record<string, unknown>>[];

function toNdjson(items: Items): string {
  return items.map((item) => `${JSON.stringify(item)}\n`).join("");
}

/** The columns are all fields that an item of the page has. */
function toCsv(items: Items): string {
  const columns = [...new Set(items.flatMap((item) => Object.keys(item)))];
  return [columns, ...items.map((item) => columns.map((column) => item[column]))]
    .map((cells) => `${csvLine(cells)}\r\n`)
    .join("");
}
