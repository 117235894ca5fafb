// Parses the service's answers into checked values. Every function throws WrongShape, which call.ts
// turns into a ServiceError of kind `contract`. Pure.
import type { z } from "zod";
import { isJsonObject, type JsonObject, parseJson } from "../core/json.ts";
import { type Answer, WrongShape } from "./call.ts";
import { type Identity, identitiesSchema } from "./entities.ts";
import { isPage } from "./error-body.ts";

/** The most items of one page; the interface speaks of 100. Source: service-interface §8. */
const itemsPerPageMax = 10_000;
/** OData nests a handful of levels. Deeper JSON could exhaust the stack. */
const nestingMax = 64;

/** The items of one page, and its link as the service wrote it. */
export interface RawPage<Item> {
  readonly items: readonly Item[];
  readonly link: string | undefined;
  readonly contextUrl: string | undefined;
}

/** How a deletion ended: `true`, `false`, or 204 without a body. Source: service-interface §4.4. */
export type DeleteResult = "deleted" | "not-deleted" | "deleted-no-content";

/** Reads the entity after an update. A 204 shows no entity: `{}`. */
export function readUpdated<Schema extends z.ZodType>(answer: Answer, schema: Schema): z.infer<Schema> {
  if (answer.status === 204) {
    const { etag } = answer.headers;
    return check(schema, etag === undefined ? {} : { "@odata.etag": etag });
  }
  if (answer.status === 201) {
    throw new WrongShape("201 means that something new was created where an existing entity was meant");
  }
  return readEntity(answer, schema);
}

/** Reads a single entity. An ETag header is added to the entity as OData's `@odata.etag`. */
export function readEntity<Schema extends z.ZodType>(answer: Answer, schema: Schema): z.infer<Schema> {
  const body = readJson(answer);
  if (!isJsonObject(body)) throw new WrongShape("the body is not a JSON object");
  const { etag } = answer.headers;
  const entity = refuseErrorBody(body);
  return check(schema, etag === undefined || "@odata.etag" in entity ? entity : { ...entity, "@odata.etag": etag });
}

/** Reads a page: `{"value": […]}` or a bare array of items. Source: service-interface §2. */
export function readPage<Item>(answer: Answer, schema: z.ZodType<Item[]>): RawPage<Item> {
  const body = readJson(answer);
  if (Array.isArray(body)) return { items: readItems(body, schema), link: undefined, contextUrl: undefined };
  if (!isJsonObject(body)) throw new WrongShape("the body is neither a JSON object nor an array");
  const value = refuseErrorBody(body)["value"];
  refuseBrokenList(body);
  if (!Array.isArray(value)) throw new WrongShape('the body has no array "value"');
  const link = body["@odata.nextLink"] ?? body["@nextLink"] ?? undefined;
  if (link !== undefined && typeof link !== "string") throw new WrongShape('"@odata.nextLink" is not a text');
  const context = body["@odata.context"] ?? body["@context"];
  const contextUrl = typeof context === "string" ? context : undefined;
  return { items: readItems(value, schema), link, contextUrl };
}

/** Reads identities: an array, or one object or several in `value`. */
export function readIdentities(answer: Answer): readonly Identity[] {
  const body = readJson(answer);
  const value = isJsonObject(body) ? (refuseErrorBody(body)["value"] ?? body) : body;
  return readItems(Array.isArray(value) ? value : [value], identitiesSchema);
}

/** Reads the boolean of a deletion, bare or in `value`; 204 is a third answer. */
export function readDeletion(answer: Answer): DeleteResult {
  if (answer.status === 204) return "deleted-no-content";
  const text = answer.text.replace(/^\uFEFF/, "").trim();
  if (/^true$/i.test(text)) return "deleted";
  if (/^false$/i.test(text)) return "not-deleted";
  const body = readJson(answer);
  const value = isJsonObject(body) ? refuseErrorBody(body)["value"] : undefined;
  if (typeof value !== "boolean") throw new WrongShape("the body is neither true nor false");
  return value ? "deleted" : "not-deleted";
}

/** Checks the answer to run and activate: any 2xx is a success, except a proxy's login page. */
export function readNothing(answer: Answer): void {
  if (isPage(answer.headers.contentType, answer.text)) {
    throw new WrongShape("the body is an HTML page: a proxy or a login page answered instead of the service");
  }
  if (answer.status !== 204 && looksLikeError(answer.text)) throw new WrongShape("the body is an error object");
}

