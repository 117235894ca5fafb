// Reads scheduled jobs: CronJobs of Kubernetes manifests, and the lines of a crontab. Of each the
// schedule, zone, command and variables. Pure; called by import-command.ts.

import * as z from "zod";
import { formatDuration, parseDuration } from "../../core/duration.ts";
import { defined } from "../../core/json.ts";
import { shellWord } from "../../core/plain-text.ts";
import type { ReadJobs, ScheduledJob } from "./job-policies.ts";

const keyRef = z.looseObject({ name: z.string(), key: z.string() });
const container = z.looseObject({
  name: z.string().default(""),
  image: z.string().default(""),
  command: z.array(z.string()).default([]),
  args: z.array(z.string()).default([]),
  env: z
    .array(
      z.looseObject({
        name: z.string(),
        value: z.coerce.string().optional(),
        valueFrom: z.looseObject({ secretKeyRef: keyRef.optional(), configMapKeyRef: keyRef.optional() }).optional(),
      }),
    )
    .default([]),
  envFrom: z.array(z.unknown()).default([]),
});
const podSpec = z.looseObject({
  containers: z.array(container).min(1),
  initContainers: z.array(container).default([]),
});
const cronJob = z.looseObject({
  metadata: z.looseObject({ name: z.string(), namespace: z.string().optional() }),
  spec: z.looseObject({
    schedule: z.string(),
    timeZone: z.string().optional(),
    concurrencyPolicy: z.enum(["Allow", "Forbid", "Replace"]).optional(),
    startingDeadlineSeconds: z.int().nonnegative().nullish(),
    suspend: z.boolean().nullish(),
    jobTemplate: z.looseObject({
      spec: z.looseObject({
        backoffLimit: z.int().nullish(),
        activeDeadlineSeconds: z.int().nullish(),
        template: z.looseObject({ spec: podSpec }),
      }),
    }),
  }),
});
const manifest = z.looseObject({ kind: z.string(), items: z.array(z.unknown()).optional() });

const windowMsMax = parseDuration("31d");
const shell = /(^|\/)(ba|da|z|k)?sh$/;

/** The jobs of these manifests, and which of them are no CronJob, or none that can be read. */
export function readCronJobs(documents: readonly unknown[], name: string): ReadJobs {
  const jobs: ScheduledJob[] = [];
  const notes: string[] = [];
  let leftOut = 0;
  const others = new Map<string, number>();
  const read = (document: unknown, where: string): void => {
    const { data: head } = manifest.safeParse(document);
    if (head === undefined) notes.push(`${where}: no Kubernetes object (it has no kind): left out`);
    else if (/List$/.test(head.kind))
      for (const [index, item] of (head.items ?? []).entries()) read(item, `${where}, item ${index + 1}`);
    else if (head.kind !== "CronJob") others.set(head.kind, (others.get(head.kind) ?? 0) + 1);
    else {
      const { data, error } = cronJob.safeParse(document);
      if (data !== undefined) jobs.push(toJob(data));
      else {
        const [issue] = error.issues;
        leftOut += 1;
        notes.push(`${where}: this CronJob cannot be read (${issue?.path.join(".")}: ${issue?.message}): left out`);
      }
    }
  };
  for (const [index, document] of documents.entries()) read(document, `${name}, document ${index + 1}`);
  for (const [kind, count] of others) notes.push(`${name}: ${count} of kind ${kind}: no CronJob, left out`);
  return { jobs, notes, leftOut };
}

type CronJob = z.infer<typeof cronJob>;
type Container = z.infer<typeof container>;

function toJob({ metadata, spec }: CronJob): ScheduledJob {
  const { name, namespace } = metadata;
  const { spec: pod } = spec.jobTemplate.spec.template;
  const containers = [...pod.initContainers, ...pod.containers];
  const catchUpWindow = windowOf(spec.startingDeadlineSeconds ?? undefined);
  return {
    where: `CronJob ${namespace === undefined ? "" : `${namespace}/`}${name}`,
    name,
    schedule: spec.schedule,
    timezone: spec.timeZone,
    scripts: containers.map((one) => ({ command: commandOf(one), variables: variablesOf(one) })),
    settings: defined({ overlap: spec.concurrencyPolicy && overlaps[spec.concurrencyPolicy], catchUpWindow }),
    isSuspended: spec.suspend === true,
    notes: [...notesOf(spec), ...containers.flatMap(containerNotes)],
  };
}

const overlaps = { Allow: "allow", Forbid: "skip", Replace: "skip" } as const;

/** The tool that an image runs when its container names no command. */
const imageTools: Readonly<Record<string, string>> = { curl: "curl", wget: "wget", httpie: "http" };

