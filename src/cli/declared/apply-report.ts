// Reports what `syncline apply` did, object by object, and its exit code. Pure; called by apply.ts.

import type { Applied } from "../../apply/apply-object.ts";
import { describeBlock, describeChanges, describePrecondition } from "../../apply/describe.ts";
import { objectName, showObject } from "../../core/declared-object.ts";
import { escapeControls } from "../../service/error-body.ts";
import { explainServiceError } from "../api-error.ts";
import type { ExitCode } from "../command-io.ts";
import { paint, toTable } from "../table.ts";
import type { ItemLook } from "./session.ts";
import type { ObjectState } from "./state-text.ts";

/**
 * One object: its inspection, and the result of applying it; undefined when nothing had to be sent.
 */
export type ItemReport = ItemLook & { readonly state: ObjectState; readonly applied: Applied | undefined };

/** Whether the object is now as declared. */
export function isWell(applied: Applied): boolean {
  return applied.end === "done" && applied.blocked.length === 0;
}

/** A table of all objects. */
export function reportToText(reports: readonly ItemReport[], colours: boolean): string {
  const rows = reports.map((report) => {
    const { outcome, detail } = outcomeOf(report);
    const isGood = outcome === "applied" || outcome === "nothing-to-do";
    const word = paint(isGood ? "green" : "red", outcome, colours);
    return [report.policy.name, showObject(report.object), word, escapeControls(detail)];
  });
  return toTable(["policy", "object", "outcome", ""], rows, colours);
}

/** The same for machines. */
export function reportToJson(reports: readonly ItemReport[]): object[] {
  return reports.map((report) => ({
    policy: report.policy.name,
    service: report.policy.service,
    repository: report.policy.repository ?? null,
    object: objectName(report.object),
    ...outcomeOf(report),
    changes: report.applied?.changes ?? [],
  }));
}

/** 3 when the service was unreachable for any object, else 1 unless all are as declared. */
export function exitCodeOf(reports: readonly ItemReport[]): ExitCode {
  const errors = reports.flatMap(({ error, applied }) => [
    ...(error === undefined ? [] : [error]),
    ...(applied?.end === "failed" ? [applied.error] : []),
  ]);
  if (errors.some((error) => explainServiceError(error).exitCode === 3)) return 3;
  return reports.every(({ state, applied }) => (applied === undefined ? state === "same" : isWell(applied))) ? 0 : 1;
}

function outcomeOf({ object, state, look, error, applied }: ItemReport): { outcome: string; detail: string } {
  if (applied === undefined) {
    if (state === "same") return { outcome: "nothing-to-do", detail: "" };
    if (state === "differs") return { outcome: "not-tried", detail: "stopped before its turn" };
    if (look?.state === "missing") return { outcome: "missing", detail: look.detail };
    if (look?.state === "found")
      return { outcome: "not-taken", detail: look.differences.map(describeBlock).join("; ") };
    return { outcome: "failed", detail: error?.message ?? "" };
  }
  const changed = describeChanges(applied.changes);
  const but = (why: string) => (changed === "" ? why : `${why}; but ${changed}`);
  switch (applied.end) {
    case "done":
      return applied.blocked.length === 0
        ? { outcome: changed === "" ? "nothing-to-do" : "applied", detail: changed }
        : { outcome: "not-taken", detail: but(applied.blocked.map(describeBlock).join("; ")) };
    case "missing":
      return { outcome: "missing", detail: but(applied.detail) };
    case "precondition":
      return { outcome: "failed", detail: but(describePrecondition(object, applied.detail)) };
    case "busy":
      return { outcome: "busy", detail: but(`${applied.holder} is running: apply again when it is over`) };
    case "failed":
      return { outcome: applied.isSent ? "unknown" : "failed", detail: but(applied.error.message) };
  }
}
