// GetIdentityById in its three forms: qualified, unqualified, and with query values. Called through the route table.
import { type Call, checkRepository, type World } from "./call.ts";
import { applySelect, checkSelect, parseNamedArguments, parseQuery, unquote } from "./odata-query.ts";
import { jsonReply, Refusal, type Reply } from "./reply.ts";

const properties = ["id", "idAsNumber", "name", "isAdministrator"];
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * Loads a user or group of a repository, wrapped in `value`; an id that the repository does not have gives an empty
 * `value` (Assumption S9). `id` and `repository` may be quoted or not, in the path or in the query.
 * Source: service-interface §4.1, §4.2, §4.4
 */
export function getIdentity(world: World, call: Call): Reply {
  const { select } = parseQuery(call.parameters, ["$select", "$expand"]);
  checkSelect(select, properties);
  const named = parseNamedArguments(call.key);
  const id = readArgument("id", named, call);
  const repository = checkRepository(readArgument("repository", named, call), world);
  if (!uuid.test(id)) throw new Refusal(400, "The argument 'id' is not a UUID.");
  const found = world.store.identities.filter(
    (row) => row.repository === repository && row.entity.id === id.toLowerCase(),
  );
  return jsonReply({
    "@odata.context": `${call.baseUrl}/odata/$metadata#ecmidentities`,
    value: found.map((row) => applySelect(row.entity, select)),
  });
}

function readArgument(name: string, named: ReadonlyMap<string, string>, call: Call): string {
  const value = named.get(name) ?? call.parameters.get(name);
  if (value === null || value === "") throw new Refusal(400, `The argument '${name}' is missing.`);
  return unquote(value);
}
