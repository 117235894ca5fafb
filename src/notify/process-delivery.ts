// One sink, and one try of a delivery to it: from the sink's receipt to what the queue does next.
// It logs once that a sink fails, and once that it works again. The consumers of the sinks' queues
// call it.
import type { SinkSettings } from "../config/policy-set.ts";
import { type Backoff, backoffMs, type Clock, systemClock } from "../core/clock.ts";
import type { EventLog } from "../core/event-log.ts";
import type { Delivery, DeliveryTry, DeliveryVerdict } from "../model/notice.ts";
import { createEmailSink } from "./email.ts";
import { createFileSink } from "./file-sink.ts";
import type { Receipt, Sink } from "./sink.ts";
import { createWebhook } from "./webhook.ts";

/** How a try ended, for metrics. */
type DeliveryResult = "delivered" | "refused" | "retried" | "given-up";

/** A sink in force, with its settings. */
export interface SinkInForce {
  readonly settings: SinkSettings;
  readonly sink: Sink;
}

/** What a try needs. */
export interface DeliveryOptions {
  /** Asked at each try: changed settings apply at once. undefined: the sink is not configured. */
  readonly current: () => SinkInForce | undefined;
  /** Whether another owner holds the prefix, or may: its notices are not delivered here. */
  readonly mayBeForeign?: (() => boolean) | undefined;
  readonly name: string;
  readonly log: EventLog;
  readonly onDelivery?: ((result: DeliveryResult) => void) | undefined;
  readonly clock?: Pick<Clock, "nowMs"> | undefined;
}

/** A receiver that comes back is noticed within a minute. */
const backoff: Backoff = { baseMs: 1_000, capMs: 60_000 };
/** The shortest wait between two tries. */
const waitMsMin = 250;
const unconfiguredAgainMs = 10_000;
/** A hold is one of the whole queue, of its rightful workers, too. */
const foreignAgainMs = 1_000;

/** Makes the function that does one try. */
export function createDeliveryProcess(
  options: DeliveryOptions,
): (delivery: Delivery, attempt: DeliveryTry) => Promise<DeliveryVerdict> {
  const { name, log, clock = systemClock } = options;
  let isFailing = false;
  return async (delivery, { tries, signal }) => {
    if (options.mayBeForeign?.() === true)
      return { verdict: "later", reason: "another owner may hold the prefix", afterMs: foreignAgainMs };
    const inForce = options.current();
    if (inForce === undefined) return { verdict: "later", reason: "not configured", afterMs: unconfiguredAgainMs };
    const receipt = await inForce.sink.deliver(delivery.notice, signal);
    const ageMs = clock.nowMs() - delivery.sinceMs;
    const verdict = judgeReceipt(receipt, { tries, ageMs, giveUpAfterMs: inForce.settings.giveUpAfterMs });
    const result = resultOf(receipt, verdict);
    if (result !== undefined) options.onDelivery?.(result);
    if (receipt.type === "later" && !isFailing) {
      isFailing = true;
      log.warn("sink.failing", { sink: name, reason: receipt.reason });
    }
    if (receipt.type === "taken" && receipt.refusedFor !== undefined)
      log.warn("sink.recipients-refused", { sink: name, notice: delivery.notice.id, refused: receipt.refusedFor });
    if (receipt.type === "taken" && isFailing) {
      isFailing = false;
      log.info("sink.recovered", { sink: name });
    }
    // The wait of a sink that was changed meanwhile does not hold up the one in force.
    const next = options.current();
    const isReplaced = next !== undefined && next !== inForce;
    return verdict.verdict === "later" && isReplaced ? { ...verdict, afterMs: waitMsMin } : verdict;
  };
}

/** What is known of a delivery beside the receipt. `ageMs`: since it was handed over. */
export interface DeliveryProgress {
  readonly tries: number;
  readonly ageMs: number;
  readonly giveUpAfterMs: number;
}

/** Decides what the queue does after a receipt. The receiver's own wait is kept. */
export function judgeReceipt(
  receipt: Receipt,
  { tries, ageMs, giveUpAfterMs }: DeliveryProgress,
  random?: () => number,
): DeliveryVerdict {
  if (receipt.type === "taken") return { verdict: "delivered" };
  if (receipt.type === "stopped") return { verdict: "back" };
  if (receipt.type === "refused") return { verdict: "failed", reason: receipt.reason, isRefused: true };
  if (ageMs >= giveUpAfterMs) return { verdict: "failed", reason: `given up after ${tries} tries: ${receipt.reason}` };
  const afterMs = Math.max(waitMsMin, receipt.afterMs ?? backoffMs(backoff, tries, random));
  return { verdict: "later", reason: receipt.reason, afterMs };
}

function resultOf(receipt: Receipt, verdict: DeliveryVerdict): DeliveryResult | undefined {
  if (verdict.verdict === "back") return undefined;
  if (verdict.verdict === "later") return "retried";
  if (verdict.verdict === "delivered") return "delivered";
  return receipt.type === "refused" ? "refused" : "given-up";
}

/** Makes a sink. It opens neither file nor socket yet, so it cannot fail. */
export function createSink({ to }: Pick<SinkSettings, "to">): Sink {
  if (to.kind === "email") return createEmailSink(to);
  return to.kind === "webhook" ? createWebhook(to) : createFileSink(to);
}
