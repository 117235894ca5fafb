// For `node --import`: notes each module that a process loads, and writes the list to the file
// that LOADED_MODULES names when the process ends. Used by test/cli/loaded-modules.long.test.ts.
import { writeFileSync } from "node:fs";
import { registerHooks } from "node:module";

const loaded = new Set();
registerHooks({
  load: (url, context, next) => {
    loaded.add(url);
    return next(url, context);
  },
});
process.on("exit", () => writeFileSync(process.env["LOADED_MODULES"] ?? "", [...loaded].join("\n")));
