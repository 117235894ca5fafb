// A Redis that is lost in the middle of a command: an outage, which ends no wait and is no bug.
import { expect, it } from "vitest";
import { History } from "../../src/store/history.ts";
import { runHere } from "../support/commands-here.ts";
import { keepSet } from "../support/kept-set.ts";
import { testOutcome } from "../support/outcomes.ts";
import { testPolicy } from "../support/policies.ts";
import { redisForTest, storeForTest } from "../support/redis.ts";
import { freePort, startProxy } from "../support/redis-servers.ts";

const redis = redisForTest();
const store = await storeForTest(redis);
const port = Number(new URL(redis.url).port || 6379);
const proxy = await startProxy(port);
const closed = await freePort();
const at = ["--prefix", redis.prefix, "--redis-url", `redis://127.0.0.1:${proxy.port}`];

it("a failover does not end `run --wait`", async () => {
  await keepSet(store, [testPolicy()]);
  const end = async (taskId: string) => {
    await new History(store).record(testOutcome({ taskId, origin: "manual" }));
    proxy.heal(port);
  };
  let taskId = "";
  const { code, out, err } = await runHere(
    ["run", "nightly", "--wait", "--json", ...at],
    {},
    {
      onErr: (line) => {
        [, taskId = taskId] = /queued: (\S+)$/.exec(line) ?? [];
        if (/no worker is alive/.test(line)) proxy.heal(closed);
        if (/does not answer/.test(line)) void end(taskId);
      },
    },
  );
  expect({ code, err }).toMatchObject({ code: 0 });
  expect(err.match(/Redis does not answer; the wait goes on/g)).toHaveLength(1);
  expect(JSON.parse(out)).toMatchObject([{ taskId, status: "succeeded" }]);
});

it("a command that cannot go on without it ends with exit code 3", async () => {
  proxy.heal(port);
  const args = ["feed", "tail", "activities", "--service", "main", "--repository", "HR", "--follow", ...at];
  const onErr = () => proxy.heal(closed);
  const { code, err } = await runHere(args, {}, { onErr });
  expect(code).toBe(3);
  expect(err).toMatch(/\nerror: Redis stopped answering \(.+\): what this command was to change may be done or not\./);
});
