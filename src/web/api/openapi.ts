// Describes the API as OpenAPI 3.1, from the operations and their schemas. Served by routes.ts;
// scripts/openapi.ts writes docs/reference/openapi.json from it.
import * as z from "zod";
import { version } from "../../core/version.ts";
import { type ChangeOperation, changeOperations } from "./change-operations.ts";
import type { ApiOperation } from "./operation.ts";
import { operations } from "./operations.ts";
import * as schemas from "./schemas.ts";

type JsonObject = Record<string, unknown>;

const problems = {
  400: "the request is wrong",
  401: "a token is missing, unknown or has expired",
  403: "no grant or too small a scope, or a change from another site",
  404: "there is nothing of this name",
  421: "without tokens only localhost is answered",
  429: "too many requests",
  500: "a mistake in Syncline",
  503: "Redis, or the identity provider, is out of reach",
};

const changeProblems = {
  405: "the server is read-only",
  409: "this cannot be done as things are now",
  413: "the body is too large",
  422: "this cannot be done at any time, or the key stands for another request",
};

type OperationSchemas = Pick<ApiOperation, "name" | "summary" | "inPath" | "query" | "answer" | "isList">;

/** The description, as an object that JSON can hold. */
export function describeApi() {
  const paths: Record<string, Record<string, ReturnType<typeof describe>>> = {};
  const add = (path: string, method: string, described: ReturnType<typeof describe>) => {
    paths[`/api/v1${path}`] = { ...paths[`/api/v1${path}`], [method]: described };
  };
  for (const operation of operations) add(operation.path, "get", describeRead(operation));
  for (const operation of changeOperations) add(operation.path, operation.method, describeChange(operation));
  return {
    openapi: "3.1.0",
    info: {
      title: "Syncline",
      version,
      description: "What is known of policies, slots and outcomes, and what people change.",
    },
    servers: [{ url: "/" }],
    security: [{ bearer: [] }],
    paths,
    components: {
      securitySchemes: { bearer: { type: "http", scheme: "bearer" } },
      schemas: namedSchemas(),
    },
  };
}

function describeRead(operation: ApiOperation) {
  const { responses, ...rest } = describe(operation);
  const unchanged = { description: "what the caller has by `If-None-Match` still holds" };
  return { ...rest, responses: { ...responses, 304: unchanged } };
}

function describeChange(operation: ChangeOperation) {
  const { needs, isKeyed, body } = operation;
  const { parameters, responses, ...rest } = describe({ ...operation, isList: false });
  const key = { name: "Idempotency-Key", in: "header", required: true, schema: { type: "string", maxLength: 128 } };
  const json = body && { "application/json": { schema: withoutDefinitions(body, "input") } };
  return {
    ...rest,
    description: `Needs the scope ${needs}, or a higher one where more than a policy is concerned.`,
    parameters: [...parameters, ...(isKeyed ? [key] : [])],
    ...(json && { requestBody: { required: true, content: json } }),
    responses: { ...responses, ...problemsAs(changeProblems) },
  };
}

function describe({ name, summary, inPath, query, answer, isList }: OperationSchemas) {
  const json = { "application/json": { schema: withoutDefinitions(answer, "output") } };
  const lines = { schema: { type: "string" } };
  return {
    operationId: name,
    summary,
    parameters: [...parametersOf(inPath, "path"), ...parametersOf(query, "query")],
    responses: {
      200: {
        description: "as asked",
        content: isList ? { ...json, "application/x-ndjson": lines, "text/csv": lines } : json,
      },
      ...problemsAs(problems),
    },
  };
}

function problemsAs(told: Readonly<Record<number, string>>): JsonObject {
  const content = { "application/problem+json": { schema: { $ref: refTo("Problem") } } };
  return Object.fromEntries(Object.entries(told).map(([status, description]) => [status, { description, content }]));
}

function parametersOf(schema: z.ZodObject, where: "path" | "query") {
  const { properties = {}, required = [] } = z.toJSONSchema(schema, { io: "input" });
  return Object.entries(properties).map(([name, one]) => ({
    name,
    in: where as string,
    required: where === "path" || required.includes(name),
    schema: one as unknown,
  }));
}

const refTo = (name: string) => `#/components/schemas/${name}`;

/** The schemas that have a name, each once, referring to each other. */
function namedSchemas(): JsonObject {
  const named = Object.values(schemas).flatMap((schema) => Object.entries(z.toJSONSchema(schema).$defs ?? {}));
  const sorted = named.toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(sorted.map(([id, schema]) => [id, toReferences(schema, "output")]));
}

function withoutDefinitions(schema: z.ZodType, io: "input" | "output"): unknown {
  return toReferences(z.toJSONSchema(schema, { io }), io);
}

/** Schemas with a name stand in `$defs` of each other: they are components here. */
function toReferences(schema: unknown, io: "input" | "output"): unknown {
  if (Array.isArray(schema)) return schema.map((part) => toReferences(part, io));
  if (typeof schema !== "object" || schema === null) return schema;
  const parts = Object.entries(schema).flatMap(([name, value]): [string, unknown][] => {
    // An answer may have more fields one day; what is sent may not.
    const isOpen = io === "output" && name === "additionalProperties" && value === false;
    if (isOpen || ["$defs", "$schema"].includes(name)) return [];
    if (name === "$ref" && typeof value === "string") return [[name, value.replace("#/$defs/", refTo(""))]];
    return [[name, toReferences(value, io)]];
  });
  return Object.fromEntries(parts);
}
