// The pages that change something: each shows what will happen in a form, and its POST does it and
// leads to where the effect is seen. What is done is in ../acts.ts. Added by routes.ts.
import type { Context, Hono } from "hono";
import { html } from "hono/html";
import { KeyTaken, StillAtWork } from "../../actions/once.ts";
import type { Policy } from "../../config/policy-set.ts";
import { parseDuration } from "../../core/duration.ts";
import { UsageError } from "../../core/errors.ts";
import { isJsonObject } from "../../core/json.ts";
import { counted } from "../../core/plain-text.ts";
import { canonicalJson, hashText } from "../../core/stable-hash.ts";
import { type Change, describeReason } from "../../model/change.ts";
import { mayRunBeside } from "../../model/outcome.ts";
import {
  isAbout,
  noteCharactersMax,
  type Pause,
  type PauseSubject,
  pauseId,
  showSubject,
  subjectKey,
} from "../../model/pause.ts";
import { parseTaskId } from "../../model/task.ts";
import { describePolicy } from "../../queries/attention.ts";
import { slotsWithin } from "../../queries/coming-slots.ts";
import { needsPerson, type PolicyLine } from "../../queries/policy-lines.ts";
import { seenOutcome } from "../../queries/query-context.ts";
import { ownSoughtMax, readLine, readNowMs, readPausesInForce } from "../../queries/records.ts";
import { readRunningOf } from "../../queries/running.ts";
import { runBesideWords, subjectWords, taskWords } from "../../queries/task-words.ts";
import {
  acknowledgePolicy,
  cancelTask,
  checkMayPause,
  checkMayResume,
  discardFailed,
  endPolicyAcknowledgement,
  failedOf,
  isGone,
  type KeyedActing,
  pauseSubject,
  replayFailed,
  resumeSubject,
  runOne,
  runPolicy,
  type StartResult,
  taskInFlight,
} from "../acts.ts";
import { hasSession } from "../admission.ts";
import { subjectOf } from "../api/change-operations.ts";
import { policyOf } from "../api/operation.ts";
import { checkScope, checkWhole } from "../identity.ts";
import { badRequest, conflict, limitBody, notFound, type ProblemDetails, useProblem, WebError } from "../problem.ts";
import type { WebEnv } from "../web-env.ts";
import { page } from "./layout.ts";
import { besideMark, type Html, mark, tag } from "./marks.ts";
import {
  actionText,
  fullTime,
  options,
  pauseWord,
  policyLink,
  policyPath,
  table,
  taskPath,
  untilWords,
  when,
} from "./parts.ts";

/** The fields of a form that was sent. */
type Form = Readonly<Record<string, string>>;

/** What a form says before its reason and its button. */
interface View {
  readonly title: string;
  readonly lead: Html;
  readonly fields?: Html;
}

/**
 * One page. `subject`: what the address names. `form`: what was sent and refused, or nothing.
 * `back`: where the subject is seen, and what was done unless `act` answers another place.
 */
interface ActPage {
  readonly verb: string;
  readonly back: (subject: string) => string;
  readonly view: (acting: KeyedActing, subject: string, form: Form) => Promise<View>;
  // biome-ignore lint/suspicious/noConfusingVoidType: most acts answer nothing
  readonly act: (acting: KeyedActing, subject: string, form: Form) => Promise<Done | void>;
}

/** `requestId`: of the request that did it, when that was an earlier one. */
interface Done {
  readonly to: string;
  readonly requestId?: string;
}

const formBytesMax = 16_384;
const previewMs = 86_400_000;
const previewShown = 5;
const durations: Readonly<Record<string, string>> = {
  "1h": "for 1 hour",
  "4h": "for 4 hours",
  "8h": "for 8 hours",
  "1d": "for a day",
  "7d": "for a week",
  "": "never: until it is resumed",
};

