// What the exchanges of one sandbox share, and its own paths under `/_sandbox`: ledger, request
// counts, faults, approvals, conflicts. They are NOT part of the service's interface, and require
// the token, too. Called by exchange.ts.
import type { IncomingMessage } from "node:http";
import { UsageError } from "../core/errors.ts";
import { isJsonObject } from "../core/json.ts";
import type { Target } from "./address.ts";
import type { World } from "./call.ts";
import { createChance } from "./chance.ts";
import { type Fault, FaultPlan, faultsMax, parseFault } from "./faults.ts";
import type { Ledger } from "./ledger.ts";
import { errorReply, jsonReply, Refusal, type Reply } from "./reply.ts";
import { clearApprovals, clearConflicts, settleRuns } from "./runs.ts";

/** The state that all exchanges of one sandbox share. */
export interface SandboxContext {
  readonly world: World;
  readonly ledger: Ledger;
  /** Replaced when faults are set anew. */
  faults: FaultPlan;
  /** Aborts when the sandbox stops, and ends all waits. */
  readonly signal: AbortSignal;
  /** Origin of this sandbox, for a request without a usable Host header. */
  origin: string;
}

/** Answers a request to `/_sandbox/…`. @throws Refusal 400 on a body that cannot be read. */
export function answerControl(
  context: SandboxContext,
  request: IncomingMessage,
  { target, body }: { readonly target: Target; readonly body: string | undefined },
): Reply {
  const { store, settings } = context.world;
  switch (`${request.method} ${target.segments.slice(1).join("/")}`) {
    case "GET ledger":
      return jsonReply({ value: context.ledger.entries() });
    case "GET requests":
      return jsonReply(context.ledger.requests());
    case "GET faults":
      return jsonReply({ value: context.faults.counts() });
    case "POST faults":
      replaceFaults(context, readFaults(body));
      return jsonReply({ value: context.faults.counts() });
    case "POST approvals/clear":
    case "POST conflicts/clear": {
      // End due runs first, so that the ends of blocked runs can be told from them.
      settleRuns(store, settings, settings.clock.nowMs());
      const clear = target.segments[1] === "approvals" ? clearApprovals : clearConflicts;
      return jsonReply({ cleared: clear(store, target.parameters.get("repository") ?? undefined) });
    }
    default:
      return errorReply(
        404,
        "The sandbox has GET ledger, requests, faults and POST faults, approvals/clear, conflicts/clear.",
      );
  }
}

/** Replaces the faults; counting starts anew. */
export function replaceFaults(context: SandboxContext, faults: readonly Fault[]): void {
  context.faults = new FaultPlan(faults, createChance(context.world.settings.seed));
}

function readFaults(body: string | undefined): readonly Fault[] {
  const usage = 'The body must be {"faults": ["latency,ms=500", …]}';
  let value: unknown;
  try {
    value = JSON.parse(body ?? "");
  } catch {
    throw new Refusal(400, `${usage}: it is not JSON.`);
  }
  const texts: unknown = isJsonObject(value) ? value["faults"] : undefined;
  if (!Array.isArray(texts) || texts.length > faultsMax) throw new Refusal(400, `${usage}, at most ${faultsMax}.`);
  return texts.map((text: unknown) => {
    if (typeof text !== "string") throw new Refusal(400, `${usage}: a fault is a text.`);
    try {
      return parseFault(text);
    } catch (error) {
      if (error instanceof UsageError) throw new Refusal(400, error.message);
      throw error;
    }
  });
}
