// One trial notice to one sink, by the code that delivers real ones, without a queue. Called by
// `syncline sinks test`.
import { randomUUID } from "node:crypto";
import type { PolicySet, SinkSettings } from "../config/policy-set.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import type { Notice } from "../model/notice.ts";
import { withContext } from "./notices.ts";
import { createSink } from "./process-delivery.ts";
import type { Receipt } from "./sink.ts";

/** What was sent, and what came of it. `cure`: what to do; only where it was not taken. */
interface Trial {
  readonly notice: Notice;
  readonly receipt: Receipt;
  readonly durationMs: number;
  readonly cure?: string;
}

/** What a trial needs. `actor`: who sends it; the message names them. */
interface TrialOptions {
  readonly set: PolicySet;
  readonly actor: string;
  readonly signal: AbortSignal;
  readonly clock?: Clock;
}

/** Sends one trial notice, once. */
export async function sendTrial(
  settings: SinkSettings,
  { set, actor, signal, clock = systemClock }: TrialOptions,
): Promise<Trial> {
  const notice = withContext(trialNotice(settings.name, actor, clock.nowMs()), set);
  const sink = createSink(settings);
  const startedMs = clock.monotonicMs();
  try {
    const receipt = await sink.deliver(notice, signal);
    const durationMs = Math.round(clock.monotonicMs() - startedMs);
    return { notice, receipt, durationMs, ...(receipt.type === "taken" ? {} : { cure: cureOf(receipt, settings) }) };
  } finally {
    sink.close();
  }
}

function trialNotice(sink: string, actor: string, nowMs: number): Notice {
  return {
    v: 1,
    id: `trial-${randomUUID()}`,
    kind: "trial",
    at: new Date(nowMs).toISOString(),
    orderKey: `trial:${sink}`,
    policy: null,
    service: null,
    title: `trial notice for the sink ${sink}, sent by ${actor}: nothing has happened`,
    data: { sink, detail: "`syncline sinks test` sent it; no policy is concerned" },
  };
}

function cureOf(receipt: Exclude<Receipt, { type: "taken" }>, { to }: SinkSettings): string {
  if (receipt.type === "stopped") return "it was stopped before an answer came: send it again";
  if (to.kind === "file") return "let path be in a folder that exists and that this user may write to";
  const { status } = receipt;
  if (to.kind === "email") {
    if (status === undefined) return "check email.host, port and startTls, and the way to it";
    if (receipt.type === "refused") return "check email.from and email.to: the server refuses one of them";
    if (status >= 500) return "check email.user and email.passwordFile, and what the server demands of senders";
    return "the server takes no mail now: send it again later";
  }
  if (status === undefined)
    return "check url and the way to it; a slow receiver needs a longer webhook.timeout, or answers before it works";
  if (status === 401 || status === 403)
    return to.secretFile === undefined
      ? "the receiver refuses the address: make a new one for this chat, or set webhook.secretFile if it checks signatures"
      : "the receiver refuses the signature or address: give it the secret of webhook.secretFile, and check its clock";
  if (status === 404 || status === 410 || (status >= 300 && status < 400))
    return "check url: the receiver does not take notices at this address (any more)";
  if (status === 429) return "the receiver takes no more now: send it again later";
  if (status >= 500) return "look into the receiver's own log: it failed to take the notice";
  return `check webhook.format (${to.format}): does the receiver expect cloudevents, slack or teams?`;
}