const actPages: Readonly<Record<string, ActPage>> = {
  "/pause": {
    verb: "Pause",
    back: subjectPath,
    view: async (acting, target, form) => {
      const subject = subjectOf(target);
      checkMayPause(acting, subject);
      const own = acting.context.set.policies.filter((policy) => isAbout(subject, policy));
      const { ends, shown } = await preview(acting, own);
      const met = await pauseToReplace(acting, subject);
      const held =
        met === undefined
          ? ""
          : html`<p class="notice">${mark("paused")} by ${met.actor} ${untilWords(met, "UTC")}: ${met.note}. The new pause takes its place.</p>`;
      const count =
        subject.scope !== "all"
          ? ""
          : html`<label>How many policies this pauses, as a number <input name="count" inputmode="numeric" autocomplete="off" required></label><p class="quiet">It is ${counted(own.length, "policy", "policies")}.</p>`;
      return {
        title: `Pause ${showSubject(subject)}`,
        lead: html`${held}<p>A slot that comes due meanwhile ends as skipped, with your reason. What is queued or runs goes on.</p>${shown}`,
        fields: html`<input type="hidden" name="instead" value="${met === undefined ? "" : pauseId(met)}"><label>Ends by itself <select name="for">${options(ends, form["for"] ?? "4h")}</select></label>${count}`,
      };
    },
    act: async (acting, target, form) => {
      const subject = subjectOf(target);
      const { length } = acting.context.set.policies;
      if (subject.scope === "all" && form["count"]?.trim() !== `${length}`)
        throw badRequest([{ pointer: "/count", detail: `type ${length}, the number of policies` }]);
      const time = form["for"] ?? "";
      if (!Object.hasOwn(durations, time)) throw badRequest([{ pointer: "/for", detail: "choose one of the ends" }]);
      const untilMs = time === "" ? null : (await readNowMs(acting.context)) + parseDuration(time);
      const reason = reasonIn(form);
      const met = await pauseToReplace(acting, subject);
      // The same form, sent twice, has met its own.
      const isOwn = met?.actor === acting.caller.name && met.note === reason;
      if (met !== undefined && !isOwn && pauseId(met) !== form["instead"])
        throw conflict(`${met.actor} has paused it meanwhile: ${met.note}; send this again to take its place`);
      await pauseSubject(acting, subject, untilMs, reason);
    },
  },
  "/resume": {
    verb: "Resume",
    back: subjectPath,
    view: async (acting, target, form) => {
      const subject = subjectOf(target);
      await checkMayResume(acting, subject);
      const nowMs = await readNowMs(acting.context);
      const inForce = await readPausesInForce(acting.context);
      const [own = [], others = []] = [true, false].map((isOwn) =>
        inForce.filter((one) => (subjectKey(one) === subjectKey(subject)) === isOwn),
      );
      const words = own.map(
        (one) =>
          html`<p class="notice">${mark(pauseWord(one))} by ${one.actor} ${when(one.sinceMs, nowMs)}: ${one.note}</p>`,
      );
      const policies = acting.context.set.policies.filter((policy) => isAbout(subject, policy));
      const holding = others.filter((one) => policies.some((policy) => isAbout(one, policy)));
      const kept = holding.map(
        (one) =>
          html`<p class="notice">${mark(pauseWord(one), "goes on")}: ${showSubject(one)} is ${pauseWord(one)} by ${one.actor} ${when(one.sinceMs, nowMs)}: ${one.note}</p>`,
      );
      const isFree = !policies.every((policy) => holding.some((one) => isAbout(one, policy)));
      const starts =
        policies.length === 0
          ? "No policy is held by it now."
          : holding.length === 0
            ? "Its next slot starts again."
            : isFree
              ? "What no other pause holds starts again with its next slot."
              : "Nothing starts before that ends, too.";
      return {
        title: `Resume ${showSubject(subject)}`,
        lead: html`${words}${kept}<p>${starts} Those in between stay skipped.</p>`,
        fields: html`<input type="hidden" name="shown" value="${own.map(({ sinceMs }) => sinceMs).join(" ")}">${
          isFree
            ? html`<label class="tick"><input type="checkbox" name="catchUp" value="yes"${form["catchUp"] === "yes" ? html` checked` : ""}> Also start the newest skipped slot now, if it is not too old</label>`
            : ""
        }`,
      };
    },
    act: async (acting, target, form) => {
      const wish = { reason: reasonIn(form), catchUp: form["catchUp"] === "yes" };
      const subject = subjectOf(target);
      const shown = (form["shown"] ?? "").split(" ");
      const unseen = (await readPausesInForce(acting.context)).find(
        (one) => subjectKey(one) === subjectKey(subject) && !shown.includes(`${one.sinceMs}`),
      );
      if (unseen !== undefined)
        throw conflict(`${unseen.actor} has paused it meanwhile: ${unseen.note}; send this again to end that, too`);
      await resumeSubject(acting, subject, wish);
      // What is gone has no page.
      return { to: isGone(subject, acting.context) ? "/policies" : subjectPath(target) };
    },
  },
  "/run": {
    verb: "Run now",
    back: policyPath,
    view: viewRun,
    act: async (acting, name, form) =>
      startedAt(await runPolicy(acting, name, reasonIn(form)), `${policyPath(name)}/by-hand`),
  },
  "/run-sync-job": {
    verb: "Run now",
    back: () => "/by-hand",
    view: async ({ context: { set }, caller }, _, form) => {
      checkWhole(caller);
      return {
        title: "Run a sync job",
        lead: html`<p>For a sync job without a policy: it starts now, as the <code>defaults</code> of the policy files say.</p>`,
        fields: html`<label>Service <select name="service">${options([...set.services.keys()], form["service"])}</select></label>
<label>Repository, unless the service chooses <input name="repository" value="${form["repository"] ?? ""}" maxlength="200" autocomplete="off"></label>
<label>Number of the sync job <input name="syncJob" value="${form["syncJob"] ?? ""}" inputmode="numeric" maxlength="15" autocomplete="off" required></label>`,
      };
    },
    act: async (acting, _, { service = "", repository = "", syncJob = "", ...form }) => {
      if (!/^[1-9]\d{0,14}$/.test(syncJob))
        throw badRequest([{ pointer: "/syncJob", detail: "type the number of the sync job" }]);
      const place = { service, repository: repository.trim() || undefined, syncJob: Number(syncJob) };
      return startedAt(await runOne(acting, place, reasonIn(form)), "/by-hand");
    },
  },
  "/acknowledge": {
    verb: "Acknowledge",
    back: policyPath,
    view: async ({ context }, name) => {
      const line = await readLine(context, policyOf(context, name));
      const words = besideMark(line.health, describePolicy(line, await readNowMs(context)));
      return {
        title: `Acknowledge ${name}`,
        lead: html`<p class="state">${mark(line.health)} ${words}</p><p>It then stands below what is new, with your note, until it is well again or gets worse. Notices go on.</p>`,
        fields: html`<input type="hidden" name="shown" value="${troubleOf(line)}">`,
      };
    },
    act: async (acting, name, form) => {
      const reason = reasonIn(form);
      const line = await readLine(acting.context, policyOf(acting.context, name));
      if (needsPerson[line.health] && troubleOf(line) !== form["shown"])
        throw conflict("something else is wrong with it by now: look at it, then send this again");
      await acknowledgePolicy(acting, name, reason);
    },
  },
  "/unacknowledge": {
    verb: "Take back",
    back: policyPath,
    view: async ({ context }, name) => ({
      title: `Take back the acknowledgement of ${policyOf(context, name).name}`,
      lead: html`<p>It then stands among what needs a person again.</p>`,
    }),
    act: (acting, name, form) => endPolicyAcknowledgement(acting, name, reasonIn(form)),
  },
  "/replay": { verb: "Replay", back: taskPath, view: viewReplay, act: doReplay },
  "/discard": {
    verb: "Discard",
    back: taskPath,
    view: async (acting, id) => ({
      title: "Take off the failed list",
      lead: html`${await failedFacts(acting, id)}<p>It is not done over. Its outcome stays in the history.</p>`,
    }),
    act: async (acting, id, form) => {
      const { left } = await discardFailed(acting, { ids: [id] }, reasonIn(form));
      for (const { why } of left) throw conflict(why);
    },
  },
  "/cancel": {
    verb: "Cancel the task",
    back: taskPath,
    view: async ({ context }, id) => {
      const task = await taskInFlight(context, id);
      const words =
        task.kind === "apply"
          ? "What it has changed by now stays, and a step that is under way ends first. Its outcome tells what was changed."
          : "If nothing was sent yet, nothing is sent any more. If it was, Syncline stops to follow it: the service has no way to stop a run, so it goes on there, and the next slot may start another beside it.";
      return { title: `Cancel ${task.id}`, lead: html`<p>${words}</p>` };
    },
    act: async (acting, id, form) => void (await cancelTask(acting, id, reasonIn(form))),
  },
};

