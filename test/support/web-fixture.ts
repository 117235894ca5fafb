// A web application, and a whole web server, over a story in the test Redis. Used by the tests of
// the API and by those with a browser.
import { afterAll } from "vitest";
import { policyChecks } from "../../src/cli/shared-options.ts";
import type { PolicySet } from "../../src/config/policy-set.ts";
import { type Clock, systemClock } from "../../src/core/clock.ts";
import { silentLog } from "../../src/core/event-log.ts";
import { wholeView } from "../../src/queries/query-context.ts";
import { NoticeQueues } from "../../src/queue/notice-queues.ts";
import { Producer } from "../../src/queue/producer.ts";
import { createOAuthFetch } from "../../src/service/oauth2-token.ts";
import { readClientSecret } from "../../src/service/token.ts";
import { FailedTasks } from "../../src/store/failed-tasks.ts";
import { rememberStates } from "../../src/store/policy-states.ts";
import type { Store } from "../../src/store/redis.ts";
import { readLiveVersion, WebSessions } from "../../src/store/web-sessions.ts";
import { Access } from "../../src/web/access.ts";
import type { Refusal } from "../../src/web/admission.ts";
import { LiveHub } from "../../src/web/live.ts";
import { createWebApp, type WebParts } from "../../src/web/web-app.ts";
import { startWebServer } from "../../src/web/web-server.ts";
import { keepAlive, liveProcess } from "./kept-set.ts";
import { redisForTest, storeForTest } from "./redis.ts";
import { type Story, setOfStory, smallStory, writeStory } from "./web-story.ts";

/** A web application for a test file. */
export interface WebFixture {
  readonly store: Store;
  readonly refusals: readonly Refusal[];
  readonly parts: WebParts;
  /** Asks without a port, as a browser at this machine would. */
  ask(path: string, init?: RequestInit): Promise<Response>;
  /** The address of a server over a real port; any free one unless given. */
  serve(port?: number): Promise<string>;
}

/** Sets it up. `story`: what it is about; `{}`: nothing yet. */
export async function webForTest({
  story = smallStory,
  tokens,
  auth,
  set = setOfStory(story),
  clock = systemClock,
  isReadOnly = false,
  isPaced = false,
}: {
  readonly story?: Story;
  /** The lines of a file of tokens. */
  readonly tokens?: () => string;
  /** The text of a --web-auth file. */
  readonly auth?: () => string;
  readonly set?: PolicySet;
  readonly clock?: Clock;
  readonly isReadOnly?: boolean;
  /** Whether a caller may ask as seldom as in use: a test file asks more often. */
  readonly isPaced?: boolean;
} = {}): Promise<WebFixture> {
  const target = redisForTest();
  const store = await storeForTest(target);
  const producer = new Producer(target, silentLog);
  const notices = new NoticeQueues(target, silentLog);
  afterAll(() => Promise.all([producer.close(), notices.close()]));
  if (Object.keys(story).length > 0) await writeStory(store, story);
  await liveProcess(store);
  await keepAlive(store);
  const readStates = rememberStates(store, () => 0);
  const failedTasks = new FailedTasks(store, readStates);
  const refusals: Refusal[] = [];
  const files = {
    tokens: tokens && { path: "web-tokens", read: async () => tokens() },
    auth: auth && {
      path: "web-auth.yaml",
      read: async () => auth(),
      variables: {},
      readSecret: readClientSecret,
      createFetch: createOAuthFetch,
    },
  };
  const parts: WebParts = {
    context: () => ({ store, target, producer, notices, set, readStates, failedTasks, view: wholeView }),
    load: { variables: { OF_THE_SERVER: "canary-of-the-server" }, checks: policyChecks },
    access: (tokens ?? auth) && (await Access.open(files, new WebSessions(store, clock), { clock, log: silentLog })),
    recordRefusal: async (refusal) => void refusals.push(refusal),
    isReadOnly,
    pace: isPaced ? undefined : { burst: 10_000, perSecond: 1_000 },
    live: new LiveHub(() => readLiveVersion(store), clock, silentLog),
    // However slow the machine is, a page waits for what it shows.
    clock: {
      ...clock,
      sleep: (_, signal) => new Promise((resolve) => signal?.addEventListener("abort", () => resolve())),
    },
    log: silentLog,
  };
  const app = createWebApp(parts);
  return {
    ...{ store, refusals, parts },
    ask: async (path, init) => app.request(`http://127.0.0.1${path}`, init),
    serve: async (port = 0) => {
      const server = await startWebServer({ host: "127.0.0.1", port }, parts);
      afterAll(() => server.stop());
      return `http://127.0.0.1:${server.port}`;
    },
  };
}
