// The policy set as plain data, for keeping in Redis. It holds no secret: of addresses that may be
// one only the host stays, of declared objects only the names. Called by store/kept-policies.ts.
import { defined } from "../core/json.ts";
import type { EventCalendar, Policy, PolicySet, ServiceSettings, SinkSettings } from "./policy-set.ts";
import { type PlainPolicy, plainPolicy } from "./set-content.ts";

/** A policy set in which every value is plain JSON. */
export interface PlainSet extends Omit<PolicySet, "services" | "sinks" | "calendars" | "policies"> {
  readonly policies: readonly PlainPolicy[];
  readonly calendars: readonly EventCalendar[];
  readonly services: readonly ServiceSettings[];
  readonly sinks: readonly SinkSettings[];
}

/** Makes plain data of a set, without what may be secret. */
export function toPlainSet({ services, sinks, calendars = new Map(), policies, ...rest }: PolicySet): PlainSet {
  return {
    services: [...services.values()].map(publicService),
    sinks: [...sinks.values()].map(publicSink),
    calendars: [...calendars.values()],
    policies: policies.map((policy) => plainPolicy(publicPolicy(policy))),
    ...rest,
  };
}

/** Reads what `toPlainSet` made. */
export function fromPlainSet({ services, sinks, calendars: all, policies, ...rest }: PlainSet): PolicySet {
  const byName = <Item extends { readonly name: string }>(items: readonly Item[]) =>
    new Map(items.map((item) => [item.name, item]));
  const calendars = byName(all);
  const whole = policies.map((policy) => withCalendars(policy, calendars));
  return { ...rest, services: byName(services), sinks: byName(sinks), calendars, policies: whole };
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

function publicService(service: ServiceSettings): ServiceSettings {
  const { token } = service;
  if (token.kind !== "oauth2") return service;
  return { ...service, token: { ...token, tokenUrl: token.tokenUrl.replace(/\?.*$/s, "") } };
}

function publicSink(sink: SinkSettings): SinkSettings {
  return sink.to.kind === "webhook" ? { ...sink, to: { ...sink.to, url: new URL(sink.to.url).origin } } : sink;
}

function publicPolicy(policy: Policy): Policy {
  const { action, heartbeat } = policy;
  const objects = action.kind === "apply" ? action.objects.map((object) => ({ ...object, fields: {} })) : [];
  return {
    ...policy,
    action: action.kind === "apply" ? { ...action, objects } : action,
    ...defined({ heartbeat: heartbeat && { url: new URL(heartbeat.url).origin } }),
  };
}