/** Reads the number of a $count request. */
export function readCount(answer: Answer): number {
  const count = parseCount(answer.text);
  if (count === undefined) throw new WrongShape("the body is not a count");
  return count;
}

function readJson(answer: Answer): unknown {
  if (answer.text.trim() === "") throw new WrongShape("the body is empty");
  const plain = answer.text.replace(/^\uFEFF/, "");
  try {
    const body: unknown = JSON.parse(plain);
    return hasLostDigits(body, nestingMax) ? JSON.parse(plain, keepDigits) : body;
  } catch (error) {
    if (error instanceof WrongShape) throw error;
    throw new WrongShape(`the body is not JSON (${answer.text.length} characters): cut short, or not from the service`);
  }
}

/** Whether a number in it was too large to be read exactly. Throws WrongShape below `levels`. */
function hasLostDigits(value: unknown, levels: number): boolean {
  if (typeof value === "number") return Math.abs(value) > Number.MAX_SAFE_INTEGER;
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) throw new WrongShape(`the body is nested deeper than ${nestingMax} levels`);
  const parts: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
  let found = false;
  for (const part of parts) found = hasLostDigits(part, levels - 1) || found;
  return found;
}

/** Refuses a list with an `error` beside its items: the server failed midway. */
function refuseBrokenList(body: JsonObject): void {
  if (hasError(body)) throw new WrongShape("the list ends in an error: the service failed while it was writing");
}

/** Refuses an error inside a 2xx answer: the server failed after it had sent the status. */
function refuseErrorBody(body: JsonObject): JsonObject {
  const others = Object.keys(body).filter((name) => name !== "error" && !name.startsWith("@"));
  if (hasError(body) && others.length === 0) throw new WrongShape("the body is an error object");
  return body;
}

/** Whether a body tells of an error, in an object or in a text. */
function hasError(body: JsonObject): boolean {
  const error = body["error"];
  return isJsonObject(error) || (typeof error === "string" && error !== "");
}

function looksLikeError(text: string): boolean {
  const body = text.trimStart().startsWith("{") ? parseJson(text) : undefined;
  return isJsonObject(body) && hasError(body);
}

function readItems<Item>(items: readonly unknown[], schema: z.ZodType<Item[]>): Item[] {
  if (items.length > itemsPerPageMax) {
    throw new WrongShape(`the page holds ${items.length} items, more than the ${itemsPerPageMax} that are read`);
  }
  return check(schema, items);
}

function check<Schema extends z.ZodType>(schema: Schema, value: unknown): z.infer<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const path = parsed.error.issues[0]?.path ?? [];
  const place = path.map((part) => (typeof part === "number" ? `item ${part}` : `field "${String(part)}"`)).join(", ");
  throw new WrongShape(`${place === "" ? "the body" : place} has the wrong type`);
}

/**
 * The number in a $count answer: bare or quoted digits, a JSON number, or an object with it. Its
 * shape is not shown (service-interface §4.2). Undefined for signs, fractions, exponents.
 */
export function parseCount(text: string): number | undefined {
  const plain = text.replace(/^\uFEFF/, "").trim();
  const bare = toCount(plain);
  if (bare !== undefined) return bare;
  // A JSON number with a sign, fraction or exponent is refused.
  if (!/^["{]/.test(plain)) return undefined;
  let parsed: unknown;
  try {
    parsed = JSON.parse(plain, keepDigits);
  } catch {
    return undefined;
  }
  if (!isJsonObject(parsed)) return toCount(parsed);
  const given = [parsed["@odata.count"], parsed["@count"], parsed["value"]].find((value) => value !== undefined);
  return toCount(given);
}

function toCount(value: unknown): number | undefined {
  if (typeof value === "number")
    return Number.isSafeInteger(value) && !Object.is(value, -0) && value >= 0 ? value : undefined;
  if (typeof value !== "string" || !/^\d{1,16}$/.test(value)) return undefined;
  const count = Number(value);
  return Number.isSafeInteger(count) ? count : undefined;
}

/** For JSON.parse: keeps the digits of large numbers. Slow. */
function keepDigits(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  const source = context?.source ?? "";
  return /^-?\d+$/.test(source) ? source : value;
}
