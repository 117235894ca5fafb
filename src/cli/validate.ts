// `syncline validate PATH…`: says everything that is wrong with policy files, and warns of what surely is not meant. Nothing is started.
// Each path is a set of its own, as `syncline serve PATH` would load it.
import { Command } from "commander";
import { loadPolicies } from "../config/load-policies.ts";
import type { PolicyChecks } from "../config/policy-checks.ts";
import { formatProblem, type Problem } from "../config/problem.ts";
import { systemClock } from "../core/clock.ts";
import type { CommandIo } from "./command-io.ts";
import { findWarnings, type PolicyWarning } from "./policy-warnings.ts";

/** The command `validate`. Exit code 2 when anything is wrong; warnings do not change it. */
export function validateCommand(io: CommandIo, checks: PolicyChecks): Command {
  return new Command("validate")
    .description("check policy files: all problems at once, with file, line and what to do")
    .argument("<path...>", "a policy file, or a folder of *.yaml and *.yml files")
    .option("--json", "print one JSON object")
    .action(async (paths: string[], options: { readonly json?: boolean }) => {
      const totals = await validateAll(paths, io, checks);
      if (totals.problems.length > 0) io.exitCode = 2;
      if (options.json) printJson(totals, io);
      else printText(totals, io);
    });
}

interface Totals {
  readonly problems: readonly Problem[];
  /** Of the paths without problems. */
  readonly warnings: readonly PolicyWarning[];
  readonly policies: number;
  readonly services: number;
  readonly files: number;
}

async function validateAll(paths: readonly string[], io: CommandIo, checks: PolicyChecks): Promise<Totals> {
  const problems: Problem[] = [];
  const warnings: PolicyWarning[] = [];
  const files = new Set<string>();
  let [policies, services] = [0, 0];
  for (const path of paths) {
    const loaded = await loadPolicies(path, { variables: io.settings.variables, checks });
    if (loaded.ok) {
      policies += loaded.set.policies.length;
      warnings.push(...findWarnings(loaded.set, systemClock.nowMs()));
      services += loaded.set.services.size;
      for (const file of loaded.set.files) files.add(file);
    } else {
      problems.push(...loaded.problems);
      for (const file of loaded.files) files.add(file);
    }
  }
  return { problems, warnings, policies, services, files: files.size };
}

function printText({ problems, warnings, policies, services, files }: Totals, io: CommandIo): void {
  for (const { file, line, policy, message, hint } of warnings)
    io.out(`${file}:${line}: warning: ${policy}: ${message}\n  hint: ${hint}`);
  for (const problem of problems) io.out(formatProblem(problem, io.colours));
  const inFiles = `in ${counted(files, "file", "files")}`;
  const warned = warnings.length === 0 ? "" : `, ${counted(warnings.length, "warning", "warnings")}`;
  if (problems.length > 0) io.out(`${counted(problems.length, "problem", "problems")}${warned} ${inFiles}`);
  else
    io.out(
      `OK${warned}: ${counted(policies, "policy", "policies")}, ${counted(services, "service", "services")} ${inFiles}`,
    );
}

function printJson({ problems, warnings }: Totals, io: CommandIo): void {
  const listed = problems.map(({ file, line, column, message, hint }) => ({ file, line, column, message, hint }));
  io.out(JSON.stringify({ ok: problems.length === 0, problems: listed, warnings }, undefined, 2));
}

function counted(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}
