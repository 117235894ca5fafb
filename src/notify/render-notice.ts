// Renders a notice: a CloudEvents 1.0 event for programs; for people a text for Slack, a card for
// Teams, an e-mail. Those show the title, the detail, what it is about, when in the policy's zone
// and UTC, and the link. Pure: the same notice gives the same text on every retry and replica.
// Documented in docs/notifications.md.
import type { WebhookSettings } from "../config/policy-set.ts";
import { showInstant } from "../core/instant.ts";
import { counted, cutText, toPlainText } from "../core/plain-text.ts";
import type { Notice } from "../model/notice.ts";
import { subjectOf } from "./notices.ts";

/** A body and its media type. */
export interface Body {
  readonly contentType: string;
  readonly text: string;
}

/** Renders a notice in a format. */
export function toBody(notice: Notice, format: WebhookSettings["format"]): Body {
  switch (format) {
    case "cloudevents":
      return { contentType: "application/cloudevents+json; charset=utf-8", text: toCloudEvent(notice) };
    case "slack":
      return { contentType: "application/json; charset=utf-8", text: JSON.stringify({ text: slackText(notice) }) };
    case "teams":
      return { contentType: "application/json; charset=utf-8", text: JSON.stringify(teamsMessage(notice)) };
  }
}

/** A notice as a CloudEvents 1.0 event, one line of JSON. The event has the notice's id. */
export function toCloudEvent({ id, kind, at, orderKey, policy, service, title, data, link }: Notice): string {
  return JSON.stringify({
    specversion: "1.0",
    id,
    source: service === null ? "/syncline" : `/syncline/services/${service}`,
    type: `syncline.${kind}`,
    ...(policy === null ? {} : { subject: policy }),
    time: at,
    partitionkey: orderKey,
    datacontenttype: "application/json",
    data: { ...data, title, policy, service, ...(link === undefined ? {} : { link }) },
  });
}

const detailCharactersMax = 1_000;
const otherLinesMax = 10;

/** The parts of a message for people: Slack, Teams or e-mail. */
interface Message {
  readonly title: string;
  readonly detail: string | undefined;
  /** What the notice is about, one by one: items, sync jobs or policies. */
  readonly lines: readonly string[];
  readonly facts: Readonly<Record<string, string>>;
  readonly link: string | undefined;
}

function toMessage({ kind, title, data, policy, service, at, timezone, link }: Notice): Message {
  const { detail, slot, repository, leftOut, unnamed, owner } = data;
  const facts = {
    ...(policy === null ? {} : { policy }),
    ...(typeof owner === "string" ? { owner } : {}),
    ...(service === null ? {} : { service }),
    ...(typeof repository === "string" ? { repository } : {}),
    // The title of a digest says when it was due, if that was not just now.
    ...(typeof slot === "string" && kind !== "digest" ? { slot: showTime(slot, timezone) } : {}),
    // A digest keeps to one zone.
    time: kind === "digest" ? showInstant(Date.parse(at), timezone) : showTime(at, timezone),
  };
  const { all, count } = linesOf(data);
  // A digest is cut where it is made.
  const shown = kind === "digest" ? all : all.slice(0, otherLinesMax);
  const total = typeof count === "number" ? Math.max(count, all.length) : all.length;
  const more = total > shown.length ? [`and ${total - shown.length} more`] : [];
  if (typeof unnamed === "number") more.push(`and ${counted(unnamed, "new item")} that no notice names`);
  if (typeof leftOut === "number") more.push(`and ${counted(leftOut, "earlier notice")} that this one stands for`);
  return {
    title,
    detail: typeof detail === "string" && detail !== "" ? cutText(detail, detailCharactersMax) : undefined,
    lines: [...shown, ...more],
    facts,
    link,
  };
}

/** `2026-11-21 03:30:00 CET (02:30:00Z)`; with another day in UTC its date, too. */
function showTime(at: string, timezone: string | undefined): string {
  const atMs = Date.parse(at);
  const utc = showInstant(atMs);
  if (timezone === undefined || timezone === "UTC") return utc;
  const local = showInstant(atMs, timezone);
  return `${local} (${local.slice(0, 10) === utc.slice(0, 10) ? utc.slice(11) : utc})`;
}