/** What is wrong with a policy, as a form that was shown remembers it. */
function troubleOf({ health, troubled }: PolicyLine): string {
  return hashText(canonicalJson([health, ...troubled.map(({ target }) => target).toSorted()]));
}

/** Adds the pages. */
export function addActPages(app: Hono<WebEnv>): void {
  for (const [path, one] of Object.entries(actPages)) {
    app.get(path, (c) => showForm(c, one));
    app.post(path, limitBody(formBytesMax), async (c) => {
      const sent = await c.req.parseBody().catch(() => ({}));
      const form = Object.fromEntries(
        Object.entries(sent).filter((pair): pair is [string, string] => typeof pair[1] === "string"),
      );
      try {
        const done = await one.act(actingOf(c, form["key"]), aboutOf(c), form);
        const own = c.get("requestId");
        const { to, requestId = own } = done ?? { to: one.back(aboutOf(c)) };
        const again = requestId === own ? "" : "&again=yes";
        return c.redirect(`${to}${to.includes("?") ? "&" : "?"}done=${requestId}${again}#done`, 303);
      } catch (error) {
        const wrong = wrongForm(error);
        if (wrong === undefined) throw error;
        c.set("problem", wrong);
        // Another key would make the same form a second start.
        const key = error instanceof StillAtWork || error instanceof KeyTaken ? form["key"] : undefined;
        return showForm(c, one, { form, wrong, key });
      }
    });
  }
}

