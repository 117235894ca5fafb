// Makes a sink from its settings. Called by app/running-sinks.ts.
import type { SinkSettings } from "../config/policy-set.ts";
import { createFileSink } from "./file-sink.ts";
import type { Sink } from "./sink.ts";
import { createWebhook } from "./webhook.ts";

/** Makes a sink. It opens neither file nor socket yet, so it cannot fail. */
export function createSink({ to }: SinkSettings): Sink {
  return to.kind === "webhook" ? createWebhook(to) : createFileSink(to);
}
