// Normalises a sink: absolute paths, defaults filled in. Called by normalise.ts.
import { dirname, resolve } from "node:path";
import { parseDuration } from "../core/duration.ts";
import { policyDefaults } from "./defaults.ts";
import type { FileSinkSettings, SinkSettings, WebhookSettings } from "./policy-set.ts";
import { policyLimits } from "./rules/policy-limits.ts";
import type { SinkInput } from "./schema/sink.ts";

const unitBytes = { KB: 1_000, MB: 1_000_000, GB: 1_000_000_000 } as const;

/** Normalises one sink. `file`: the policy file that paths are relative to. */
export function toSink(name: string, input: SinkInput, file: string): SinkSettings {
  const at = (path: string) => resolve(dirname(file), path);
  return {
    name,
    to: toTarget(input, at),
    giveUpAfterMs: toMs(input.giveUpAfter) ?? policyDefaults.sinkGiveUpAfterMs,
    queueMax: input.queueMax ?? policyLimits.sinkQueueMax,
    ...(input.items === undefined ? {} : { items: [...new Set(input.items)].sort() }),
  };
}

function toTarget({ webhook, file }: SinkInput, at: (path: string) => string): WebhookSettings | FileSinkSettings {
  if (webhook !== undefined) {
    const { url, secretFile, previousSecretFile, format, timeout } = webhook;
    return {
      kind: "webhook",
      url,
      secretFile: secretFile === undefined ? undefined : at(secretFile),
      previousSecretFile: previousSecretFile === undefined ? undefined : at(previousSecretFile),
      format: format ?? policyDefaults.sinkFormat,
      timeoutMs: toMs(timeout) ?? policyDefaults.sinkTimeoutMs,
    };
  }
  if (file === undefined) throw new Error("a sink without webhook and file passed the checks");
  return {
    kind: "file",
    path: at(file.path),
    bytesMax: file.maxSize === undefined ? policyDefaults.sinkFileBytesMax : toBytes(file.maxSize),
    filesMax: file.maxFiles ?? policyDefaults.sinkFilesMax,
  };
}

function toMs(duration: string | undefined): number | undefined {
  return duration === undefined ? undefined : parseDuration(duration);
}

function toBytes(size: string): number {
  const unit = size.endsWith("KB") ? "KB" : size.endsWith("MB") ? "MB" : "GB";
  return Number(size.slice(0, -2)) * unitBytes[unit];
}
