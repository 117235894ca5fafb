// What the bare peers of the benchmark of starts share: the name of the queue, in the process that
// adds and in the one that works, and the start itself.
import { Agent } from "node:http";
import got from "got";

/** `bare-fresh-starts`. */
export function bareQueue(contender: string): string {
  return `${contender}-starts`;
}

/** What one would write in half an hour. Its time-outs are set: without any, got waits for ever. */
export function bareStart(serviceUrl: string, isFresh = false): (target: string) => Promise<void> {
  const client = got.extend({
    ...(isFresh ? { agent: { http: new Agent({ keepAlive: false }) } } : {}),
    retry: { limit: 0 },
    followRedirect: false,
    timeout: { connect: 5_000, response: 30_000, request: 60_000 },
    headers: { authorization: "Bearer bench" },
  });
  return async (target) => {
    await client.post(`${serviceUrl}/api/syncjobs/run(${target})?repository=HR`);
  };
}
