// The import rule and the single doors (ARCHITECTURE.md, "Import rule"): checked by `npm run check:imports`.
const layers = [
  ["core", []],
  ["config", ["core"]],
  ["service", ["core"]],
  ["tasks", ["core"]],
  ["schedule", ["core", "config", "tasks"]],
  ["store", ["core", "config", "tasks"]],
  ["feeds", ["core", "config", "service", "tasks", "store"]],
  ["queue", ["core", "config", "tasks", "store"]],
  ["sinks", ["core", "config", "service", "tasks"]],
  ["outcome", ["core", "config", "tasks", "store"]],
  ["declared", ["core", "service", "tasks"]],
  ["work", ["core", "config", "service", "tasks", "store", "feeds", "declared", "outcome"]],
  ["telling", ["core", "config", "tasks"]],
  ["ops", ["core", "config", "service", "tasks", "store", "outcome"]],
  ["simulate", ["core", "config", "tasks", "schedule", "feeds"]],
  ["sandbox", ["core"]],
  [
    "app",
    [
      "core",
      "config",
      "service",
      "tasks",
      "schedule",
      "store",
      "queue",
      "feeds",
      "declared",
      "outcome",
      "sinks",
      "work",
      "telling",
      "ops",
    ],
  ],
  [
    "cli",
    [
      "core",
      "config",
      "service",
      "tasks",
      "schedule",
      "store",
      "queue",
      "feeds",
      "declared",
      "outcome",
      "sinks",
      "ops",
      "sandbox",
      "simulate",
    ],
  ],
];

const oneWay = layers.map(([from, may]) => ({
  name: `one-way-${from}`,
  severity: "error",
  comment: `src/${from} imports ${may.length === 0 ? "nothing of ours" : may.join(", ")} only`,
  from: { path: `^src/${from}/` },
  to: { path: "^src/", pathNot: [`^src/${from}/`, ...may.map((layer) => `^src/${layer}/`)] },
}));

const door = (name, module, places) => ({
  name: `door-${name}`,
  severity: "error",
  comment: `${name} is imported in ${places.join(" and ")} only`,
  from: { path: "^src/", pathNot: places },
  to: { path: module },
});

export default {
  forbidden: [
    ...oneWay,
    { name: "no-circle", severity: "error", from: {}, to: { circular: true } },
    {
      name: "app-above-all",
      severity: "error",
      from: { pathNot: ["^src/main\\.ts$", "^test/", "^scripts/"] },
      to: { path: "^src/app\\.ts$" },
    },
    { name: "main-imported-by-none", severity: "error", from: { pathNot: "^test/" }, to: { path: "^src/main\\.ts$" } },
    door("bullmq", "node_modules/bullmq", ["^src/queue/"]),
    door("ioredis", "node_modules/ioredis", ["^src/store/"]),
    door("got", "node_modules/got/", ["^src/service/transport\\.ts$"]),
    door("node-cron", "node_modules/node-cron", ["^src/schedule/beat\\.ts$"]),
    door("croner", "node_modules/croner", ["^src/schedule/cron-pattern\\.ts$"]),
    door("yaml", "node_modules/yaml", ["^src/config/"]),
    door("prom-client", "node_modules/prom-client", ["^src/ops/metrics\\.ts$"]),
    door("pino", "node_modules/pino", ["^src/ops/logger\\.ts$"]),
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "require", "node", "default", "types"],
    },
  },
};
