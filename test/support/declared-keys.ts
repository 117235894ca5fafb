// Lets each Lua script of the store fail on a key that it does not declare in KEYS: a Redis Cluster
// and Dragonfly need them all. Loaded by vitest before each test file with a Redis.
import { createHash } from "node:crypto";
import { readdirSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { type Command, Redis } from "ioredis";
import { loadLua } from "../../src/store/script.ts";

const folder = resolve(import.meta.dirname, "../../src/store/lua");

/** The names of all scripts, without the shared pieces. */
export const scriptNames = readdirSync(folder, { recursive: true, withFileTypes: true })
  .filter((file) => file.isFile() && !file.parentPath.endsWith("include"))
  .map((file) => relative(folder, join(file.parentPath, file.name)).replace(/\.lua$/, ""));

/** Lua: `redis` refuses commands on other keys. */
export const guard = `local redis = (function(raw)
  local isDeclared, isKeyless, takesMany = {}, { TIME = true, INFO = true }, { DEL = true, EXISTS = true }
  for _, key in ipairs(KEYS) do isDeclared[key] = true end
  local function check(command, ...)
    if isKeyless[command] then return end
    local args = { ... }
    local from = command == 'XINFO' and 2 or 1
    for i = from, takesMany[command] and #args or from do
      if not isDeclared[args[i]] then error(command .. ' takes an undeclared key: ' .. tostring(args[i])) end
    end
  end
  local function guarded(run) return function(...) check(...) return run(...) end end
  return setmetatable({ call = guarded(raw.call), pcall = guarded(raw.pcall) }, { __index = raw })
end)(redis)
`;

const textOf = new Map(
  scriptNames.map((name) => {
    const lua = loadLua(name);
    return [createHash("sha1").update(lua).digest("hex"), guard + lua];
  }),
);

const { sendCommand } = Redis.prototype;
function sendGuarded(this: Redis, ...sent: Parameters<typeof sendCommand>) {
  const [command]: [Command, ...unknown[]] = sent;
  const text = command.name === "evalsha" ? textOf.get(String(command.args[0])) : undefined;
  if (text !== undefined) {
    command.name = "eval";
    command.args[0] = text;
  }
  return sendCommand.apply(this, sent);
}
// The files of a worker share ioredis, and this file runs before each of them.
if (sendCommand.name !== sendGuarded.name) Redis.prototype.sendCommand = sendGuarded;
