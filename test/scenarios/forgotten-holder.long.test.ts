// Redis forgets that a start has ended, while the queue is told that it is over: its lease is left
// to nobody. Whoever comes for the sync job goes on all the same, long before the lease would end
// by itself.
import { afterEach, expect, it, vi } from "vitest";
import { History } from "../../src/store/history.ts";
import { RecentOutcomes } from "../../src/tasks/recorder.ts";
import { clientOf, startForgetfulServer, until } from "../support/redis-servers.ts";
import { type World, worldForTest } from "../support/world.ts";

const policy = (name: string, overlap: string) => `
  - name: ${name}
    service: main
    repository: HR
    run: { syncJobs: [1] }
    schedule: { cron: "0 0 1 1 *" }
    overlap: ${overlap}
    follow: { until: accepted }`;

let world: World;
afterEach(() => vi.restoreAllMocks());

/**
 * Starts `first`, and sets Redis back to the moment right before that one's end was written.
 * Answers the first instant of which nothing is lost.
 */
async function forgetTheEndOf(first: string, meanwhile: (slotMs: number) => Promise<void> = async () => {}) {
  const server = await startForgetfulServer();
  const policies = policy("in-turn", "queue") + policy("at-most-one", "skip");
  // A lock that Redis finds again after its restart must not be over by then.
  world = await worldForTest({ redis: { url: server.url, prefix: "{holder}" }, policies, takeOverAfterMs: 20_000 });
  const client = clientOf(server.port);
  const stamp = () => client.hget(`${world.target.prefix}:watch`, "stamp");
  const record = History.prototype.record;
  vi.spyOn(History.prototype, "record").mockImplementationOnce(async function (this: History, ...args) {
    await meanwhile(Date.parse(args[0].slot));
    const [writtenThen, stampThen] = [server.written(), await stamp()];
    const answer = await record.apply(this, args);
    // Two stamps on, the process has heard of one that Redis will not have: it notices the loss.
    const next = await until(stamp, (now) => now !== stampThen);
    await until(stamp, (now) => now !== next);
    await server.restart(writtenThen);
    return answer;
  });
  // Nobody lives any more who could write the end again.
  vi.spyOn(RecentOutcomes.prototype, "restore").mockResolvedValue();
  await world.enqueue(first);
  const loss = await world.log.until(({ event }) => event === "redis.loss-detected");
  return Date.parse(String(loss["until"])) + 1;
}

const endOf = (slotMs: number) => world.log.until((event) => isEnd(event) && slotOf(event) === slotMs);
const isEnd = ({ event, reason }: { event: string; reason?: unknown }) =>
  event === "task.finished" && reason !== undefined;
const slotOf = (event: Readonly<Record<string, unknown>>) => Date.parse(String(event["slot"]));

function expectNoSecondStart(): void {
  const names = world.sandbox.ledger().map(({ idempotencyKey }) => idempotencyKey);
  expect(names).toEqual([...new Set(names)]);
}

it("a start that waits for another one goes on when Redis has forgotten its end", async () => {
  let waitingSlotMs = 0;
  const lateMs = await forgetTheEndOf("in-turn", async (slotMs) => {
    waitingSlotMs = slotMs + 1;
    await world.enqueue("in-turn", waitingSlotMs);
  });
  await world.enqueue("in-turn", lateMs);
  expect(await endOf(lateMs)).toMatchObject({ status: "accepted" });
  // Whether this one was started is lost, too: that is said, and not tried out.
  await world.log.until((event) => isEnd(event) && slotOf(event) === waitingSlotMs && event["reason"] === "redis-loss");
  expectNoSecondStart();
});

it("a start is not skipped for another one whose end Redis has forgotten", async () => {
  const lateMs = await forgetTheEndOf("at-most-one");
  await world.enqueue("at-most-one", lateMs);
  expect(await endOf(lateMs)).toMatchObject({ status: "accepted" });
  expect(world.log.named("lease.taken-over")).toHaveLength(1);
  expectNoSecondStart();
});
