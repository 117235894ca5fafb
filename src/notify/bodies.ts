// Renders a notice: a CloudEvents 1.0 event, or by chat.ts a message for Slack or Teams. Pure: the
// same notice gives the same text on every retry and replica. Documented in docs/notifications.md.
import type { WebhookSettings } from "../config/policy-set.ts";
import type { Notice } from "../model/notice.ts";
import { slackText, teamsMessage } from "./chat.ts";

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
