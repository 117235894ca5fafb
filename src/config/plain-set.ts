// The policy set as plain data, for keeping in Redis. It holds no secret: of addresses that may be
// one only the host stays, of declared objects only the names. Called by store/kept-policies.ts.
import { listNames } from "../model/feed.ts";
import { type PlainPolicy, type PlainService, plainPolicy, plainService } from "./normalise.ts";
import type {
  Action,
  EventCalendar,
  Policy,
  PolicySet,
  ServiceSettings,
  SinkSettings,
  TokenSettings,
} from "./policy-set.ts";

/** A policy set in which every value is plain JSON. */
export interface PlainSet extends Pick<PolicySet, "byHand" | "notifications" | "contentHash" | "files"> {
  readonly policies: readonly PlainPolicy[];
  readonly calendars: readonly EventCalendar[];
  readonly services: readonly PlainService[];
  readonly sinks: readonly SinkSettings[];
}

/** Makes plain data of a set, without what may be secret. */
export function toPlainSet({
  services,
  sinks,
  calendars = new Map(),
  policies,
  byHand,
  notifications,
  contentHash,
  files,
}: PolicySet): PlainSet {
  return {
    services: [...services.values()].map((service) => plainService({ ...service, token: publicToken(service.token) })),
    sinks: [...sinks.values()].map(publicSink),
    calendars: [...calendars.values()],
    policies: policies.map((policy) => plainPolicy(publicPolicy(policy))),
    byHand,
    notifications,
    contentHash,
    files,
  };
}

/** Reads what `toPlainSet` made. */
export function fromPlainSet({ services, sinks, calendars: all, policies, ...rest }: PlainSet): PolicySet {
  const byName = <Item extends { readonly name: string }>(items: readonly Item[]) =>
    new Map(items.map((item) => [item.name, item]));
  const calendars = byName(all);
  const whole = policies.map((policy) => withCalendars(policy, calendars));
  return { ...rest, services: byName(services.map(withMap)), sinks: byName(sinks), calendars, policies: whole };
}

function withCalendars(policy: PlainPolicy, known: ReadonlyMap<string, EventCalendar>): Policy {
  const { calendars: names, ...closed } = policy.closed;
  if (names === undefined) return { ...policy, closed };
  const calendars = names.flatMap(({ as, calendar: name }) => {
    const calendar = known.get(name);
    return calendar === undefined ? [] : [{ as, calendar }];
  });
  return { ...policy, closed: { ...closed, calendars } };
}

function withMap({ mapping, ...service }: PlainService): ServiceSettings {
  const lists = listNames.flatMap((list) => (mapping[list] === undefined ? [] : [[list, mapping[list]] as const]));
  return { ...service, mapping: new Map(lists) };
}

function publicToken(token: TokenSettings): TokenSettings {
  return token.kind === "oauth2" ? { ...token, tokenUrl: token.tokenUrl.replace(/\?.*$/s, "") } : token;
}

function publicSink(sink: SinkSettings): SinkSettings {
  return sink.to.kind === "webhook" ? { ...sink, to: { ...sink.to, url: new URL(sink.to.url).origin } } : sink;
}

function publicPolicy(policy: Policy): Policy {
  const { action, heartbeat } = policy;
  return {
    ...policy,
    action: publicAction(action),
    ...(heartbeat === undefined ? {} : { heartbeat: { url: new URL(heartbeat.url).origin } }),
  };
}

function publicAction(action: Action): Action {
  if (action.kind !== "apply") return action;
  return { ...action, objects: action.objects.map((object) => ({ ...object, fields: {} })) };
}
