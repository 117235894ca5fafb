// A Syncline worker in a process of its own: app-process.ts REDIS_URL CONCURRENCY NAME=BASE_URL…
// Started by the benchmarks of neighbours and of runs in flight.
import { startBenchApp } from "./bench-app.ts";
import { answerParent } from "./child.ts";

const [url = "", concurrency = "", ...given] = process.argv.slice(2);
const services = Object.fromEntries(given.map((pair) => pair.split(/=(.*)/s, 2) as [string, string]));
const app = await startBenchApp({ url, services, concurrency: Number(concurrency) });
answerParent({}, () => app.stop());
