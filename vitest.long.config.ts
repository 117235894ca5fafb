// `npm run test:long`: the files test/**/*.long.test.ts, which kill processes by the hundred or
// wait for minutes.
import { configOf } from "./vitest.config.ts";

export default configOf(".long.test.ts", { maxWorkers: 3 });
