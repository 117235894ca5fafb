// Makes the sink that its settings describe. Called by app/running-sinks.ts and trial.ts.
import type { SinkSettings } from "../config/policy-set.ts";
import { createEmailSink } from "./email.ts";
import { createFileSink } from "./file-sink.ts";
import type { Sink } from "./sink.ts";
import { createWebhook } from "./webhook.ts";

/** Makes a sink. It opens neither file nor socket yet, so it cannot fail. */
export function createSink({ to }: Pick<SinkSettings, "to">): Sink {
  if (to.kind === "email") return createEmailSink(to);
  return to.kind === "webhook" ? createWebhook(to) : createFileSink(to);
}
