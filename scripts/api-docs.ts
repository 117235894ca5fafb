// What scripts/openapi.ts writes beside the description: docs/reference/api.md, an example of each
// operation; api.d.ts, its types; and api-v1.txt, a line for each thing that clients may rely on.

type Json = Readonly<Record<string, unknown>>;

/** A JSON schema, as far as it is read here. */
interface Schema extends Json {
  readonly $ref?: string;
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly examples?: readonly unknown[];
  readonly const?: unknown;
}

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly parameters: readonly { name: string; in: string; required: boolean; schema: Schema }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema: Schema }>> }>
  >;
}

/** An OpenAPI description, as far as it is read here. */
export interface Description {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

const json = "application/json";

function operationsOf({ paths }: Description) {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
}

/**
 * One line for each operation, parameter, word of a parameter, and field of a body, an answer or a
 * named schema. What becomes required has another line: `new` ones break a client, too.
 */
export function apiLines(description: Description): string[] {
  const lines = operationsOf(description).flatMap(({ path, method, operation }) => {
    const { operationId, parameters, requestBody, responses } = operation;
    const body = requestBody?.content[json]?.schema;
    return [
      `${operationId}: ${method} ${path}`,
      ...parameters.flatMap(({ name, in: where, required, schema }) =>
        inputLines(`${operationId} ${where} ${name}`, schema, required),
      ),
      ...(body === undefined ? [] : inputLines(`${operationId} body`, body, true)),
      ...Object.entries(responses).flatMap(([status, { content = {} }]) =>
        Object.entries(content).flatMap(([media, { schema }]) =>
          outputLines(`${operationId} ${status} ${media}`, schema),
        ),
      ),
    ];
  });
  const named = Object.entries(description.components.schemas).flatMap(([name, schema]) => outputLines(name, schema));
  return [...new Set([...lines, ...named])].toSorted();
}

function inputLines(
  place: string,
  { type = "", enum: words = [], properties = {}, required = [] }: Schema,
  isRequired: boolean,
): string[] {
  return [
    `${place}: ${type}${isRequired ? " required" : " optional"}`,
    ...words.map((word) => `${place} = ${String(word)}`),
    ...Object.entries(properties).flatMap(([name, one]) =>
      inputLines(`${place}.${name}`, one, required.includes(name) && one["default"] === undefined),
    ),
  ];
}

function outputLines(
  place: string,
  { $ref, type = "", anyOf = [], items, properties = {}, required = [] }: Schema,
): string[] {
  return [
    `${place}: ${$ref?.split("/").at(-1) ?? type}`,
    ...anyOf.flatMap((one) => outputLines(place, one)),
    ...(items === undefined ? [] : outputLines(`${place}[]`, items)),
    ...Object.entries(properties).flatMap(([name, one]) =>
      outputLines(`${place}.${name}${required.includes(name) ? "" : "?"}`, one),
    ),
  ];
}

/** What of the kept lines is gone, and what came that earlier clients do not send. */
export function brokenLines(kept: readonly string[], now: readonly string[]): string[] {
  const [before, after] = [new Set(kept), new Set(now)];
  const gone = kept.filter((line) => !after.has(line));
  const known = new Set(kept.map((line) => line.split(/[ :]/)[0]));
  const demanded = now.filter(
    (line) => line.endsWith(" required") && !before.has(line) && known.has(line.split(/[ :]/)[0] ?? ""),
  );
  return [...gone.map((line) => `gone: ${line}`), ...demanded.map((line) => `new, and required: ${line}`)];
}

/** docs/reference/api.md. */
export function apiPage(description: Description): string {
  const examples = operationsOf(description).map((one) => {
    const { operationId, summary } = one.operation;
    return `# ${operationId}: ${summary}\n${commandOf(one)}\n`;
  });
  return `# API by example

Made from [openapi.json](openapi.json) by \`npm run docs:api\`; [api.d.ts](api.d.ts) has the types of the answers. How to use it: [dashboard](../dashboard.md#api).

\`\`\`sh
API=http://127.0.0.1:4780/api/v1
call() { curl -s -H "authorization: Bearer $TOKEN" "$@"; }

${examples.join("\n")}\`\`\`
`;
}

/** The command of the example: what an operation needs, and nothing else. */
function commandOf({
  path,
  method,
  operation: { parameters, requestBody },
}: ReturnType<typeof operationsOf>[number]): string {
  const needed = parameters.filter(({ required }) => required);
  const of = (where: string) =>
    needed
      .filter((one) => one.in === where)
      .map(({ name, schema }) => [name, encodeURIComponent(String(exampleOf(schema)))]);
  const filled = of("path").reduce((text, [name, value]) => text.replace(`{${name}}`, `${value}`), path);
  const query = of("query")
    .map((pair) => pair.join("="))
    .join("&");
  const body = requestBody?.content[json]?.schema;
  const parts = [
    `call${method === "GET" || body !== undefined ? "" : ` -X ${method}`} "$API${filled.replace("/api/v1", "")}${query === "" ? "" : `?${query}`}"`,
    ...(body !== undefined && method !== "POST" ? [`-X ${method}`] : []),
    ...(needed.some(({ in: where }) => where === "header") ? ['-H "idempotency-key: $(uuidgen)"'] : []),
    ...(body === undefined ? [] : [`--json '${JSON.stringify(exampleOf(body))}'`]),
  ];
  return parts.join(" ");
}

function exampleOf({ examples = [], enum: words = [], required = [], properties = {} }: Schema): unknown {
  const fields = required
    .filter((name) => properties[name]?.["default"] === undefined)
    .map((name) => [name, exampleOf(properties[name] ?? {})]);
  return examples[0] ?? words[0] ?? Object.fromEntries(fields);
}

/** docs/reference/api.d.ts: the types that programs import from `syncline/api`. */
export function apiTypes(description: Description): string {
  const named = Object.entries(description.components.schemas).map(
    ([name, schema]) => `export type ${name} = ${typeOf(schema)};\n`,
  );
  const operations = operationsOf(description).map(({ path, method, operation }) => {
    const { operationId, summary, parameters, requestBody, responses } = operation;
    const given = (["path", "query", "header"] as const).map((where) => {
      const own = parameters.filter((one) => one.in === where);
      const properties = Object.fromEntries(own.map(({ name, schema }) => [name, schema]));
      const required = own.filter((one) => one.required).map(({ name }) => name);
      return `${where}: ${typeOf({ type: "object", properties, required })}`;
    });
    const body = typeOf(requestBody?.content[json]?.schema ?? { type: "undefined" });
    const answer = typeOf(responses["200"]?.content?.[json]?.schema ?? {});
    return `  /** ${summary}. */\n  ${operationId}: { method: "${method}"; url: "${path}"; ${given.join("; ")}; body: ${body}; answer: ${answer} };\n`;
  });
  return `// Written from openapi.json by \`npm run docs:api\`.\n\n${named.join("")}\n/** Each operation: what it takes, and what it answers. */\nexport interface Operations {\n${operations.join("")}}\n`;
}

/** A schema as a type of TypeScript, in one line. A field with a default may be left out. */
function typeOf(schema: Schema): string {
  const { $ref, type, enum: words, anyOf, items, properties, required = [], const: only } = schema;
  if ($ref !== undefined) return $ref.split("/").at(-1) ?? "";
  if (anyOf !== undefined) return anyOf.map(typeOf).join(" | ");
  if (words !== undefined || only !== undefined)
    return (words ?? [only]).map((word) => JSON.stringify(word)).join(" | ");
  if (type === "array") return `Array<${typeOf(items ?? {})}>`;
  if (type !== "object") return [type ?? "unknown"].flat().join(" | ").replaceAll("integer", "number");
  const rest = schema["additionalProperties"];
  if (properties === undefined) return `Record<string, ${typeof rest === "object" ? typeOf({ ...rest }) : "unknown"}>`;
  const fields = Object.entries(properties).map(([name, one]) => {
    const isNeeded = required.includes(name) && one["default"] === undefined;
    return `${/^\w+$/.test(name) ? name : JSON.stringify(name)}${isNeeded ? "" : "?"}: ${typeOf(one)}`;
  });
  return fields.length === 0 ? "Record<string, never>" : `{ ${fields.join("; ")} }`;
}
