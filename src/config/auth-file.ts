// The file behind --web-auth: which identity provider the role web trusts, and what its users may
// do. Read by web/access.ts again and again, and by `syncline doctor`.
import { z } from "zod";
import { UsageError } from "../core/errors.ts";
import { isLoopback } from "../core/loopback.ts";
import { scopes } from "../model/scope.ts";
import { formatProblem } from "./problem.ts";
import { labelsSchema, textSchema } from "./schema/primitives.ts";
import { wordsFor } from "./schema-problems.ts";
import type { Variables } from "./settings.ts";
import { readYamlFile } from "./yaml/yaml-file.ts";

const bytesMax = 65_536;
const grantsMax = 200;

const urlSchema = textSchema.refine(
  isSafeUrl,
  "must be an https:// URL without credentials and fragment (http:// only of this machine)",
);

const jwtSchema = z.strictObject({
  issuer: urlSchema,
  audience: textSchema,
  keysUrl: urlSchema.exactOptional(),
  header: z
    .string()
    .regex(/^[A-Za-z0-9-]{1,64}$/, "must be the name of a header, such as Cf-Access-Jwt-Assertion")
    .exactOptional(),
});

const oidcSchema = z.strictObject({
  issuer: urlSchema,
  clientId: textSchema,
  clientSecretFile: textSchema.exactOptional(),
  auth: z.enum(["basic", "post"]).default("basic"),
  scopes: z.array(textSchema).max(20).default(["openid", "profile", "email"]),
  publicUrl: urlSchema.refine((url) => !URL.canParse(url) || new URL(url).pathname === "/", "must have no path"),
});

const grantSchema = z.strictObject({
  claim: textSchema,
  value: textSchema,
  scope: z.enum(scopes),
  services: z.array(textSchema).min(1).max(100).exactOptional(),
  labels: labelsSchema
    .refine((labels) => Object.keys(labels).length > 0, "needs a label, or leave it out")
    .exactOptional(),
});

const authSchema = z
  .strictObject({
    jwt: jwtSchema.exactOptional(),
    oidc: oidcSchema.exactOptional(),
    caFile: textSchema.exactOptional(),
    name: textSchema.default("sub"),
    grants: z.array(grantSchema).min(1).max(grantsMax),
  })
  .refine(({ jwt, oidc }) => jwt !== undefined || oidc !== undefined, "needs jwt, oidc or both");

/** Which providers are trusted, and what they say gives. `name`: the claim that names a person. */
export type AuthSettings = Readonly<z.output<typeof authSchema>>;

/** Signing in on the page. */
export type OidcSettings = NonNullable<AuthSettings["oidc"]>;

/** Reads the text of the file. @throws UsageError that shows every problem with its place. */
export function parseAuthFile(file: string, text: string, variables: Variables): AuthSettings {
  if (text.length > bytesMax) throw new UsageError(`${file} is over 64 KiB: that is no --web-auth file`);
  if (text.trim() === "")
    throw new UsageError(`${file} is empty: docs/dashboard.md shows what stands in a --web-auth file`);
  const yaml = readYamlFile(file, text, variables);
  const result = authSchema.safeParse(yaml.value, { error: wordsFor });
  if (yaml.problems.length === 0 && result.success) return result.data;
  const wrong = (result.error?.issues ?? []).flatMap(({ path, message, ...issue }) => {
    const place = path.filter((part) => typeof part !== "symbol");
    if (issue.code !== "unrecognized_keys") return yaml.problemAt(place, [place.join("."), message].join(" ").trim());
    return issue.keys.map((key) => yaml.problemAt([...place, key], `there is no key "${key}" here`, { place: "key" }));
  });
  const problems = [...yaml.problems, ...(yaml.value === undefined ? [] : wrong)];
  const shown = problems.flatMap((problem) => (problem === undefined ? [] : [formatProblem(problem, false)]));
  throw new UsageError(`${file} cannot be used:\n\n${shown.join("\n\n")}`);
}

function isSafeUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password, hash } = new URL(text);
  const isSafe = protocol === "https:" || (protocol === "http:" && isLoopback(hostname));
  return isSafe && username === "" && password === "" && hash === "";
}
