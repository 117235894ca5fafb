// `syncline dev`: a whole Syncline to try out: a Redis of its own, the sandbox service unless
// --config names policies, and `serve`. It says what to type next, and is gone at Ctrl-C.
import { createServer } from "node:net";
import { resolve as resolvePath } from "node:path";
import { fileURLToPath } from "node:url";
import { Command } from "commander";
import { createService } from "../app/create-service.ts";
import { type Policy, type PolicySet, zoneOfSlots } from "../config/policy-set.ts";
import type { Settings } from "../config/settings.ts";
import { systemClock } from "../core/clock.ts";
import { errorText, OutOfReachError } from "../core/errors.ts";
import { silentLog } from "../core/event-log.ts";
import { showBoth } from "../core/instant.ts";
import { shellWord } from "../core/plain-text.ts";
import { startSandbox } from "../sandbox/sandbox.ts";
import { nextOpen } from "../schedule/closed-times.ts";
import { createSlotSource } from "../schedule/slots.ts";
import { defaultPrefix } from "../store/redis.ts";
import type { CommandIo } from "./command-io.ts";
import { serve } from "./serve.ts";
import { loadPoliciesOrThrow } from "./shared-options.ts";
import { paint } from "./table.ts";

const ownPolicies = fileURLToPath(new URL("../../config/dev.yaml", import.meta.url));
const policiesShownMax = 5;
const madeOnPurpose = "invoices ends in conflicts again and again, on purpose, so status exits with 1";
/** The first slots count from when the scheduler is ready. */
const readyWithinMs = 3_000;

interface DevOptions {
  readonly config?: string;
  readonly keep?: true;
}

const help = `
Starts an empty Redis on a free port of 127.0.0.1 (REDIS_URL is not looked at), and the sandbox with 20 sync jobs.
With --config it uses the services of these policies instead: what they schedule is really started there.
Nothing is left behind. Ctrl-C ends all of it; with --keep Redis and the sandbox stay until a second Ctrl-C.

Examples:
  $ syncline dev
  $ syncline dev --config my.yaml --keep`;

/** The command `dev`. */
export function devCommand(io: CommandIo): Command {
  return new Command("dev")
    .option("-c, --config <path>", "policies of your own, with the services that they name")
    .option("--keep", "leave Redis and the sandbox up after the first Ctrl-C, to look around")
    .addHelpText("after", help)
    .action((options: DevOptions) => dev(options, io));
}

async function dev({ config, keep }: DevOptions, io: CommandIo): Promise<void> {
  const redis = await startRedis(io);
  const sandbox = config === undefined ? await startSandbox() : undefined;
  const path = resolvePath(config ?? ownPolicies);
  const environment: Readonly<Record<string, string>> = {
    REDIS_URL: redis.url,
    SYNCLINE_CONFIG: path,
    SYNCLINE_PREFIX: defaultPrefix,
    ...(sandbox === undefined ? {} : { SYNC_URL: sandbox.baseUrl, SYNC_TOKEN: sandbox.token }),
  };
  const variables = { ...io.settings.variables, ...environment };
  const inside = { ...io, settings: { ...io.settings, variables } };
  try {
    const set = await loadPoliciesOrThrow(path, inside);
    // A token that is missing is said before what to type next. That of the sandbox must not be
    // noted as a secret yet: it is printed there.
    if (sandbox === undefined)
      for (const service of set.services.values()) createService(service, { variables, log: silentLog }).close();
    const roles = ["scheduler", "worker", "web"] as const;
    const webPort = await freePort();
    const process = { roles, takeOverAfter: 10_000, drain: 10_000, webHost: "127.0.0.1", webPort };
    for (const line of welcome(set, environment, inside)) io.err(line);
    if (config === undefined) io.err(`  ${madeOnPurpose}`);
    io.err(`${paint("bold", "dashboard", io.colours)}\n  http://127.0.0.1:${webPort}/\n`);
    await serve({ config: path, redisUrl: redis.url, prefix: defaultPrefix, ...process }, inside);
    if (keep) {
      io.err(`stopped; Redis (${redis.url})${sandbox === undefined ? "" : " and the sandbox"} stay until Ctrl-C again`);
      await new Promise(() => {});
    }
  } finally {
    await sandbox?.stop();
    await redis.stop();
  }
}

/** Starts a Redis that ends with this process. @throws OutOfReachError that says what to do. */
async function startRedis(io: CommandIo) {
  // The image and other installations without the folder scripts/ have no Redis to start.
  const door = await import("#redis").catch(() => undefined);
  const server = await door
    ?.findRedisServer({ onProgress: io.err })
    .catch((error: unknown) => io.err(errorText(error)));
  if (door === undefined || server === undefined)
    throw new OutOfReachError(
      "no Redis can be started here: install redis-server or valkey-server, or start Docker. " +
        "With a Redis that runs already, use two terminals instead: `syncline sandbox`, and `syncline serve` with REDIS_URL",
    );
  try {
    return await door.startPrivateRedis({ server, args: ["--appendonly", "yes"] });
  } catch (error) {
    throw new OutOfReachError(errorText(error));
  }
}

/** A port of 127.0.0.1 that was free a moment ago, so that its address can be said at once. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}

function welcome(set: PolicySet, environment: Readonly<Record<string, string>>, io: CommandIo): string[] {
  const slots = set.policies.slice(0, policiesShownMax).map((policy) => `  ${policy.name}: ${nextSlot(policy)}`);
  const more = set.policies.length - slots.length;
  const [first] = set.policies;
  return [
    paint("bold", "next slots", io.colours),
    ...slots,
    ...(more > 0 ? [`  and ${more} more: \`plan\` shows all`] : []),
    ...typeNext(environment, first?.name ?? "", { colours: io.colours, variables: io.settings.variables }),
  ];
}

function nextSlot(policy: Policy): string {
  const slotMs = nextOpen(policy, createSlotSource(policy), systemClock.nowMs() + readyWithinMs);
  if (slotMs === undefined) return policy.after === undefined ? "only by hand" : `after ${policy.after.policy}`;
  return showBoth(slotMs, zoneOfSlots(policy));
}

/** What a person types in another terminal to look at this Syncline. */
export function typeNext(
  environment: Readonly<Record<string, string>>,
  policy: string,
  { colours, variables }: Pick<CommandIo, "colours"> & Pick<Settings, "variables">,
): string[] {
  // npm tells which script it runs: from a clone the command is `npm run -s syncline --`.
  const isClone = variables["npm_lifecycle_event"] !== undefined;
  const command = isClone ? "npm run -s syncline --" : "syncline";
  const exports = Object.entries(environment).map(([name, value]) => `${name}=${shellWord(value)}`);
  const lines = [`export ${exports.join(" ")}`, "status", `run ${policy} --wait`, "history", `explain ${policy}`];
  return [
    paint("bold", "in another terminal, in this folder", colours),
    ...lines.map((line, index) => `  ${index === 0 ? line : `${command} ${line}`}`),
    paint("bold", "Ctrl-C ends all of it", colours),
    "",
  ];
}
