// The docker command for tests of the image, and whether there is an engine to try it with. Whoever
// starts containers calls `removeStarted`.
import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { getContainerRuntimeClient } from "testcontainers";

/** How a command ended. */
interface DockerEnd {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

const root = resolve(import.meta.dirname, "../..");
const started: string[] = [];

/** Why images cannot be tested here; undefined when they can. */
export async function whyNoDocker(): Promise<string | undefined> {
  try {
    await getContainerRuntimeClient();
  } catch {
    return "no Docker engine answers (DOCKER_HOST says where another one is)";
  }
  const { code } = await docker(["version", "--format", "{{.Server.Version}}"]);
  return code === 0 ? undefined : "a Docker engine answers, but there is no docker command that speaks to it";
}

/** Runs docker to its end, at most `timeoutMs` (1 minute unless said) long. */
export function docker(args: readonly string[], timeoutMs = 60_000, buildKit = "1"): Promise<DockerEnd> {
  const env = { ...process.env, DOCKER_BUILDKIT: buildKit };
  return new Promise((done) => {
    execFile("docker", args, { cwd: root, env, timeout: timeoutMs, maxBuffer: 50_000_000 }, (error, out, err) =>
      done({ code: error === null ? 0 : Number(error.code ?? 1), out, err }),
    );
  });
}

/**
 * What docker prints.
 * @throws Error with docker's words when it fails.
 */
export async function dockerOrThrow(args: readonly string[], timeoutMs?: number): Promise<string> {
  const { code, out, err } = await docker(args, timeoutMs);
  if (code !== 0) throw new Error(`docker ${args.join(" ")}: ${err}`);
  return out.trim();
}

/**
 * Builds the image from the Dockerfile; the base is NODE_IMAGE, if that is set. The build uses the
 * host's network, since npm may be reached by that only.
 * @throws Error with docker's words when it fails.
 */
export async function buildImage(tag: string): Promise<void> {
  const base = process.env["NODE_IMAGE"];
  const choice = base === undefined ? [] : ["--build-arg", `NODE_IMAGE=${base}`];
  const words = ["build", "--network=host", "-t", tag, ...choice, "."];
  const modern = await docker(words, 540_000);
  // A docker command without its builder: the classic one can do this Dockerfile too.
  const built = /buildx/.test(modern.err) && modern.code !== 0 ? await docker(words, 540_000, "0") : modern;
  if (built.code !== 0) throw new Error(`docker build: ${built.err.slice(-3000)}`);
}

/** `docker run -d` with these words; gives back the container's id. */
export async function runDetached(words: readonly string[]): Promise<string> {
  const id = await dockerOrThrow(["run", "-d", ...words]);
  started.push(id);
  return id;
}

/** Removes every container that `runDetached` started. */
export async function removeStarted(): Promise<void> {
  const ids = started.splice(0);
  if (ids.length > 0) await docker(["rm", "-f", "-v", ...ids]);
}