const doneWords: Readonly<Record<string, string>> = {
  pause: "paused",
  resume: "resumed",
  run: "queued",
  replay: "queued again",
  cancel: "cancelled",
  discard: "taken off the failed list",
  acknowledge: "acknowledged",
  "acknowledge --end": "acknowledgement taken back",
};

/**
 * Says on the page where it is seen what was done, as it is recorded. `isAgain`: the form had been
 * sent before, and this is what was done then.
 */
export function doneLine(
  change: Change | undefined,
  { policies, isAgain }: { readonly policies: readonly Policy[]; readonly isAgain: boolean },
): Html {
  const line = (words: Html) => html`<p class="notice done" id="done" role="status" tabindex="-1">${words}</p>`;
  if (change === undefined)
    return line(html`None of the newest ${ownSoughtMax} changes of all is yours by this request.`);
  const { what, subject, at, isBegun } = change;
  const state = isBegun ? tag("doubt", "question", "not known") : mark("ok", doneWords[what] ?? what);
  const isUnderWay = what === "run" || what === "replay";
  const later = isUnderWay ? html`<noscript> Reload this page to see how it ends.</noscript>` : "";
  const again = isAgain
    ? html` This form had been sent before: it was started once, ${fullTime(Date.parse(at), "UTC")}. Open the form anew to start it again.`
    : "";
  return line(
    html`${state} ${subjectWords(subject, Date.parse(at), policies)}: ${describeReason(change)}${leftWords(change)}${cancelWords(change)}.${again}${later}`,
  );
}

const leftShown = 20;

