// The commands: names, descriptions, groups, and how each is loaded. A process loads only the
// command that it runs. Called by program.ts.
import type { Command } from "commander";
import type { CommandIo } from "./command-io.ts";

/** What makes each command with all its options. */
const loaders = {
  dev: async (io) => (await import("./dev.ts")).devCommand(io),
  serve: async (io) => (await import("./serve.ts")).serveCommand(io),
  run: async (io) => (await import("./run-policy.ts")).runCommand(io),
  cancel: async (io) => (await import("./cancel.ts")).cancelCommand(io),
  pause: async (io) => (await import("./pause.ts")).pauseCommand(io),
  resume: async (io) => (await import("./pause.ts")).resumeCommand(io),
  acknowledge: async (io) => (await import("./acknowledge.ts")).acknowledgeCommand(io),
  running: async (io) => (await import("./running.ts")).runningCommand(io),
  status: async (io) => (await import("./status.ts")).statusCommand(io),
  history: async (io) => (await import("./history.ts")).historyCommand(io),
  digest: async (io) => (await import("./digest.ts")).digestCommand(io),
  report: async (io) => (await import("./report.ts")).reportCommand(io),
  explain: async (io) => (await import("./explain.ts")).explainCommand(io),
  failed: async (io) => (await import("./failed.ts")).failedCommand(io),
  sinks: async (io) => (await import("./sinks.ts")).sinksCommand(io),
  audit: async (io) => (await import("./audit.ts")).auditCommand(io),
  changes: async (io) => (await import("./changes.ts")).changesCommand(io),
  token: async (io) => (await import("./token.ts")).tokenCommand(io),
  feed: async (io) => (await import("./feed.ts")).feedCommand(io),
  validate: async (io) => (await import("./validate.ts")).validateCommand(io),
  doctor: async (io) => (await import("./doctor/doctor-command.ts")).doctorCommand(io),
  plan: async (io) => (await import("./plan.ts")).planCommand(io),
  simulate: async (io) => (await import("./simulate.ts")).simulateCommand(io),
  discover: async (io) => (await import("./discover.ts")).discoverCommand(io),
  schema: async (io) => (await import("./schema.ts")).schemaCommand(io),
  sandbox: async (io) => (await import("./sandbox.ts")).sandboxCommand(io),
  completion: async (io) => (await import("./completion.ts")).completionCommand(io, () => loadAll(io)),
  apply: async (io) => (await import("./apply.ts")).applyCommand(io),
  import: async (io) => (await import("./import/import-command.ts")).importCommand(io),
  delete: async (io) => (await import("./delete.ts")).deleteCommand(io),
  api: async (io) => (await import("./api.ts")).apiCommand(io),
} satisfies Record<string, (io: CommandIo) => Promise<Command>>;

/** What each command does, by the heading under which `--help` lists it. */
export const commandGroups: Readonly<Record<string, Partial<Record<keyof typeof loaders, string>>>> = {
  "Follow policies:": {
    dev: "try it: a Redis, a sandbox service and serve on this machine, until Ctrl-C",
    serve: "plan slots and work on tasks until stopped",
    run: "run a policy, or one sync job, by hand, now",
    cancel: "take a task off the queue, or stop to follow its run",
    pause: "skip the slots of a policy, a service, a label or all from now on",
    resume: "end a pause, or the quarantine of a policy",
    acknowledge: "say that you know of what is wrong with a policy; ends when it is over or gets worse",
  },
  "Did it run, did it end well, and why not:": {
    status: "every policy in one line, worst first; then services, processes, sinks: what needs a person?",
    running: "tasks in flight: the step of each, since when, and what it waits for",
    history: "the outcomes of tasks, newest first",
    report: "per policy and in all: how many ran, ended well or badly, how long, against the days before",
    digest: "what a digest says now: what needs a person, and what happened since yesterday; send one by hand",
    explain: "why a policy ran at a time, why it did not, or why later",
    failed: "tasks and notices that failed",
    sinks: "what waits for the receivers of notices; send one a trial notice",
    audit: "check that planned = recorded: no slot lost, none without an outcome",
    changes: "what was changed by hand: who, when, what and why, newest first",
    token: "make a token for the dashboard and the API (`serve --roles web`)",
    feed: "what was seen in a list of a service: tail, export",
  },
  "Before it runs:": {
    validate: "check policy files: all problems at once, with file, line and what to do",
    doctor: "check everything that the policies need, and say what to do",
    plan: "the next slots of each policy, or those of a night as one time line; peaks, requests a day",
    simulate: "what policies would do between two times: overlaps, skipped and missed slots, peaks",
    discover: "sample the lists of a service, say what their fields look like, and propose a mapping",
    schema: "print the JSON Schema of policy files, for editors",
    sandbox: "run a small, faithful service on this machine, with faults on demand",
    completion: "print a script for bash, zsh or fish that completes commands, options and policies",
  },
  "Change a service:": {
    apply: "bring sync jobs, masks and targets to what apply policies declare, now",
    import: "write policies to start from: of what exists at a service, of CronJobs or a crontab",
    delete: "delete a sync job by hand, with its exact name as guard",
    api: "call one operation of the service and print what it answers",
  },
};

async function loadAll(io: CommandIo): Promise<readonly Command[]> {
  const described = Object.values(commandGroups).flatMap((group) => Object.entries(group));
  const loaded = described.map(async ([name, description]) => (await loadCommand(name, io))?.description(description));
  return (await Promise.all(loaded)).filter((command) => command !== undefined);
}

/** Makes a command with all its options; undefined for a name that is none. */
export async function loadCommand(name: string | undefined, io: CommandIo): Promise<Command | undefined> {
  const found = Object.entries(loaders).find(([known]) => known === name);
  return found?.[1](io);
}