/** What the data names, and how many there are of it, where the data says so. */
function linesOf(data: Notice["data"]): { readonly all: readonly string[]; readonly count?: unknown } {
  const { items, offending, offendingItems, targets, targetsCount, policies, policiesCount, lines } = data;
  if (Array.isArray(lines)) return { all: lines.map(String) };
  if (Array.isArray(items)) return { all: items.map(describeItem) };
  if (Array.isArray(offendingItems)) return { all: offendingItems.map(String), count: offending };
  // One target stands in the title.
  if (Array.isArray(targets) && targets.length > 1)
    return { all: targets.map((target) => subjectOf(String(target))), count: targetsCount };
  return Array.isArray(policies) ? { all: policies.map(String), count: policiesCount } : { all: [] };
}

function describeItem(item: unknown): string {
  if (typeof item !== "object" || item === null) return String(item);
  const { id, label, syncJobId, finished, succeeded }: Readonly<Record<string, unknown>> = { ...item };
  const name = label === undefined ? `${id}` : `${label} (${id})`;
  const end = typeof succeeded === "boolean" ? [succeeded ? "succeeded" : "failed"] : finished ? ["finished"] : [];
  return [name, ...(syncJobId === undefined ? [] : [`sync job ${syncJobId}`]), ...end].join(", ");
}

/** The text for Slack, which reads `&`, `<` and `>` as markup. */
function slackText(notice: Notice): string {
  const { title, detail, lines, facts, link } = toMessage(notice);
  const { policy, owner, service, repository, slot, time } = facts;
  const about = [
    policy,
    ...(owner === undefined ? [] : [`owner ${owner}`]),
    service,
    repository,
    ...(slot === undefined ? [] : [`slot ${slot}`]),
    time,
  ];
  const text = [
    title,
    ...(detail === undefined ? [] : [detail]),
    ...lines.map((line) => `• ${line}`),
    about.filter((part) => part !== undefined).join(" · "),
  ];
  return [
    ...text.map(escapeSlack),
    ...(link === undefined ? [] : [`<${escapeSlack(link).replaceAll("|", "%7C")}|look>`]),
  ].join("\n");
}

/** The text of an e-mail, without the title: that is the subject. */
export function mailText(notice: Notice): string {
  const { detail, lines, facts, link } = toMessage(notice);
  const about = [...Object.entries(facts), ...(link === undefined ? [] : [["look", link] as const])];
  const parts = [
    detail === undefined ? [] : [detail],
    lines.map((line) => `- ${line}`),
    about.map(([name, value]) => `${name}: ${value}`),
  ];
  const plain = (line: string) => toPlainText(line, detailCharactersMax);
  return `${parts.flatMap((part) => (part.length === 0 ? [] : [part.map(plain).join("\n")])).join("\n\n")}\n`;
}

function escapeSlack(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** The message that a Teams workflow ("when a webhook request is received") posts as a card. */
function teamsMessage(notice: Notice): object {
  const { title, detail, lines, facts, link } = toMessage(notice);
  return {
    type: "message",
    attachments: [
      {
        contentType: "application/vnd.microsoft.card.adaptive",
        contentUrl: null,
        content: {
          $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
          type: "AdaptiveCard",
          version: "1.4",
          body: [
            plainBlock(title, { weight: "Bolder" }),
            ...(detail === undefined ? [] : [plainBlock(detail)]),
            ...lines.map((line) => plainBlock(`• ${line}`)),
            { type: "FactSet", facts: Object.entries(facts).map(([name, value]) => ({ title: name, value })) },
          ],
          ...(link === undefined ? {} : { actions: [{ type: "Action.OpenUrl", title: "Look", url: link }] }),
        },
      },
    ],
  };
}

/** A text block would read markdown: an item's label could show a link. */
function plainBlock(text: string, style: object = {}): object {
  return { type: "RichTextBlock", inlines: [{ type: "TextRun", text, ...style }] };
}