/** The policies that a resume did not catch up. */
function leftWords({ what, after }: Change): string {
  if (what !== "resume" || !isJsonObject(after) || !Array.isArray(after["left"]) || after["left"].length === 0)
    return "";
  const shown = after["left"].slice(0, leftShown);
  const more = Number(after["leftCount"]) - shown.length;
  return `; not caught up, so run by hand what was skipped: ${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** What a cancelled task leaves behind. */
function cancelWords({ what, subject, before }: Change): string {
  if (what !== "cancel" || !isJsonObject(before)) return "";
  if (parseTaskId(subject.replace(/^task /, ""))?.kind === "apply") return "; what it has changed stays";
  if (before["state"] === "claimed") return "; nothing is sent any more";
  return before["state"] === "confirmed" ? "; it goes on at the service" : "; if the service took it, it goes on there";
}

/** What a person can correct in the form; undefined: another page says it. */
function wrongForm(error: unknown): ProblemDetails | undefined {
  if (error instanceof UsageError) return useProblem(error);
  return error instanceof WebError && [400, 409, 422].includes(error.problem.status) ? error.problem : undefined;
}

function actingOf(c: Context<WebEnv>, key = ""): KeyedActing {
  const acting = c.get("acting");
  checkScope(acting.caller, "operate");
  return { ...acting, key: key === "" ? c.get("requestId") : key.slice(0, 128) };
}

function aboutOf(c: Context<WebEnv>): string {
  return c.req.query("of") ?? "";
}

/** What a form is shown with. `key`: the one of its start, where that goes on. */
interface Shown {
  readonly form: Form;
  readonly wrong?: ProblemDetails;
  readonly key?: string | undefined;
}

async function showForm(c: Context<WebEnv>, one: ActPage, { form, wrong, key }: Shown = { form: {} }) {
  const { title, lead, fields = "" } = await one.view(actingOf(c), aboutOf(c), form);
  const said = wrong?.errors?.map(({ detail }) => detail).join("; ") ?? wrong?.detail;
  const state = key === undefined ? tag("bad", "cross", "not done") : tag("warn", "clock", "under way");
  const error = said === undefined ? "" : html`<p class="error" id="wrong" role="alert">${state} ${said}</p>`;
  const content = html`<section class="narrow"><h1>${title}</h1>${error}${lead}
<form method="post" action="${c.req.path}?of=${encodeURIComponent(aboutOf(c))}" class="stack">
<input type="hidden" name="key" value="${key ?? c.get("requestId")}">
${fields}
<label>Why, for the record of changes <input name="reason" value="${form["reason"] ?? ""}" required maxlength="${noteCharactersMax}" autocomplete="off"${said === undefined ? "" : html` aria-describedby="wrong"`}></label>
<p class="acts"><button>${one.verb}</button> <a href="${one.back(aboutOf(c))}">Change nothing</a></p>
</form></section>`;
  return c.html(
    page({ title, caller: c.get("caller"), canSignOut: hasSession(c), isStatic: true }, content),
    wrong?.status ?? 200,
  );
}

function reasonIn(form: Form): string {
  const reason = (form["reason"] ?? "").trim();
  if (reason !== "" && reason.length <= noteCharactersMax) return reason;
  throw badRequest([{ pointer: "/reason", detail: `say why, in at most ${noteCharactersMax} characters` }]);
}

function subjectPath(target: string): string {
  const { scope, name } = subjectOf(target);
  if (scope === "policy") return policyPath(name);
  if (scope === "service") return "/services";
  return scope === "label" ? `/policies?label=${encodeURIComponent(name)}` : "/policies";
}

/** The pause that another one would replace; a quarantine is none. */
async function pauseToReplace({ context }: KeyedActing, subject: PauseSubject): Promise<Pause | undefined> {
  const key = subjectKey(subject);
  return (await readPausesInForce(context)).find((one) => one.cause === undefined && subjectKey(one) === key);
}

/** The slots of the next 24 hours, and how many of them a pause up to each end skips. */
async function preview({ context }: KeyedActing, own: readonly Policy[]) {
  const nowMs = await readNowMs(context);
  const { slots, isCut } = slotsWithin(own, nowMs, nowMs + previewMs);
  const ends = Object.entries(durations).map(([time, words]): [string, string] => {
    const endMs = time === "" ? Number.POSITIVE_INFINITY : nowMs + parseDuration(time);
    const count = slots.filter(({ slotMs }) => slotMs < endMs).length;
    // What comes after the last one that was looked at is not known.
    const isKnown = endMs <= nowMs + previewMs && !(isCut && count === slots.length);
    return [time, isKnown ? `${words}: ${counted(count, "slot")}` : words];
  });
  const many = `${isCut ? "More than " : ""}${counted(slots.length, "slot")} of ${counted(own.length, "policy", "policies")}`;
  if (slots.length === 0 && !isCut) return { ends, shown: html`<p>No slot comes due in the next 24 hours.</p>` };
  const rows = slots
    .slice(0, previewShown)
    .map(({ policy, slotMs }) => [fullTime(slotMs, policy.timezone), policyLink(policy.name)]);
  const more =
    slots.length > previewShown
      ? html`<p class="quiet">and ${isCut ? "more than " : ""}${slots.length - previewShown} more</p>`
      : "";
  const all = table("Slots of the next 24 hours", ["due", "policy"], rows, { isBrief: true });
  return {
    ends,
    shown: html`<p>${many} ${slots.length === 1 ? "comes" : "come"} due in the next 24 hours; those before the end do not start:</p>${all}${more}`,
  };
}

async function viewRun({ context }: KeyedActing, name: string): Promise<View> {
  const policy = policyOf(context, name);
  const [running, { pauses }] = await Promise.all([readRunningOf(context, policy), readLine(context, policy)]);
  const now = running
    .slice(0, previewShown)
    .map(
      (one) =>
        html`<p class="notice">${tag("warn", "clock", "in flight")} ${one.name}: ${one.step}. ${runBesideWords(policy)}</p>`,
    );
  const paused =
    pauses.length === 0
      ? ""
      : html`<p class="notice">${mark("paused")} This run starts all the same. The pause stays.</p>`;
  return {
    title: `Run ${name} now`,
    lead: html`<p>Sends now: ${actionText(policy)}, at ${policy.service}${policy.repository === undefined ? "" : `, repository ${policy.repository}`}.</p>${paused}${now}`,
  };
}

/** The page of the only task, or the one that lists them. */
function startedAt({ tasks: [only, ...others], requestId }: StartResult, list: string): Done {
  return { to: only === undefined || others.length > 0 ? list : taskPath(only), requestId };
}

async function failedTask({ context }: KeyedActing, id: string) {
  const item = await failedOf(context, id);
  if (item?.type === "task") return item;
  throw notFound(`${id} is not on the failed list`, "it was replayed or discarded, or is too old");
}

async function failedFacts(acting: KeyedActing, id: string): Promise<Html> {
  const { outcome, isMended } = await failedTask(acting, id);
  const { status, policy, detail, slot } = seenOutcome(outcome, acting.context.view);
  const timezone = acting.context.set.policies.find(({ name }) => name === policy)?.timezone;
  const task = taskWords({ ...outcome, slotMs: Date.parse(slot) }, timezone, await readNowMs(acting.context));
  const well = isMended ? html` ${tag("good", "check", "well since")}` : "";
  return html`<p class="state">${mark(status)} ${policy}: ${task}: ${detail}${well}</p>`;
}

async function viewReplay(acting: KeyedActing, id: string): Promise<View> {
  const { outcome } = await failedTask(acting, id);
  const force = mayRunBeside(outcome)
    ? html`<p class="notice">${mark(outcome.status)} Nothing proves that its start did not run, so a second one may run beside it. Look at the service first.</p><label class="tick"><input type="checkbox" name="force" value="yes" required> Send it although it may have run</label>`
    : html``;
  const lead = html`${await failedFacts(acting, id)}<p>A new task by hand starts the same now.</p>`;
  return { title: "Replay", lead, fields: force };
}

async function doReplay(acting: KeyedActing, id: string, form: Form): Promise<Done> {
  const how = { reason: reasonIn(form), isForced: form["force"] === "yes" };
  const { done, left, requestId } = await replayFailed(acting, { ids: [id] }, how);
  for (const { why } of left) throw conflict(why);
  return { to: taskPath(done[0]?.into ?? id), requestId };
}
