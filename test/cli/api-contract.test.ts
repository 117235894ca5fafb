// The API keeps what docs/reference/openapi.json says: a real process answers requests that are
// generated from it, and each answer has a status, a type and a body that it lists.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { expect, it } from "vitest";
import { createToken } from "../../src/web/tokens.ts";
import { type ApiRequest, apiRequests, description } from "../support/api-requests.ts";
import { commandFixture } from "../support/command-fixture.ts";
import { folderForTest } from "../support/folder.ts";
import { smallStory, writeStory } from "../support/web-story.ts";

const names = Object.keys(smallStory);
const more = "repository: HR, labels: { team: finance }, run: { syncJobs: [42] }, schedule: { every: 1h }";
const policies = names.map((name) => `  - { name: ${name}, service: main, ${more} }\n`);
const fixture = commandFixture(
  `${policies.join("")}  - { name: named, service: main, apply: { syncJobs: { 4: { name: Contracts } } } }`,
);

const ajv = new Ajv2020({ strict: false, allErrors: true });
formats.default(ajv);
ajv.addSchema({ $id: "api", ...(closed(description) as object) });

/** The description, in which answers have no field that it does not name. */
function closed(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(closed);
  if (typeof part !== "object" || part === null) return part;
  const inner = Object.fromEntries(Object.entries(part).map(([name, value]) => [name, closed(value)]));
  return "properties" in part && "type" in part ? { additionalProperties: false, ...inner } : inner;
}

/** Why an answer is not what the description lists; undefined: it is. */
function wrongIn(
  { operation, method, path, isWrong }: ApiRequest,
  status: number,
  type: string,
  text: string,
): string | undefined {
  const content = operation.responses[status]?.content;
  if (content === undefined) return `status ${status} is not listed: ${text}`;
  if (status === 500 || isWrong !== (status === 400)) return `status ${status}: ${text}`;
  const [media = ""] = type.split(";");
  if (content[media] === undefined) return `type ${type} is not listed`;
  if (!media.endsWith("json") || media.includes("ndjson")) return undefined;
  const place = ["paths", path, method, "responses", `${status}`, "content", media, "schema"];
  const pointer = place.map((part) => encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1"))).join("/");
  const validate = ajv.getSchema(`api#/${pointer}`);
  if (validate === undefined) return `no schema at ${pointer}`;
  return validate(JSON.parse(text)) ? undefined : `${ajv.errorsText(validate.errors)}: ${text}`;
}

it("answers each generated request as openapi.json says", async () => {
  const { prefix } = fixture.redis;
  // As many callers as keep below what each of them may ask in a second.
  const callers = Array.from({ length: 60 }, (_, index) =>
    createToken({ name: `caller${index}`, scope: "admin", services: [] }),
  );
  const file = join(folderForTest(), "web-tokens");
  writeFileSync(file, callers.map(({ line }) => line).join("\n"));
  await fixture.inStore(prefix, (store) => writeStory(store, smallStory));
  const web = await fixture.serve(prefix, "--roles", "web", "--web-port", "0", "--web-tokens", file);
  const { url } = await web.until(({ event }) => event === "web.listening");
  const wrong: string[] = [];
  const done = new Set<string>();
  const linked = new Set<string>();
  let asked = 0;
  const run = await fetch(`${url}api/v1/policies/invoices/runs`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${callers[0]?.token}`,
      "content-type": "application/json",
      "idempotency-key": "in-flight",
    },
    body: '{"reason":"to be cancelled"}',
  });
  const [id]: string[] = JSON.parse(await run.text()).tasks;
  const requests = apiRequests({ id, list: "conflictDetails" });
  for (const request of requests) {
    const { operation, method, path, headers, body, about } = request;
    const { token } = callers[Math.floor(asked / 9) % callers.length] ?? {};
    asked += 1;
    const authorization = `Bearer ${token}`;
    const answer = await fetch(`${url}${path.slice(1)}`, {
      method: method.toUpperCase(),
      headers: { authorization, ...headers },
      ...(body === undefined ? {} : { body }),
    });
    const text = await answer.text();
    if (answer.status === 200) done.add(operation.operationId);
    const template = Object.entries(description.paths).find(([, methods]) => methods[method] === operation)?.[0] ?? "";
    const found = wrongIn(
      { ...request, path: template },
      answer.status,
      answer.headers.get("content-type") ?? "",
      text,
    );
    if (found !== undefined) wrong.push(`${about}: ${found.slice(0, 400)}`);
    const [, next] = /^<\/(.*)>; rel="next"$/.exec(answer.headers.get("link") ?? "") ?? [];
    if (next === undefined) continue;
    linked.add(operation.operationId);
    const { status } = await fetch(`${url}${next}`, { headers: { authorization } });
    if (status !== 200) wrong.push(`${about}: its Link leads to ${status}`);
  }
  expect(wrong).toEqual([]);
  const all = Object.values(description.paths).flatMap((methods) =>
    Object.values(methods).map(({ operationId }) => operationId),
  );
  expect(all.filter((id) => !done.has(id))).toEqual([]);
  expect([...linked]).toContain("listOutcomes");
  expect(requests.length).toBeGreaterThan(all.length * 10);
  // The examples of docs/reference/api.md: this installation has what most of them name.
  const page = readFileSync(new URL("../../docs/reference/api.md", import.meta.url), "utf8");
  const examples = [...page.matchAll(/^call .*"\$API(\/[^"]+)".*$/gm)];
  const answers = examples.map(async ([line, path], index) => {
    const body = /--json '(.*)'$/.exec(line)?.[1];
    const answer = await fetch(`${url}api/v1${path}`, {
      method: /-X (\w+)/.exec(line)?.[1] ?? (body === undefined ? "GET" : "POST"),
      headers: {
        authorization: `Bearer ${callers[index]?.token}`,
        ...(body !== undefined && { "content-type": "application/json" }),
        ...(line.includes("idempotency-key") && { "idempotency-key": crypto.randomUUID() }),
      },
      ...(body !== undefined && { body }),
    });
    return [line, [200, 404, 409].includes(answer.status) ? "" : await answer.text()];
  });
  expect((await Promise.all(answers)).filter(([, wrong]) => wrong !== "")).toEqual([]);
  expect(examples).toHaveLength(all.length);
});
