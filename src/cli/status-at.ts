// `syncline status --at 06:00`: had everything succeeded by then that was due since midnight? Each
// policy by the clock of its own zone. Called by status.ts.
import type { Policy } from "../config/policy-set.ts";
import { UsageError } from "../core/errors.ts";
import { showInstant, toIso } from "../core/instant.ts";
import { counted } from "../core/plain-text.ts";
import { type PolicyAt, readStatusAt } from "../queries/status-at.ts";
import type { Span } from "../store/history.ts";
import { redisTimeMs, type Store } from "../store/redis.ts";
import type { CommandIo } from "./command-io.ts";
import { toTable } from "./table.ts";
import { parseTime, readTime } from "./time-argument.ts";

/** Judges the policies and prints it; exit code 1 when one had not succeeded. */
export async function showStatusAt(
  policies: readonly Policy[],
  { at, limit, json }: { readonly at: string; readonly limit: number; readonly json?: true },
  { store, io }: { readonly store: Store; readonly io: CommandIo },
): Promise<void> {
  const spans = spansOf(at, await redisTimeMs(store));
  const found = await readStatusAt(policies, spans, store);
  const behind = found.filter(({ verdict }) => verdict === "not");
  io.exitCode = behind.length === 0 ? 0 : 1;
  if (json) return io.out(toJson(found));
  io.out(sumOf(found));
  if (behind.length > 0) io.out(toTable(["not succeeded", "why"], behind.slice(0, limit).map(toRow), io));
  if (behind.length > limit) io.out(`and ${behind.length - limit} more: --limit shows more, --json all`);
}

/** From the midnight before a time up to it, once for each zone. @throws UsageError */
function spansOf(at: string, nowMs: number): (policy: Policy) => Span {
  const known = new Map<string, Span>();
  return ({ closed: { timezone } }) => {
    const before = known.get(timezone);
    if (before !== undefined) return before;
    const context = { nowMs, timezone, side: "past" } as const;
    const toMs = parseTime(at, "--at", context);
    if (toMs > nowMs)
      throw new UsageError(
        `--at ${at} is still to come in ${timezone}: \`syncline plan\` shows what is due until then`,
      );
    const date = showInstant(toMs - 1, timezone).slice(0, 10);
    const span = { fromMs: readTime(date, context)?.nearMs ?? toMs - 86_400_000, toMs };
    known.set(timezone, span);
    return span;
  };
}

function sumOf(found: readonly PolicyAt[]): string {
  const times = new Map(found.map(({ policy, span }) => [span.toMs, showInstant(span.toMs, policy.closed.timezone)]));
  const due = found.filter(({ verdict }) => verdict !== "nothing-due");
  const good = due.filter(({ verdict }) => verdict === "succeeded").length;
  const rest = found.length - due.length;
  const others = rest === 0 ? "" : `; ${counted(rest, "policy", "policies")} had nothing due`;
  const [first = ""] = times.values();
  const when = times.size === 1 ? first : `${first} and the same time in other zones`;
  return `at ${when}, since the midnight before: ${good} of ${counted(due.length, "policy", "policies")} due had succeeded${others}`;
}

function toRow({ policy, why }: PolicyAt): string[] {
  return [policy.name, why];
}

function toJson(found: readonly PolicyAt[]): string {
  const policies = found.map(({ policy, span, verdict, why }) => ({
    ...{ policy: policy.name, from: toIso(span.fromMs), at: toIso(span.toMs), verdict, why },
  }));
  return JSON.stringify({ v: 1, ok: found.every(({ verdict }) => verdict !== "not"), policies });
}
