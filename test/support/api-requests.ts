// Requests to the API, generated from docs/reference/openapi.json alone: for each operation the
// valid one, and for each of its parameters and body fields the limits and what is wrong.
import { readFileSync } from "node:fs";

type Json = Readonly<Record<string, unknown>>;

/** A JSON schema, as far as the generator reads it. */
interface Schema extends Json {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
}

interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required: boolean;
  readonly schema: Schema;
}

type Content = Readonly<Record<string, { readonly schema: Schema }>>;

/** An operation of the description. */
export interface Described {
  readonly operationId: string;
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly content: Content }>>;
}

/** One request. `isWrong`: the answer must be 400. */
export interface ApiRequest {
  readonly operation: Described;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly isWrong: boolean;
  readonly about: string;
}

/** docs/reference/openapi.json. */
export const description: {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
} = JSON.parse(readFileSync(new URL("../../docs/reference/openapi.json", import.meta.url), "utf8"));

/** All requests; `known`: values of parameters and fields that only this installation has. */
export function apiRequests(known: Readonly<Record<string, unknown>>): ApiRequest[] {
  return Object.entries(description.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) => requestsOf({ path, method, operation, known })),
  );
}

interface Place {
  readonly path: string;
  readonly method: string;
  readonly operation: Described;
  readonly known: Readonly<Record<string, unknown>>;
}

function requestsOf({ path, method, operation, known }: Place): ApiRequest[] {
  const { parameters, requestBody, responses } = operation;
  const schema = requestBody?.content["application/json"]?.schema;
  const fields = schema && Object.fromEntries(requiredOf(schema, known));
  const required = Object.fromEntries(
    parameters.filter(({ required }) => required).map((one) => [one.name, validOf(one, known)]),
  );
  const make = (
    about: string,
    isWrong: boolean,
    given: Json = {},
    body: unknown = fields,
    more: Json = {},
  ): ApiRequest => {
    const values: Json = { ...required, ...given };
    const of = (where: Parameter["in"]) =>
      Object.entries(values).filter(([name, value]) => value !== undefined && (placeOf(name) ?? "query") === where);
    const placeOf = (name: string) => parameters.find((one) => one.name === name)?.in;
    const filled = of("path").reduce(
      (text, [name, value]) => text.replace(`{${name}}`, encodeURIComponent(String(value))),
      path,
    );
    const query = new URLSearchParams(of("query").map(([name, value]): [string, string] => [name, String(value)]));
    const headers = Object.fromEntries([
      ...of("header"),
      ...(body === undefined ? [] : [["content-type", "application/json"]]),
      ...Object.entries(more),
    ]);
    const text = body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) };
    return {
      operation,
      method,
      path: `${filled}${query.size === 0 ? "" : `?${query}`}`,
      headers,
      ...text,
      isWrong,
      about: `${operation.operationId}: ${about}`,
    };
  };
  const ofParameters = parameters.flatMap((one) => [
    // A cursor is good only where it comes from.
    ...(one.name === "after" && one.schema.type === "string" && one.schema.maxLength
      ? []
      : validValues(one.schema, known[one.name])
    ).map((value) => make(`${one.name} = ${short(value)}`, false, { [one.name]: value })),
    ...wrongValues(one).map((value) => make(`${one.name} = ${short(value)}`, true, { [one.name]: value })),
    ...(one.required && one.in !== "path" ? [make(`without ${one.name}`, true, { [one.name]: undefined })] : []),
  ]);
  const forms = Object.keys(responses["200"]?.content ?? {}).map((accept) =>
    make(`as ${accept}`, false, {}, fields, { accept }),
  );
  return [
    ...forms,
    make("an unknown parameter", true, { surprise: 1 }),
    ...ofParameters,
    ...(schema ? ofBody(schema, fields ?? {}, known, make) : []),
  ];
}

function ofBody(
  schema: Schema,
  fields: Json,
  known: Json,
  make: (about: string, isWrong: boolean, given: Json, body: unknown, more?: Json) => ApiRequest,
): ApiRequest[] {
  const wrong = (about: string, body: unknown, more?: Json) => make(about, true, {}, body, more);
  return [
    ...["", "{", "[]", "null", '"x"', "1"].map((text) => wrong(`the body ${text}`, text)),
    wrong("another content type", fields, { "content-type": "text/plain" }),
    wrong("an unknown field", { ...fields, surprise: 1 }),
    ...(schema.required ?? [])
      .filter((name) => schema.properties?.[name]?.default === undefined)
      .map((name) => wrong(`without ${name}`, { ...fields, [name]: undefined })),
    ...Object.entries(schema.properties ?? {}).flatMap(([name, one]) => [
      ...validValues(one, known[name]).map((value) =>
        make(`${name} = ${short(value)}`, false, {}, { ...fields, [name]: value }),
      ),
      ...[null, { a: 1 }, ...(one.type === "string" ? [7] : ["7x"]), ...beyond(one)]
        .filter((value) => !(one.type === "object" && typeof value === "object" && value !== null))
        .map((value) => wrong(`${name} = ${short(value)}`, { ...fields, [name]: value })),
    ]),
  ];
}

function requiredOf(schema: Schema, known: Json): [string, unknown][] {
  return (schema.required ?? []).map((name) => [
    name,
    validOf({ name, schema: schema.properties?.[name] ?? {} }, known),
  ]);
}

function validOf({ name, schema }: Pick<Parameter, "name" | "schema">, known: Json): unknown {
  if (name === "Idempotency-Key") return crypto.randomUUID();
  const [value] = validValues(schema, known[name]);
  if (value === undefined) throw new Error(`openapi.json gives ${name} no example`);
  return value;
}

/** What a parameter takes: what is known, the example, each word, the default, the limits. */
function validValues(
  {
    enum: words = [],
    const: only,
    default: usual,
    examples = [],
    minimum,
    maximum,
    minLength,
    maxLength,
    items,
  }: Schema,
  known: unknown,
): unknown[] {
  const long = examples.length === 0 ? [minLength, maxLength] : [];
  const texts = long.flatMap((length) => (length === undefined ? [] : ["x".repeat(length)]));
  const lists = items === undefined ? [] : [validValues(items, undefined).slice(0, 1)];
  return [
    known,
    ...examples,
    ...words,
    only,
    usual,
    minimum,
    maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum,
    ...texts,
    ...lists,
  ].filter((value) => value !== undefined);
}

/** What lies beyond the limits of a schema. */
function beyond({ enum: words, minimum, maximum, minLength = 0, maxLength, pattern }: Schema): unknown[] {
  return [
    ...(words === undefined ? [] : ["surprise"]),
    ...(minimum === undefined ? [] : [minimum - 1]),
    ...(maximum === undefined ? [] : [maximum + 1]),
    ...(minLength > 0 ? [""] : []),
    ...(maxLength === undefined ? [] : ["x".repeat(maxLength + 1)]),
    ...(pattern === undefined ? [] : ["no\u0000thing"]),
  ];
}

function wrongValues({ schema, in: where }: Parameter): unknown[] {
  // A path without a part of it is another path; a header cannot hold a control character.
  const isSent = (value: unknown) => (where === "path" ? value !== "" : where === "query" || !/\0/.test(String(value)));
  const texts = beyond(schema).filter(isSent);
  return [...texts, ...(schema.type === "integer" ? ["seven", "1.5", ""] : [])];
}

function short(value: unknown): string {
  return String(JSON.stringify(value)).slice(0, 60);
}
