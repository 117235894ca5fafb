// Writes the audit record of a change made with `syncline api`, where a Redis is named: the command works without one. Called by api.ts.
import { errorText } from "../core/errors.ts";
import { factsOf } from "../service/operations.ts";
import { openStore, type RedisTarget } from "../store/redis.ts";
import type { ApiRequest } from "./api-request.ts";
import type { CommandIo } from "./command-io.ts";
import { recordChange } from "./record-change.ts";

/** Of each value of a body in the record. */
const recordedCharactersMax = 500;

/** Records what was sent and how it ended (exit code), unless it only read. A Redis that does not answer is said, after 10 s. */
export async function recordApiCall(
  request: ApiRequest,
  { service, io, redis }: { readonly service: string; readonly io: CommandIo; readonly redis: RedisTarget },
): Promise<void> {
  const { operation, key, repository } = request;
  if (factsOf(operation).method === "GET") return;
  const fields = Object.entries(request.body).map(([name, value]) => {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    return [name, text.slice(0, recordedCharactersMax)];
  });
  try {
    const store = await openStore(redis);
    try {
      await recordChange(store, io, {
        what: "api",
        subject: `${operation} ${key} of ${service}${repository === undefined ? "" : `, ${repository}`}`,
        reason: null,
        before: null,
        after: { ...(fields.length === 0 ? {} : { body: Object.fromEntries(fields) }), exitCode: io.exitCode },
      });
    } finally {
      await store.close();
    }
  } catch (error) {
    io.err(`done, but not in the record of changes: ${errorText(error)}`);
  }
}
