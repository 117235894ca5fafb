// The commands: names, descriptions, groups, and how each is loaded. A process loads only the
// command that it runs. Called by program.ts.
import type { Command } from "commander";
import { silentLog } from "../core/event-log.ts";
import type { ConnectService } from "./api.ts";
import type { CommandIo } from "./command-io.ts";

/** A command as `--help` lists it, and what makes it with all its options. */
export interface CommandEntry {
  readonly name: string;
  readonly description: string;
  readonly load: (io: CommandIo) => Promise<Command>;
}

const createService = async () => (await import("../app/create-service.ts")).createService;

/** How `api`, `discover` and `feed` reach a service of a policy file. */
async function connecting(io: CommandIo): Promise<ConnectService> {
  const { findService, loadPoliciesOrThrow } = await import("./shared-options.ts");
  const create = await createService();
  return async (target) => {
    const set = await loadPoliciesOrThrow(target.config, io);
    const settings = findService(set, target.service);
    return create(settings, { variables: io.settings.variables, log: target.log ?? silentLog });
  };
}

/** All commands, by the heading under which `--help` lists them. */
export const commandGroups: Readonly<Record<string, readonly CommandEntry[]>> = {
  "Follow policies:": [
    {
      name: "serve",
      description: "plan slots and work on tasks until stopped",
      load: async (io) => (await import("./serve.ts")).serveCommand(io),
    },
    {
      name: "run",
      description: "run a policy by hand, now",
      load: async (io) => (await import("./run-policy.ts")).runCommand(io),
    },
    {
      name: "pause",
      description: "skip the slots of a policy, a service or all from now on",
      load: async (io) => (await import("./pause.ts")).pauseCommand(io),
    },
    {
      name: "resume",
      description: "end a pause, or the quarantine of a policy",
      load: async (io) => (await import("./resume.ts")).resumeCommand(io),
    },
  ],
  "Did it run, did it end well, and why not:": [
    {
      name: "status",
      description:
        "which services are down or asked for patience, which policies are in quarantine, what waits for sinks",
      load: async (io) => (await import("./status.ts")).statusCommand(io),
    },
    {
      name: "history",
      description: "the outcomes of tasks, newest first",
      load: async (io) => (await import("./history.ts")).historyCommand(io),
    },
    {
      name: "explain",
      description: "why a policy ran at a time, why it did not, or why later",
      load: async (io) => (await import("./explain.ts")).explainCommand(io),
    },
    {
      name: "failed",
      description: "tasks and notices that failed",
      load: async (io) => (await import("./failed.ts")).failedCommand(io),
    },
    {
      name: "audit",
      description: "check that planned = recorded: no slot lost, none without an outcome",
      load: async (io) => (await import("./audit.ts")).auditCommand(io),
    },
    {
      name: "changes",
      description: "what was changed by hand: who, when, what and why, newest first",
      load: async (io) => (await import("./changes.ts")).changesCommand(io),
    },
    {
      name: "feed",
      description: "what was seen in a list of a service: tail, export",
      load: async (io) => (await import("./feed.ts")).feedCommand(io, await connecting(io)),
    },
  ],
  "Before it runs:": [
    {
      name: "validate",
      description: "check policy files: all problems at once, with file, line and what to do",
      load: async (io) => {
        const { validateCommand } = await import("./validate.ts");
        return validateCommand(io, (await import("./shared-options.ts")).policyChecks);
      },
    },
    {
      name: "doctor",
      description: "check everything that the policies need, and say what to do",
      load: async (io) => (await import("./doctor/doctor-command.ts")).doctorCommand(io),
    },
    {
      name: "plan",
      description: "the next slots of each policy, peaks and requests a day",
      load: async (io) => (await import("./plan.ts")).planCommand(io, await createService()),
    },
    {
      name: "simulate",
      description: "what policies would do between two times: overlaps, skipped and missed slots, peaks",
      load: async (io) => (await import("./simulate.ts")).simulateCommand(io),
    },
    {
      name: "discover",
      description: "sample the lists of a service, say what their fields look like, and propose a mapping",
      load: async (io) => (await import("./discover.ts")).discoverCommand(io, await connecting(io)),
    },
    {
      name: "schema",
      description: "print the JSON Schema of policy files, for editors",
      load: async (io) => (await import("./schema.ts")).schemaCommand(io),
    },
    {
      name: "sandbox",
      description: "run a small, faithful service on this machine, with faults on demand",
      load: async (io) => (await import("./sandbox.ts")).sandboxCommand(io),
    },
  ],
  "Change a service:": [
    {
      name: "apply",
      description: "bring sync jobs, masks and targets to what apply policies declare, now",
      load: async (io) => (await import("./apply.ts")).applyCommand(io),
    },
    {
      name: "import",
      description: "write what exists at a service as a declaration (apply) to start from",
      load: async (io) => (await import("./import.ts")).importCommand(io),
    },
    {
      name: "delete",
      description: "delete a sync job by hand, with its exact name as guard",
      load: async (io) => (await import("./delete.ts")).deleteCommand(io),
    },
    {
      name: "api",
      description: "call one operation of the service and print what it answers",
      load: async (io) => (await import("./api.ts")).apiCommand(io, await connecting(io)),
    },
  ],
};
