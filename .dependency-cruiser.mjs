// The import rule and the single doors (ARCHITECTURE.md, "Rooms and the import rule"): checked by `npm run check:imports`.
const layers = [
  ["core", []],
  ["model", ["core"]],
  ["service", ["core"]],
  ["sandbox", ["core"]],
  ["config", ["core", "model"]],
  ["schedule", ["core", "config", "model"]],
  ["store", ["core", "config", "model"]],
  ["apply", ["core", "service", "model"]],
  ["notify", ["core", "config", "service", "model"]],
  ["feeds", ["core", "config", "service", "model", "store"]],
  ["queue", ["core", "model", "store"]],
  ["simulate", ["core", "config", "model", "schedule", "feeds"]],
  ["tasks", ["core", "config", "service", "model", "store", "feeds", "apply"]],
  ["ops", ["core", "service", "model"]],
  ["queries", ["core", "config", "model", "schedule", "store", "feeds", "queue", "simulate"]],
  ["actions", ["core", "config", "model", "schedule", "store", "queue", "queries"]],
  ["web", ["core", "config", "model", "queries", "actions"]],
];
const libraries = layers.map(([name]) => name);
layers.push(
  ["app", libraries.filter((name) => !["sandbox", "simulate", "actions"].includes(name))],
  ["cli", [...libraries, "app"]],
);

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
    { name: "main-imported-by-none", severity: "error", from: { pathNot: "^test/" }, to: { path: "^src/main\\.ts$" } },
    {
      name: "program-imported-by-main-only",
      severity: "error",
      from: { pathNot: ["^src/main\\.ts$", "^test/"] },
      to: { path: "^src/cli/program\\.ts$" },
    },
    {
      name: "main-loads-only-the-program",
      severity: "error",
      from: { path: "^src/main\\.ts$" },
      to: { pathNot: "^src/cli/program\\.ts$" },
    },
    {
      name: "program-loads-one-command",
      comment: "the start of a process costs what its command needs: commands.ts loads it, and only it",
      severity: "error",
      from: { path: "^src/cli/(program|commands)\\.ts$" },
      to: {
        path: ["^src/", "^node_modules/"],
        pathNot: [
          "^src/core/",
          "^src/config/settings\\.ts$",
          "^src/cli/(command-io|commands|width)\\.ts$",
          "commander",
        ],
        dynamic: false,
        dependencyTypesNot: ["type-only"],
      },
    },
    door("nodemailer", "node_modules/nodemailer", ["^src/notify/email\\.ts$"]),
    door("hono", "node_modules/(hono|@hono|idiomorph)", ["^src/web/"]),
    {
      name: "web-loaded-by-its-role",
      comment: "a process without the role web loads nothing of it",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/web/" },
      to: { path: "^src/web/", dynamic: false, dependencyTypesNot: ["type-only"] },
    },
    door("jose", "node_modules/jose/", ["^src/web/issuer\\.ts$"]),
    door("bullmq", "node_modules/bullmq", ["^src/queue/"]),
    door("ioredis", "node_modules/ioredis", ["^src/store/"]),
    door("got", "node_modules/got/", ["^src/service/transport\\.ts$"]),
    door("node-cron", "node_modules/node-cron", ["^src/schedule/tick\\.ts$"]),
    door("ical.js", "node_modules/ical\\.js", ["^src/schedule/calendar-file\\.ts$"]),
    door("croner", "node_modules/croner", ["^src/schedule/cron-pattern\\.ts$"]),
    door("yaml", "node_modules/(js-)?yaml/", ["^src/config/"]),
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