function toolOf({ image, command }: Container): string | undefined {
  return command.length > 0 ? undefined : imageTools[image.replace(/^.*\//, "").replace(/[:@].*$/, "")];
}

function commandOf(one: Container): string {
  const tool = toolOf(one);
  const words = [...(tool === undefined ? one.command : [tool]), ...one.args];
  const [program = "", option = "", script] = words;
  if (shell.test(program) && /^-\w*c$/.test(option) && script !== undefined) return script;
  return words.map(shellWord).join(" ");
}

function variablesOf({ env }: Container): Map<string, string> {
  return new Map(env.flatMap(({ name, value }) => (value === undefined ? [] : [[name, value] as const])));
}

/** `startingDeadlineSeconds` within what `catchUpWindow` takes. */
function windowOf(seconds: number | undefined): string | undefined {
  if (seconds === undefined) return undefined;
  return formatDuration(Math.min(Math.max(seconds * 1_000, 1_000), windowMsMax));
}

function notesOf(spec: CronJob["spec"]): string[] {
  const { concurrencyPolicy, startingDeadlineSeconds: deadline } = spec;
  const { backoffLimit, activeDeadlineSeconds: activeSeconds } = spec.jobTemplate.spec;
  const isCut = typeof deadline === "number" && (deadline < 1 || deadline * 1_000 > windowMsMax);
  return [
    ...(concurrencyPolicy === "Replace"
      ? ["concurrencyPolicy Replace: a run cannot be stopped here, so a slot is skipped while the one before goes on"]
      : []),
    ...(concurrencyPolicy === undefined
      ? ["no concurrencyPolicy (Allow): a slot is skipped here while a run goes on; `overlap: allow` starts both"]
      : []),
    ...(typeof deadline === "number"
      ? []
      : [
          "no startingDeadlineSeconds: a missed time started however late; here within 1h, which `catchUpWindow` changes",
        ]),
    ...(isCut ? [`startingDeadlineSeconds ${deadline} is not within 1 s and 31 d: the nearest is taken`] : []),
    ...((backoffLimit ?? 0) > 0
      ? [`backoffLimit ${backoffLimit}: a start whose answer is lost is never repeated blindly here`]
      : []),
    ...(typeof activeSeconds === "number"
      ? [`activeDeadlineSeconds ${activeSeconds} ended the request; follow.deadline ends the following of a run`]
      : []),
  ];
}

function containerNotes(one: Container): string[] {
  const { name, image, env, envFrom } = one;
  const tool = toolOf(one);
  const refs = env.flatMap(({ name: variable, valueFrom }) => {
    const { secretKeyRef: secret, configMapKeyRef: map } = valueFrom ?? {};
    if (secret !== undefined) return [`${variable} is the key ${secret.key} of the secret ${secret.name}`];
    return map === undefined ? [] : [`${variable} is the key ${map.key} of the ConfigMap ${map.name}`];
  });
  return [
    ...(tool === undefined ? [] : [`its image ${image} is taken to run ${tool}`]),
    ...refs,
    ...(envFrom.length === 0 ? [] : [`the variables of envFrom of the container ${name} are not known`]),
  ];
}

const names = "JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC|SUN|MON|TUE|WED|THU|FRI|SAT";
const field = String.raw`(?:[-\d*/,~?LW#]|${names})+`;
const line = new RegExp(String.raw`^(@\w+|${field}(?:\s+${field}){4})\s+(.*)$`, "i");

const unlikeCron =
  "a crontab starts a job beside one that goes on, and never later than its time: here a slot is skipped while a run goes on (`overlap: allow` starts both), and a late one starts within 1h (`catchUp: none` does not)";
const bothDays =
  "cron starts it only when day of month and weekday both fit, and here either is enough; `1#1` is the first Monday";

/** Whether cron wants both days to fit: one of the fields begins with a star, and goes on. */
function wantsBothDays(schedule: string): boolean {
  const [, , day = "*", , weekday = "*"] = schedule.split(/\s+/);
  return day !== "*" && weekday !== "*" && (day.startsWith("*") || weekday.startsWith("*"));
}

/** The jobs of a crontab, and what of it says nothing about one. `name`: what to call the file. */
export function readCrontab(text: string, name: string): ReadJobs {
  const variables = new Map<string, string>();
  const jobs: ScheduledJob[] = [];
  const notes: string[] = [];
  let leftOut = 0;
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const written = raw.trim();
    const where = `${name}:${index + 1}`;
    if (written === "" || written.startsWith("#")) continue;
    const [, variable, value = ""] = /^([A-Za-z_]\w*)\s*=\s*(.*)$/.exec(written) ?? [];
    if (variable !== undefined) {
      variables.set(variable, value.replace(/^(['"])(.*)\1$/, "$2"));
      if (variable === "TZ") notes.push(`${where}: TZ is the zone of the commands; cron reads CRON_TZ for the times`);
      if (variable === "MAILTO" && value !== "") notes.push(`${where}: MAILTO is not kept: notify tells people`);
      continue;
    }
    const [, schedule, command] = line.exec(written) ?? [];
    if (schedule === undefined || command === undefined) {
      leftOut += 1;
      notes.push(`${where}: no line of a crontab: left out`);
    } else {
      const [text = ""] = /^(?:\\.|[^%\\])*/s.exec(command) ?? [];
      if (text !== command) notes.push(`${where}: an unescaped % ends the command, as cron reads it`);
      jobs.push({
        ...{ where, schedule, timezone: variables.get("CRON_TZ") },
        ...{ name: undefined, settings: {}, isSuspended: false, notes: [] },
        scripts: [{ command: text.replaceAll("\\%", "%"), variables: new Map(variables) }],
        ...(wantsBothDays(schedule) ? { unlike: bothDays } : {}),
      });
    }
  }
  if (jobs.length > 0) notes.push(`${name}: ${unlikeCron}`);
  return { jobs, notes, leftOut };
}
