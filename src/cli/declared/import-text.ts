// Renders existing objects as a policy file that declares them. Pure; called by import.ts.

import type { ServiceSettings } from "../../config/policy-set.ts";
import { policyLimits } from "../../config/rules/policy-limits.ts";
import type { DeclaredKind } from "../../core/declared-object.ts";
import { escapeControls } from "../../service/error-body.ts";

/** One existing object; `name`: undefined where the service shows none. */
export interface Existing {
  readonly kind: Extract<DeclaredKind, "syncJob" | "docMask">;
  readonly id: string;
  readonly name: string | null | undefined;
}

/** What goes into the file. */
export interface ImportText {
  readonly settings: ServiceSettings;
  readonly repository: string | undefined;
  readonly existing: readonly Existing[];
  /** What could not be read, for people. */
  readonly problems: readonly string[];
  /** False: the service is described in another file of the same folder. */
  readonly withService: boolean;
}

/** One policy holds two kinds, and at most this many objects. */
const objectsOfPolicy = policyLimits.objectsMax;

/** The file, line by line. */
export function importToYaml({ settings, repository, existing, problems, withService }: ImportText): string[] {
  const usable = existing.filter(isUsable);
  const left = existing.filter((one) => !isUsable(one));
  const where = `${settings.name}${repository === undefined ? "" : `, repository ${repository}`}`;
  return [
    comment(
      `what exists at ${where}: keep what shall stay so, and remove the rest; \`syncline plan --state\` shows what differs`,
    ),
    comment("drive-type and site-type targets are not here: no operation reads them (driveTargets, siteTargets)"),
    ...problems.map((problem) => comment(problem)),
    ...left.map(({ kind, id }) =>
      comment(`${kind} ${id} is left out: it has no name, or an id or a name that is too long`),
    ),
    "apiVersion: syncline/v1",
    ...(withService ? ["services:", `  ${settings.name}: ${flow(serviceOf(settings))}`] : []),
    usable.length === 0 ? "policies: []" : "policies:",
    ...batches(usable).flatMap((batch, index) => policyLines(batch, { settings, repository, number: index + 1 })),
  ];
}

function policyLines(
  objects: readonly Existing[],
  { settings, repository, number }: Pick<ImportText, "settings" | "repository"> & { readonly number: number },
): string[] {
  return [
    `  - name: ${policyName(settings.name, repository, number)}`,
    `    service: ${settings.name}`,
    ...(repository === undefined ? [] : [`    repository: ${quoted(repository)}`]),
    "    # without a schedule it is applied by `syncline apply` only",
    `    # schedule: { cron: "0 5 * * *" }`,
    "    apply:",
    ...kindLines(
      "syncJobs",
      objects.filter(({ kind }) => kind === "syncJob"),
    ),
    ...kindLines(
      "docMasks",
      objects.filter(({ kind }) => kind === "docMask"),
    ),
  ];
}

function kindLines(key: string, objects: readonly Existing[]): string[] {
  if (objects.length === 0) return [];
  return [`      ${key}:`, ...objects.map(({ id, name }) => `        ${id}: { name: ${quoted(name ?? "")} }`)];
}

function batches(objects: readonly Existing[]): Existing[][] {
  const found: Existing[][] = [];
  for (let start = 0; start < objects.length; start += objectsOfPolicy)
    found.push(objects.slice(start, start + objectsOfPolicy));
  return found;
}

function isUsable({ id, name }: Existing): boolean {
  return /^(0|[1-9]\d{0,14})$/.test(id) && !!name && name.length <= policyLimits.textCharactersMax;
}

function policyName(service: string, repository: string | undefined, number: number): string {
  const words = `${service}-${repository ?? ""}`.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  return `${words.slice(0, 45).replace(/-+$/, "")}-declared${number === 1 ? "" : `-${number}`}`;
}

/** The service as the policies describe it, as far as a call needs. */
function serviceOf({ baseUrl, token, tls, pathForm }: ServiceSettings): object {
  return { baseUrl, token: loginOf(token), ...(tls === undefined ? {} : { tls }), pathForm };
}

function loginOf(token: ServiceSettings["token"]): object {
  if (token.kind === "file") return { file: token.path };
  if (token.kind === "env") return { env: token.variable };
  const { kind: _, ...oauth2 } = token;
  return { oauth2 };
}

/** JSON is YAML; a text with `${` would be read as a variable. */
function flow(value: object): string {
  return JSON.stringify(value, (_, item: unknown) => (typeof item === "string" ? withoutVariables(item) : item));
}

function quoted(text: string): string {
  return JSON.stringify(withoutVariables(text)).replaceAll(
    /[\u007f-\u009f\u2028\u2029\ufeff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function withoutVariables(text: string): string {
  return text.replaceAll("${", () => "$${");
}

function comment(text: string): string {
  return `# ${escapeControls(text)}`;
}
